// StepClock: times from batch to batch. The first step, which builds kernels, stands apart; percentiles are over the
// last 80 % of the steps (nearest rank), so that a warm-up does not count.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

namespace samebytes::cli {

// The smallest value that at least `percent` % of the values do not exceed (nearest-rank definition); 0 for no values.
inline double percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100.0 * static_cast<double>(values.size())));
  const std::size_t place = std::min(values.size() - 1, rank > 0 ? rank - 1 : 0);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end());
  return values[place];
}

class StepClock {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts timing, also after a pause such as an evaluation between epochs.
  void resume() { last_ = Clock::now(); }
  // The next batch came: the step before it took the time since the last tick.
  double tick() {
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    total_ += seconds;
    steps_.push_back(seconds * 1e3);
    return seconds;
  }
  // Time that belongs to the run but not to one step, such as the wait for the last one of an epoch.
  void add_rest() {
    const auto now = Clock::now();
    total_ += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

  std::size_t steps() const { return steps_.size(); }
  double seconds() const { return total_; }
  double milliseconds(double percent) const {
    const std::size_t skipped = steps_.size() / 5;
    return percentile({steps_.begin() + static_cast<std::ptrdiff_t>(skipped), steps_.end()}, percent);
  }

 private:
  Clock::time_point last_ = Clock::now();
  double total_ = 0;
  std::vector<double> steps_;  // milliseconds
};

}  // namespace samebytes::cli
