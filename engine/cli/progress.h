// Progress: a bar that redraws itself on a terminal, a plain line now and then elsewhere, nothing when quiet.
// With JSON on the standard output everything for people goes to the standard error stream instead.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace samebytes::cli {

struct ProgressState {
  std::string title;      // "epoch 2/3"
  std::int64_t done = 0;  // steps of the whole run
  std::int64_t total = 0;
  std::int64_t samples = 0;  // trained since the start
  double seconds = 0;        // spent on them
  double loss = 0;           // a recent one; NaN where not known yet
  double grad_norm = NAN;    // of a recent step, where it is known
};

// One line of at most `width` columns: "epoch 2/3 ━━━━━━━━╸      53 %  loss 0.0431  2 150 samples/s  0:42 left". Parts
// that do not fit are left out, the bar first shrinks. `unicode`: draw with line characters, else with '#' and '-'.
std::string progress_line(const ProgressState& state, int width, bool unicode);
// The same facts for a log: "step 1200/2814  epoch 2/3  loss 0.0431  2 150 samples/s  42.0 s left".
std::string plain_line(const ProgressState& state);

class Progress {
 public:
  Progress(std::FILE* stream, bool quiet);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // True where it is time to draw again; then the caller finds the numbers out and calls draw().
  bool is_due() const;
  void draw(const ProgressState& state);
  // A line that stays, above the bar.
  void say(const std::string& line);
  void erase();  // takes the bar away; the next draw() brings it back
  bool is_terminal() const { return terminal_; }
  double seconds_between() const;  // two draws

 private:
  std::FILE* stream_;
  bool quiet_;
  bool terminal_;
  bool unicode_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace samebytes::cli
