// StepClock: times from batch to batch, without the pauses between loops. Percentiles are over the last 80 % of the
// steps, so that the first one, which builds kernels, does not count.
#pragma once

#include <chrono>
#include <cstdint>

#include "samebytes/train.h"

namespace samebytes::cli {

class StepClock {
 public:
  using Clock = std::chrono::steady_clock;

  StepClock() { times_.mark(active_); }
  // Starts the clock, also after a pause such as a test between epochs.
  void resume() { last_ = Clock::now(); }
  // The next batch came; returns the seconds since the last one.
  double tick() {
    const double seconds = add_rest();
    times_.mark(active_);
    return seconds;
  }
  // Time that belongs to the run but to no step, such as the wait for the last one. Returns it in seconds.
  double add_rest() {
    const auto now = Clock::now();
    const auto passed = now - last_;
    last_ = now;
    active_ += passed;
    return std::chrono::duration<double>(passed).count();
  }

  std::int64_t steps() const { return static_cast<std::int64_t>(times_.count()); }
  double seconds() const { return std::chrono::duration<double>(active_.time_since_epoch()).count(); }
  double milliseconds(double percent) const { return times_.percentile_ms(percent); }

 private:
  StepTimes times_;
  Clock::time_point last_ = Clock::now();
  Clock::time_point active_{};  // a clock that stands still in pauses
};

}  // namespace samebytes::cli
