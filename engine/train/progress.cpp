// Rates and times on the host.
#include <algorithm>
#include <cmath>
#include <string>

#include "samebytes/error.h"
#include "samebytes/train.h"

namespace samebytes {
namespace {

double seconds_between(Progress::Clock::time_point a, Progress::Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace

double throughput(double units, double seconds) { return seconds > 0.0 ? units / seconds : 0.0; }

Progress::Progress(double total, Clock::time_point now) : total_(total), start_(now), last_(now), marks_{{now, 0.0}} {}

void Progress::advance(double units, Clock::time_point now) {
  done_ += units;
  last_ = now;
  marks_.push_back({now, done_});
  // The oldest mark kept is the last one that is older than the window, so that rate() covers all of it.
  auto oldest = marks_.begin();
  while (oldest + 1 != marks_.end() && seconds_between((oldest + 1)->time, now) >= kWindowSeconds) ++oldest;
  marks_.erase(marks_.begin(), oldest);
}

double Progress::fraction() const { return total_ > 0.0 ? std::clamp(done_ / total_, 0.0, 1.0) : 0.0; }
double Progress::seconds() const { return seconds_between(start_, last_); }
double Progress::rate() const {
  return throughput(done_ - marks_.front().done, seconds_between(marks_.front().time, last_));
}
double Progress::average_rate() const { return throughput(done_, seconds()); }
double Progress::seconds_left() const {
  const double now = rate();
  return now > 0.0 ? std::max(0.0, total_ - done_) / now : 0.0;
}

void StepTimes::mark(Clock::time_point now) {
  if (started_) ms_.push_back(std::chrono::duration<double, std::milli>(now - last_).count());
  started_ = true;
  last_ = now;
}

double StepTimes::percentile_ms(double percent) const {
  if (!(percent >= 0.0 && percent <= 100.0))
    throw ArgumentError("StepTimes: a percentile must be in [0, 100], got " + std::to_string(percent));
  if (ms_.empty()) return 0.0;
  constexpr double kCounted = 0.8;  // the part of the steps that counts, the last ones
  const auto counted = std::max<std::size_t>(1, static_cast<std::size_t>(kCounted * static_cast<double>(ms_.size())));
  std::vector<double> last(ms_.end() - static_cast<std::ptrdiff_t>(counted), ms_.end());
  std::sort(last.begin(), last.end());
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(counted));
  return last[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

}  // namespace samebytes
