// Waiting for a driver whose calls may fail and whose devices may hang. One for each engine: it asks again where a call
// without an effect fails, remembers what that mended, and ends every wait once a device has not answered for too long.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "runtime/opencl.h"
#include "samebytes/engine.h"

namespace samebytes::detail {

// How a wait passes the time between two looks at its events. rings: it sleeps until the driver calls back or the next
// look is due, and takes no core from a CPU device. looks: it looks all the time at first, then sleeps for small parts
// of what it has waited; a GPU leaves the host's cores free, and its driver's calls come late (NVIDIA's by 2 ms). naps:
// it looks now and then, for whom nobody waits: each look takes the driver's lock, which who enqueues needs.
enum class Waiting : std::uint8_t { rings, looks, naps };

// Sleeps until one of the events to which it was attached ends, or the next check is due. Polling alone must do where a
// driver refuses callbacks or never makes them.
class Bell {
 public:
  explicit Bell(Waiting waiting);
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  void attach(cl_event event) const;
  void wait() const;

 private:
  const Waiting waiting_;
  const std::uintptr_t number_;  // 0: never rung
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// PoCL marks a failed command only with -1, whose name would say that a device was not found.
std::string launch_status_name(cl_int status);

class Watchdog {
 public:
  // Time as this process has seen it pass, for waits that look many times a second: between two readings at most a
  // second counts. A process that was stopped (Ctrl-Z, a debugger, a container that is frozen) waited for nobody then.
  struct Clock {
    using duration = std::chrono::steady_clock::duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;
    static time_point now();
  };

  explicit Watchdog(double stall_seconds = 0) : stall_seconds_(stall_seconds) {}
  Watchdog(const Watchdog&) = delete;

  // Makes a call up to kTries times and returns its last status. A later success counts as a recovery.
  template <class Call>
  cl_int call(const char* name, const std::string& device, const Call& fn) {
    const cl_int status = fn();
    return status == CL_SUCCESS ? status : call_again(name, device, status, fn);
  }
  // The status of an event's command. If the driver never says it: CL_OUT_OF_RESOURCES or what it said instead, and
  // *is_known is false.
  cl_int status_of(cl_event event, const std::string& device, bool* is_known = nullptr);
  // Waits until the event's command has ended; its failure, or silence, is a DeviceError that names `what` and `name`,
  // the call that made the event.
  // `pending` says, where the device is silent, which commands have not ended; empty text: nobody knows.
  using Pending = std::function<std::string()>;
  void wait_for(cl_event event, const char* name, const std::string& what, const std::string& device,
                const Pending& pending = {});
  // The same without a limit of its own, for a wait beside one that has it: a DeviceError once `is_over` says so.
  void wait_until(cl_event event, const char* name, const std::string& what, const std::string& device,
                  const std::function<bool()>& is_over);
  // As `wait_for`, for whatever was enqueued on the queue so far, but its failures are reported by their own tickets.
  void finish(const cl::CommandQueue& queue, const std::string& device, const Pending& pending = {});

  // rings, until it is told otherwise.
  Waiting waiting() const { return waiting_.load(std::memory_order_relaxed); }
  void set_waiting(Waiting waiting) { waiting_.store(waiting, std::memory_order_relaxed); }

  // Whether a wait since `start` takes too long.
  bool is_stalled(Clock::time_point start) const;
  double stall_seconds() const { return stall_seconds_; }
  // What ends the waits: "has not answered for 300 s". Commands may still run, and use memory, at any time.
  void give_up(const std::string& why);
  bool is_given_up() const { return is_given_up_.load(std::memory_order_acquire); }
  std::string why() const;
  // For a wait that starts or goes on: true if nobody should wait any more; gives up if this one took too long.
  bool ends_wait(Clock::time_point start, const std::string& device, const Pending& pending);
  // Throws DeviceError if the engine waits no more.
  void check(const std::string& what, const std::string& device) const;

  // What else was overcome: the text is a warning, "recovered: " before it.
  void note(Recovery recovery, const std::string& text);
  std::vector<Recovery> recoveries() const;

 private:
  static constexpr int kTries = 5;
  cl_int call_again(const char* name, const std::string& device, cl_int failed, const std::function<cl_int()>& fn);

  const double stall_seconds_;
  std::atomic<Waiting> waiting_{Waiting::rings};
  std::atomic<bool> is_given_up_{false};
  mutable Mutex mutex_;
  std::string why_ SAMEBYTES_GUARDED_BY(mutex_);
  std::vector<Recovery> recoveries_ SAMEBYTES_GUARDED_BY(mutex_);
};
using WatchdogPtr = std::shared_ptr<Watchdog>;

}  // namespace samebytes::detail
