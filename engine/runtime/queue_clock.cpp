#include "runtime/queue_clock.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace samebytes::detail {
namespace {

constexpr int kMarkers = 8;

}  // namespace

bool QueueClock::time_of(cl_event event, cl_profiling_info what, double* seconds) const {
  cl_ulong nanoseconds = 0;
  bool has_times = true;  // a failed command has none; of another one they are asked again
  const auto ask = [&] {
    const cl_int status = clGetEventProfilingInfo(event, what, sizeof nanoseconds, &nanoseconds, nullptr);
    has_times = status != CL_PROFILING_INFO_NOT_AVAILABLE;
    return has_times ? status : CL_SUCCESS;
  };
  if (watchdog_->call("clGetEventProfilingInfo", device_, ask) != CL_SUCCESS || !has_times) return false;
  *seconds = static_cast<double>(nanoseconds) * 1e-9;
  return true;
}

void QueueClock::calibrate(const cl::CommandQueue& queue, WatchdogPtr watchdog, const std::string& device) {
  watchdog_ = std::move(watchdog);
  device_ = device;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kMarkers; ++i) {
    cl::Event marker;
    on_device(device, [&] { return queue.enqueueMarkerWithWaitList(nullptr, &marker), queue.flush(); });
    watchdog_->wait_for(marker(), "clEnqueueMarkerWithWaitList", "reading the device's clock", device);
    double end = 0;
    // The host reads its clock some time after the marker ended; the smallest difference contains the least of that
    // delay.
    if (time_of(marker.get(), CL_PROFILING_COMMAND_END, &end)) least = std::min(least, steady_seconds() - end);
  }
  if (least < std::numeric_limits<double>::infinity()) offset_ = least;
}

bool QueueClock::read(void* event, double* start, double* end) const {
  const auto command = static_cast<cl_event>(event);
  if (!time_of(command, CL_PROFILING_COMMAND_START, start) || !time_of(command, CL_PROFILING_COMMAND_END, end))
    return false;
  *start += offset_;
  *end += offset_;
  return *end >= *start;
}

void QueueClock::release(void* event) const { clReleaseEvent(static_cast<cl_event>(event)); }

}  // namespace samebytes::detail
