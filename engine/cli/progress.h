// Progress: a bar that redraws itself on a terminal, a plain line now and then elsewhere, nothing when quiet.
// With JSON on the standard output everything for people goes to the standard error stream instead.
#pragma once

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace samebytes {
class Engine;
}

namespace samebytes::cli {

struct ProgressState {
  std::string title;      // "epoch 2/3"
  std::int64_t done = 0;  // steps of the whole run
  std::int64_t total = 0;
  // Not shown where they are not known: 0, NaN.
  double samples_per_second = 0;
  double seconds_left = NAN;
  double loss = NAN;       // the mean of the epoch so far
  double grad_norm = NAN;  // of a recent step
};

// One line of at most `width` columns: "epoch 2/3 ━━━━━━━━╸      53 %  loss 0.0431  2 150 samples/s  0:42 left". Parts
// that do not fit are left out, the bar first shrinks. `unicode`: draw with line characters, else with '#' and '-'.
std::string progress_line(const ProgressState& state, int width, bool unicode);
// The same facts for a log: "step 1200/2814  epoch 2/3  loss 0.0431  2 150 samples/s  42.0 s left".
std::string plain_line(const ProgressState& state);

// How far a wait has come: 3 of 12, or 3 of an unknown number (total 0).
struct Counted {
  std::int64_t done = 0, total = 0;
};

// A wait before the steps: "compiling kernels  ---###---  3.2 s  12 so far", with a bar that moves where the end is not
// known. At most `width` columns.
std::string waiting_line(const std::string& what, double seconds, const Counted& counted, int width, bool unicode);

// The kernels that an engine's compiler processes have made, for wait_for(); the wait must end before the engine.
std::function<Counted()> compiled_on(const Engine& engine);

class Progress {
 public:
  Progress(std::FILE* stream, bool quiet);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // True where it is time to draw again; then the caller finds the numbers out and calls draw().
  bool is_due() const;
  void draw(const ProgressState& state);
  // What the program does until the next line, bar or wait. A terminal shows it at once and keeps it moving; elsewhere
  // a plain line comes now and then, on the standard error stream. `count` is asked by another thread until then.
  void wait_for(std::string what, std::function<Counted()> count = {});
  // The same, but the bar stays on the terminal for a moment; an empty text ends the wait.
  void wait_behind_bar(std::string what);
  void leave_waits_out() { has_waits_ = false; }
  // A line that stays, above the bar.
  void say(const std::string& line);
  void erase();  // takes the bar away and ends a wait; the next draw() brings it back
  bool is_terminal() const { return terminal_; }
  double seconds_between() const;  // two draws

 private:
  using Clock = std::chrono::steady_clock;
  void begin_wait(std::string what, std::function<Counted()> count, bool at_once);
  void clear();         // the line of the bar; the mutex is held
  void draw_wait();     // the mutex is held
  void keep_drawing();  // of thread_

  std::FILE* stream_;
  bool quiet_;
  bool terminal_;
  bool unicode_;
  bool has_waits_ = true;
  Clock::time_point next_;
  std::mutex mutex_;  // of all below, and of the stream
  bool drawn_ = false;
  std::string what_;  // of the wait; empty: none
  std::function<Counted()> count_;
  Clock::time_point since_;
  bool is_over_ = false;
  std::condition_variable changed_;
  std::thread thread_;  // from the first wait on
};

// Ends a wait where a block ends, also by an exception.
class WaitEnds {
 public:
  explicit WaitEnds(Progress& progress) : progress_(progress) {}
  ~WaitEnds() { progress_.erase(); }
  WaitEnds(const WaitEnds&) = delete;

 private:
  Progress& progress_;
};

}  // namespace samebytes::cli
