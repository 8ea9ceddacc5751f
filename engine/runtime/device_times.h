// When each device of an engine finished what a thread enqueued, as the driver reports it (device_watch.h). If a
// device's driver works inside the calls that enqueue, the thread cannot look for itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace samebytes::detail {

struct DeviceTimes {
  static constexpr std::size_t kMost = 64;
  std::array<std::atomic<std::int64_t>, kMost> ended{};  // nanoseconds of the steady clock; 0: not known
};

extern thread_local std::shared_ptr<DeviceTimes> device_times;  // for this thread's submissions; null: not wanted

}  // namespace samebytes::detail
