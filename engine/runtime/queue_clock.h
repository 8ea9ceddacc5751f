// The clock of one command queue: event times as seconds of the host's steady clock.
#pragma once

#include <string>

#include "profile/recorder.h"
#include "runtime/watchdog.h"

namespace samebytes::detail {

class QueueClock final : public EventClock {
 public:
  // Measures the offset between the two clocks with a few markers. Requires: the queue has profiling enabled and is
  // empty.
  void calibrate(const cl::CommandQueue& queue, WatchdogPtr watchdog, const std::string& device);
  bool read(void* event, double* start, double* end) const override;
  void release(void* event) const override;

 private:
  bool time_of(cl_event event, cl_profiling_info what, double* seconds) const;

  WatchdogPtr watchdog_;
  std::string device_;
  double offset_ = 0;
};

}  // namespace samebytes::detail
