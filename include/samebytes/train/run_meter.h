// RunMeter: counts steps, time, bytes and launches of the loops it is told of, and nothing between them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "samebytes/train.h"

namespace samebytes {
class Engine;
}

namespace samebytes::train {

// Times from batch to batch, without the pauses between loops. Percentiles are over the last 80 % of the steps, so that
// the first one, which builds kernels, does not count.
class StepClock {
 public:
  using Clock = std::chrono::steady_clock;

  StepClock() { times_.mark(active_); }
  void resume() { last_ = Clock::now(); }  // starts the clock, also after a pause such as a validation
  double tick();                           // the next batch came; returns the seconds since the last one
  // Time that belongs to the run but to no step, such as the wait for the last one. Returns it in seconds.
  double add_rest();

  std::int64_t steps() const { return static_cast<std::int64_t>(times_.count()); }
  double seconds() const { return std::chrono::duration<double>(active_.time_since_epoch()).count(); }
  double milliseconds(double percent) const { return times_.percentile_ms(percent); }

 private:
  StepTimes times_;
  Clock::time_point last_ = Clock::now();
  Clock::time_point active_{};  // stands still in pauses
};

// What a meter has counted.
struct RunFigures {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double seconds = 0;                       // of the steps alone: without validations and checkpoints
  double step_ms_p50 = 0, step_ms_p95 = 0;  // from batch to batch, over the last 80 % of the steps
  double first_step_seconds = 0;            // with the building of kernels
  double bytes_copied_per_step = 0;         // between host and device
  double bytes_gathered_per_step = 0;       // by the host, from the data set into batches
  double launches_per_step = 0;             // without the first step, which may initialise parameters
  double bytes_per_step = 0;                // that those launches read and write, as a profile counts them
  double stall_fraction = 0;                // share of `seconds` in which the loop waited for a batch
  std::size_t peak_bytes = 0;               // of the engine's memory
  double samples_per_second() const { return throughput(static_cast<double>(samples), seconds); }
};

class RunMeter {
 public:
  explicit RunMeter(Engine& engine) : engine_(&engine) {}
  void begin();                      // a loop over batches begins
  void step(std::int64_t samples);   // a step was enqueued; waits for the first one
  void end(double stalled_seconds);  // the loop is over; waits for its last step
  void restart();                    // forgets all steps but the duration of the first one
  // What an interrupted run had counted before this one goes on.
  void go_on_from(std::int64_t steps, std::int64_t samples, double seconds);
  // Work between two steps that belongs to neither.
  void pause() { clock_.add_rest(); }
  void resume() { clock_.resume(); }

  std::int64_t steps() const { return steps_before_ + clock_.steps(); }
  std::int64_t samples() const { return samples_; }
  double seconds() const { return seconds_before_ + clock_.seconds(); }
  double last_step_seconds() const { return last_step_seconds_; }
  RunFigures figures() const;

 private:
  Engine* engine_;
  StepClock clock_;
  std::int64_t steps_before_ = 0;  // of the run that goes on
  double seconds_before_ = 0;
  std::int64_t samples_ = 0;
  bool is_first_ = true;
  double first_step_seconds_ = 0;
  double last_step_seconds_ = 0;
  double stall_seconds_ = 0;
  std::uint64_t copied_ = 0, copied_before_ = 0;
  std::uint64_t gathered_ = 0, gathered_before_ = 0;
  std::uint64_t launches_ = 0, launches_before_ = 0;
  double touched_ = 0, touched_before_ = 0;  // bytes that launches read and write
  std::int64_t launch_steps_ = 0;
};

}  // namespace samebytes::train
