// When each device of an engine ended what a thread enqueued, as the driver tells it (device_watch.h). A device whose
// driver works inside the calls that enqueue keeps the thread from looking for itself.
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

extern thread_local std::shared_ptr<DeviceTimes> device_times;  // of this thread's submissions; null: not wanted

}  // namespace samebytes::detail
