// Faults that tests inject into the runtime to show that it detects them. Only tests set one.
#pragma once

#include <atomic>
#include <string>

#include "core/mutex.h"

namespace samebytes::detail {

enum class MapFault : int { none, skip_map, double_map, skip_unmap, double_unmap };

// What happens to launches on one of several devices, from a given launch on; small_groups: the device accepts only
// groups of one item.
enum class DeviceFault { none, refuse, fail, hang, slow, small_groups };

struct Faults {
  std::atomic<MapFault> map{MapFault::none};  // coarse and hostptr: the next map or unmap fails
  std::atomic<bool> break_alias_test{false};  // the self-test of cl_mem aliases sees a wrong number
  std::atomic<DeviceFault> device_fault{DeviceFault::none};
  std::atomic<int> faulty_device{0};
  std::atomic<int> launches_before_fault{0};  // on that device
  std::atomic<int> slow_microseconds{0};      // a slow device sleeps this long before each launch
  std::atomic<bool> fail_launch{false};       // launches of failing_op are enqueued and then fail
  std::atomic<int> unbuildable_on{-1};        // a device whose compiler fails at the line that contains `unbuildable`
  Mutex mutex;
  std::string unbuildable SAMEBYTES_GUARDED_BY(mutex);
  std::string failing_op SAMEBYTES_GUARDED_BY(mutex);
};

Faults& faults();

}  // namespace samebytes::detail
