#include "runtime/ticket.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>

#include "samebytes/error.h"
#include "samebytes/profile.h"

namespace samebytes::detail {

namespace {

// For tickets that may be abandoned: the time between checks without a call of the driver, and between the driver's
// call and the completion of the event. Frequent checks take a core away from a CPU device.
constexpr std::chrono::milliseconds kTicketPause{5};
constexpr std::chrono::microseconds kTicketPollInterval{20};

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

class Bell {
 public:
  Bell() {
    static std::atomic<std::uintptr_t> last{0};
    number_ = ++last;
    MutexLock lock(bells().mutex);
    bells().left[number_] = 0;
  }
  ~Bell() {
    MutexLock lock(bells().mutex);
    bells().left.erase(number_);
  }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // If the driver refuses callbacks, polling must do.
  void attach(cl_event event) const {
    count_events(number_, 1);
    if (clSetEventCallback(event, CL_COMPLETE, ring, reinterpret_cast<void*>(number_)) != CL_SUCCESS)
      count_events(number_, -1);
  }

  // Returns at a callback or when the next check is due.
  void wait() const {
    MutexLock lock(bells().mutex);
    bells().rung.wait_for(bells().mutex, bells().left[number_] > 0 ? kTicketPause : kTicketPollInterval);
  }

 private:
  std::uintptr_t number_ = 0;
};

cl_int status_of(cl_event event) {
  cl_int status = CL_COMPLETE;
  const cl_int got = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return got == CL_SUCCESS ? status : got;
}

// PoCL marks a failed command only with -1, whose name would say that a device was not found.
std::string launch_status_name(cl_int status) {
  return status == -1 ? "CL_FAILED (the driver gives no reason)" : status_name(status);
}

}  // namespace

const char* keep_op_name(std::string_view op) { return Label(op).text(); }

TicketPtr first_to_wait_for(const std::deque<TicketPtr>& queued, int steps) {
  const int most = steps * Ticket::kStep;
  int weight = 0;
  for (const TicketPtr& ticket : queued) weight += ticket->weight();
  if (weight <= most) return nullptr;
  auto last = queued.begin();
  weight -= (*last)->weight();
  while (weight > most / 2 && std::next(last) != queued.end() && (*std::next(last))->weight() < Ticket::kStep) {
    ++last;
    weight -= (*last)->weight();
  }
  return *last;
}

void Ticket::reserve(std::size_t events) {
  MutexLock lock(mutex_);
  entries_.reserve(events);
}

void Ticket::add(cl::Event event, const char* op, int queue, LaunchSource source) {
  MutexLock lock(mutex_);
  entries_.push_back({std::move(event), op, queue, std::move(source)});
}

void HostTask::start() noexcept {
  try {
    run();
  } catch (const std::exception& error) {
    why_ = error.what();
  } catch (...) {
    why_ = "an exception of an unknown type";
  }
}

void Ticket::keep(std::shared_ptr<HostTask> task, const char* op, LaunchSource source) {
  MutexLock lock(mutex_);
  kept_.push_back({std::move(task), op, std::move(source)});
}

void Ticket::close() {
  MutexLock lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::open) return;
  state_.store(entries_.empty() ? State::done : State::closed, std::memory_order_release);
  closed_.notify_all();
}

std::vector<cl::Event> Ticket::last_events() const {
  std::vector<cl::Event> last;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    bool is_last = true;
    for (std::size_t j = entries_.size(); is_last && j-- > i + 1;) is_last = entries_[j].queue != entries_[i].queue;
    if (is_last) last.push_back(entries_[i].event);
  }
  return last;
}

void Ticket::settle() const {
  if (state_.load(std::memory_order_relaxed) != State::closed) return;
  for (const Entry& entry : entries_) {
    const cl_int status = status_of(entry.event());
    if (status >= 0) continue;
    failed_op_ = entry.op;
    failed_source_ = entry.source;
    failed_status_ = status;
    failed_queue_ = entry.queue;
    break;
  }
  for (const Kept& kept : kept_) {
    if (failed_op_ || kept.task->failure().empty()) continue;
    failed_op_ = kept.op;
    failed_why_ = std::string(kept.op) + ": the host's part failed: " + kept.task->failure() + kept.source.text();
  }
  kept_.clear();
  entries_.clear();  // drivers keep memory per event
  entries_.shrink_to_fit();
  state_.store(failed_op_ ? State::failed : State::done, std::memory_order_release);
}

bool Ticket::is_done() const {
  const State state = state_.load(std::memory_order_acquire);
  if (state != State::closed) return state != State::open;
  MutexLock lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::closed) return true;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if (status_of(entry->event()) > 0) return false;
  settle();
  return true;
}

void Ticket::wait_quietly() noexcept {
  if (state_.load(std::memory_order_acquire) >= State::done) return;
  std::vector<cl::Event> last;
  {
    MutexLock lock(mutex_);
    while (state_.load(std::memory_order_relaxed) == State::open) closed_.wait(mutex_);
    if (state_.load(std::memory_order_relaxed) >= State::done) return;
    last = last_events();
  }
  if (is_polled_) {
    const Bell bell;
    for (const cl::Event& event : last) bell.attach(event());
    last.clear();
    while (!is_done()) bell.wait();
    return;
  }
  // Waits one by one: a failed event must not hide that another queue still runs.
  for (const cl::Event& event : last) clWaitForEvents(1, &event());
  last.clear();  // drivers keep memory per event
  MutexLock lock(mutex_);
  settle();
}

void Ticket::wait_so_far() {
  std::vector<cl::Event> last;
  {
    MutexLock lock(mutex_);
    last = last_events();
  }
  cl_int failed = CL_SUCCESS;
  for (const cl::Event& event : last) {
    clWaitForEvents(1, &event());
    if (const cl_int status = status_of(event()); status < 0) failed = status;
  }
  if (failed == CL_SUCCESS) return;
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    const cl_int status = status_of(entry.event());
    if (status < 0)
      throw DeviceError(std::string(entry.op) + ": the launch failed on " + device_ + ": " +
                            launch_status_name(status) + entry.source.text(),
                        "clWaitForEvents", launch_status_name(status), device_);
  }
}

int Ticket::failed_queue() const {
  if (!is_failed()) return -1;
  MutexLock lock(mutex_);
  return failed_queue_;
}

void Ticket::abandon(int queue, const std::string& why) {
  MutexLock lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::closed) return;
  for (Entry& entry : entries_) entry.event() = nullptr;  // never released: the driver may read them at any time
  entries_.clear();
  failed_op_ = keep_op_name(why);
  failed_why_ = device_ + " was given up: " + why;
  failed_queue_ = queue;
  is_abandoned_.store(true, std::memory_order_release);
  state_.store(State::failed, std::memory_order_release);
}

std::string Ticket::failure() const {
  if (!is_failed()) return {};
  MutexLock lock(mutex_);
  if (!failed_why_.empty()) return failed_why_;
  return std::string(failed_op_) + ": the launch failed on " + device_ + ": " + launch_status_name(failed_status_) +
         failed_source_.text();
}

void Ticket::throw_if_failed() const {
  if (!is_failed()) return;
  const std::string message = failure();
  MutexLock lock(mutex_);
  if (failed_status_ == CL_SUCCESS) throw DeviceError(message, "", "", device_);
  throw DeviceError(message, "clWaitForEvents", launch_status_name(failed_status_), device_);
}

void Ticket::wait() {
  wait_quietly();
  throw_if_failed();
}

}  // namespace samebytes::detail
