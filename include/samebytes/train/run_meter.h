// RunMeter: counts steps, time, bytes and launches of the loops between begin() and end(), and excludes the time
// between loops.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "samebytes/train.h"

namespace samebytes {
class Engine;
}

namespace samebytes::train {

// Measures the time from batch to batch, without the pauses between loops. Percentiles are over the last 80 % of the
// steps, which excludes the first one, since it builds kernels.
class StepClock {
 public:
  using Clock = std::chrono::steady_clock;

  StepClock() { times_.mark(active_); }
  void resume() { last_ = Clock::now(); }  // starts the clock, or restarts it after a pause such as a validation
  double tick();                           // the next batch has arrived; returns the seconds since the previous one
  // Adds time that belongs to the run but to no step, such as the wait for the last step. Returns it in seconds.
  double add_rest();

  std::int64_t steps() const { return static_cast<std::int64_t>(times_.count()); }
  double seconds() const { return std::chrono::duration<double>(active_.time_since_epoch()).count(); }
  double milliseconds(double percent) const { return times_.percentile_ms(percent); }

 private:
  StepTimes times_;
  Clock::time_point last_ = Clock::now();
  Clock::time_point active_{};  // stops during pauses
};

// The results of a meter.
struct RunFigures {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double seconds = 0;                       // of the steps only: without validations and checkpoints
  double step_ms_p50 = 0, step_ms_p95 = 0;  // from batch to batch, over the last 80 % of the steps
  double first_step_seconds = 0;            // including the kernel builds
  double bytes_copied_per_step = 0;         // between host and device
  double bytes_gathered_per_step = 0;       // by the host, from the data set into batches
  double launches_per_step = 0;             // without the first step, which may initialise parameters
  double bytes_per_step = 0;                // read and written by those launches, as a profile counts them
  double stall_fraction = 0;                // share of `seconds` in which the loop waited for a batch
  std::size_t peak_bytes = 0;               // of the engine's memory
  double samples_per_second() const { return throughput(static_cast<double>(samples), seconds); }
  std::int64_t first_step_samples = 0;  // 0 where the first step is not among `steps`: after restart()
  // Without the first step, which compiles; 0 where there is no other.
  double steady_samples_per_second() const;
};

class RunMeter {
 public:
  explicit RunMeter(Engine& engine) : engine_(&engine) {}
  void begin();                      // a loop over batches begins
  void step(std::int64_t samples);   // a step was enqueued; waits for the first one
  void end(double stalled_seconds);  // the loop has ended; waits for its last step
  void restart();                    // resets everything but the duration of the first step
  // Adds the counts of the interrupted run that this one continues.
  void go_on_from(std::int64_t steps, std::int64_t samples, double seconds);
  // Excludes work between two steps.
  void pause() { clock_.add_rest(); }
  void resume() { clock_.resume(); }

  std::int64_t steps() const { return steps_before_ + clock_.steps(); }
  std::int64_t samples() const { return samples_; }
  double seconds() const { return seconds_before_ + clock_.seconds(); }
  double last_step_seconds() const { return last_step_seconds_; }
  // Without the first step, which compiles; 0 before the second one.
  double samples_per_second() const;
  double seconds_per_step() const;
  RunFigures figures() const;

 private:
  RunFigures figures_of_steps() const;

  Engine* engine_;
  StepClock clock_;
  std::int64_t steps_before_ = 0;  // of the run that this one continues
  double seconds_before_ = 0;
  std::int64_t samples_ = 0;
  bool is_first_ = true;
  double first_step_seconds_ = 0;
  std::int64_t first_step_samples_ = 0;
  double last_step_seconds_ = 0;
  double stall_seconds_ = 0;
  std::uint64_t copied_ = 0, copied_before_ = 0;
  std::uint64_t gathered_ = 0, gathered_before_ = 0;
  std::uint64_t launches_ = 0, launches_before_ = 0;
  double touched_ = 0, touched_before_ = 0;  // bytes that launches read and write
  std::int64_t launch_steps_ = 0;
};

}  // namespace samebytes::train
