// What the devices of an engine with several of them are doing, and going on without one that failed or does not
// answer. Who cuts work over devices by hand uses these; train::DataParallel does it all.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace samebytes {

class Engine;

namespace detail {
struct DeviceTimes;
}

// While it lives, evaluations of this thread note when each device ends its part, also where the thread itself is kept
// busy by a driver that works inside its calls.
class DeviceTimer {
 public:
  DeviceTimer();
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

 private:
  friend struct DeviceStanding wait_for_devices(Engine&, std::chrono::steady_clock::time_point, double, double,
                                                const DeviceTimer*);
  std::shared_ptr<detail::DeviceTimes> times_, previous_;
};

struct DeviceStanding {
  // From `start` until each device had done what was enqueued for it; infinite where it had not within the limit.
  std::vector<double> seconds;
  int failed = -1;  // the device that a launch failed on, or that refused one, first; -1: none
  int silent = -1;  // where one had not within the limit: the device of the first command that has not ended; -1: none
  std::string why;  // that launch failed, or what a device that has not answered still has to do
};
// Waits at most `limit` seconds for all that was enqueued; sleeps through most of what it is `expected` to take.
// Failures that it tells of are not thrown any more by Engine::wait(); what a failed launch should have written is lost
// all the same. With one device the standing of that.
DeviceStanding wait_for_devices(Engine& engine, std::chrono::steady_clock::time_point start, double limit,
                                double expected = 0, const DeviceTimer* timer = nullptr);

// Nothing is sent to this device any more: from now on another one of the engine does what it is asked for, under the
// same index. Launches of evaluations that are not done are not waited for, now or later, on any device: what they
// should have written is lost (writing it anew makes it whole), and memory that they may still write to is not used
// again. Returns the index of the device that takes over. Throws ArgumentError where there is no other device left.
int give_up_device(Engine& engine, int device, const std::string& why);
bool is_given_up(const Engine& engine, int device);

}  // namespace samebytes
