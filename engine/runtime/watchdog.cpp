#include "runtime/watchdog.h"

#include <algorithm>
#include <map>
#include <thread>

#include "samebytes/error.h"
#include "samebytes/log.h"

namespace samebytes::detail {
namespace {

// The time between checks without a call of the driver, and between the driver's call and the completion of the event.
// Frequent checks take a core away from a CPU device.
constexpr std::chrono::milliseconds kBellPause{5};
constexpr std::chrono::microseconds kBellPollInterval{20};
constexpr std::chrono::milliseconds kTryPause{1};
// A wait that looks does so all the time for so long, but leaves the driver's lock to others in between; then after
// parts of what it has waited, up to the longest.
constexpr std::chrono::milliseconds kLookOnly{1}, kLongestSleep{1};
constexpr std::chrono::microseconds kLookPause{5};
constexpr int kPausePart = 16;
constexpr std::chrono::microseconds kNap{500};

// The driver calls back when events end. It gets a number instead of a pointer, so nothing must be kept alive for calls
// that never come (PoCL 3.1 makes none for some failed events) or come late.
struct Bells {
  Mutex mutex;
  CondVar rung;
  std::map<std::uintptr_t, int> left SAMEBYTES_GUARDED_BY(mutex);  // by waiter: events that have not ended
};

Bells& bells() {
  static Bells& all = *new Bells;  // never destroyed: drivers may call while the process ends
  return all;
}

void count_events(std::uintptr_t bell, int more) {
  MutexLock lock(bells().mutex);
  const auto left = bells().left.find(bell);
  if (left == bells().left.end()) return;
  left->second += more;
  bells().rung.notify_all();
}

void CL_CALLBACK ring(cl_event, cl_int, void* bell) { count_events(reinterpret_cast<std::uintptr_t>(bell), -1); }

std::uintptr_t new_bell(Waiting waiting) {
  static std::atomic<std::uintptr_t> last{0};
  if (waiting != Waiting::rings) return 0;
  const std::uintptr_t number = ++last;
  MutexLock lock(bells().mutex);
  bells().left[number] = 0;
  return number;
}

}  // namespace

Bell::Bell(Waiting waiting) : waiting_(waiting), number_(new_bell(waiting)) {}

Bell::~Bell() {
  if (number_ == 0) return;
  MutexLock lock(bells().mutex);
  bells().left.erase(number_);
}

void Bell::attach(cl_event event) const {
  if (number_ == 0) return;
  count_events(number_, 1);
  if (clSetEventCallback(event, CL_COMPLETE, ring, reinterpret_cast<void*>(number_)) != CL_SUCCESS)
    count_events(number_, -1);
}

void Bell::wait() const {
  if (waiting_ == Waiting::naps) {
    std::this_thread::sleep_for(kNap);
    return;
  }
  if (waiting_ == Waiting::looks) {
    using Steady = std::chrono::steady_clock;
    const Steady::duration waited = Steady::now() - start_;
    if (waited < kLookOnly) {
      for (const auto next = Steady::now() + kLookPause; Steady::now() < next;) std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min<Steady::duration>(waited / kPausePart, kLongestSleep));
    }
    return;
  }
  MutexLock lock(bells().mutex);
  if (bells().left[number_] > 0)
    bells().rung.wait_for(bells().mutex, kBellPause);
  else
    bells().rung.wait_for(bells().mutex, kBellPollInterval);
}

std::string launch_status_name(cl_int status) {
  return status == -1 ? "CL_FAILED (the driver gives no reason)" : status_name(status);
}

cl_int Watchdog::call_again(const char* name, const std::string& device, cl_int failed,
                            const std::function<cl_int()>& fn) {
  for (int i = 1; i < kTries; ++i) {
    std::this_thread::sleep_for(kTryPause);
    if (fn() != CL_SUCCESS) continue;
    const std::string status = status_name(failed);
    note({name, status, device},
         std::string(name) + " failed once on " + device + " with " + status + "; nothing is lost");
    return CL_SUCCESS;
  }
  return failed;
}

cl_int Watchdog::status_of(cl_event event, const std::string& device, bool* is_known) {
  cl_int status = CL_COMPLETE;
  const auto ask = [&] {
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  };
  const cl_int got = call("clGetEventInfo", device, ask);
  if (is_known) *is_known = got == CL_SUCCESS;
  return got == CL_SUCCESS ? status : got;
}

void Watchdog::wait_for(cl_event event, const char* name, const std::string& what, const std::string& device,
                        const Pending& pending) {
  const auto start = Clock::now();
  wait_until(event, name, what, device, [&] { return ends_wait(start, device, pending); });
}

void Watchdog::wait_until(cl_event event, const char* name, const std::string& what, const std::string& device,
                          const std::function<bool()>& is_over) {
  std::optional<Bell> bell;
  for (;;) {
    bool is_known = true;
    const cl_int status = status_of(event, device, &is_known);
    if (!is_known) {
      give_up("clGetEventInfo fails on " + device + ": " + status_name(status));
      check(what, device);
    }
    if (status < 0) {
      const std::string text = launch_status_name(status);
      throw DeviceError(what + ": " + name + " failed on " + device + ": " + text, name, text, device);
    }
    if (status == CL_COMPLETE) return;
    if (is_over()) {
      check(what + ": " + name, device);
      throw DeviceError(what + ": " + name + " on " + device + " was given up", name, "", device);
    }
    if (!bell)
      bell.emplace(waiting()).attach(event);
    else
      bell->wait();
  }
}

void Watchdog::finish(const cl::CommandQueue& queue, const std::string& device, const Pending& pending) {
  cl::Event reached;
  check_cl(call("clEnqueueMarkerWithWaitList", device,
                [&] { return clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &reached()); }),
           "clEnqueueMarkerWithWaitList", device);
  check_cl(call("clFlush", device, [&] { return clFlush(queue()); }), "clFlush", device);
  try {
    wait_for(reached(), "clEnqueueMarkerWithWaitList", "waiting for the device", device, pending);
  } catch (const DeviceError&) {
    if (is_given_up()) {
      reached() = nullptr;  // never released: the driver may read it at any time
      throw;
    }
  }
  check_cl(call("clFinish", device, [&] { return clFinish(queue()); }), "clFinish", device);
}

// One count for the process: whoever reads it brings it up to now.
Watchdog::Clock::time_point Watchdog::Clock::now() {
  using Steady = std::chrono::steady_clock;
  static std::atomic<std::int64_t> read{0}, seen{0};  // of the steady clock, and what of it counts
  constexpr std::int64_t kMost = std::chrono::duration_cast<duration>(std::chrono::seconds{1}).count();
  const std::int64_t here = Steady::now().time_since_epoch().count();
  std::int64_t before = read.load();  // of another thread's, it may be later than here: nothing has passed then
  while (before < here && !read.compare_exchange_weak(before, here)) {
  }
  const std::int64_t passed = std::clamp<std::int64_t>(here - before, 0, kMost);
  return time_point(duration(seen.fetch_add(passed) + passed));
}

bool Watchdog::is_stalled(Clock::time_point start) const {
  return stall_seconds_ > 0 && std::chrono::duration<double>(Clock::now() - start).count() > stall_seconds_;
}

void Watchdog::give_up(const std::string& why) {
  MutexLock lock(mutex_);
  if (why_.empty()) why_ = why;
  is_given_up_.store(true, std::memory_order_release);
}

std::string Watchdog::why() const {
  MutexLock lock(mutex_);
  return why_;
}

bool Watchdog::ends_wait(Clock::time_point start, const std::string& device, const Pending& pending) {
  if (!is_given_up() && is_stalled(start)) {
    std::string seconds = std::to_string(stall_seconds_);
    seconds.erase(seconds.find_last_not_of('0') + 1);
    if (seconds.back() == '.') seconds.pop_back();
    const std::string what = pending ? pending() : "";
    give_up(device + (what.empty() ? "" : " (pending: " + what + ")") + " has not answered for " + seconds +
            " s (EngineOptions::stall_seconds); end this process, its driver may hang");
  }
  return is_given_up();
}

void Watchdog::check(const std::string& what, const std::string& device) const {
  if (is_given_up()) throw DeviceError(what + ": " + why(), "", "", device);
}

void Watchdog::note(Recovery recovery, const std::string& text) {
  {
    MutexLock lock(mutex_);
    recoveries_.push_back(std::move(recovery));
  }
  log_message("warning", "recovered: " + text);
}

std::vector<Recovery> Watchdog::recoveries() const {
  MutexLock lock(mutex_);
  return recoveries_;
}

}  // namespace samebytes::detail
