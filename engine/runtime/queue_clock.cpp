#include "runtime/queue_clock.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace samebytes::detail {
namespace {

constexpr int kMarkers = 8;

}  // namespace

bool QueueClock::time_of(cl_event event, cl_profiling_info what, double* seconds) const {
  cl_ulong nanoseconds = 0;
  const auto ask = [&] { return clGetEventProfilingInfo(event, what, sizeof nanoseconds, &nanoseconds, nullptr); };
  std::optional<cl_int> first = ask();
  if (first == CL_PROFILING_INFO_NOT_AVAILABLE) return false;  // of a failed command; of others they are asked again
  const auto again = [&] { return first ? *std::exchange(first, std::nullopt) : ask(); };
  if (watchdog_->call("clGetEventProfilingInfo", device_, again) != CL_SUCCESS) return false;
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
