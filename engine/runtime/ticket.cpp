#include "runtime/ticket.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <new>

#include "samebytes/error.h"
#include "samebytes/profile.h"

namespace samebytes::detail {

namespace {

// What a device that was given up may still run and read, not even destroyed as the process ends.
template <class T>
void keep_for_good(std::vector<T>&& what) {
  struct Link {
    std::vector<T> what;
    Link* next;
  };
  static std::atomic<Link*> first = nullptr;  // so that a leak checker sees that they are held
  Link* const link = new (std::nothrow) Link{std::move(what), first.load()};
  while (link != nullptr && !first.compare_exchange_weak(link->next, link)) {
  }
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
  return (*last)->is_done() ? queued.front() : *last;  // where it was given up, and those before it not yet
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

void Ticket::reads_from(const std::shared_ptr<Ticket>& writer) {
  if (writer->number() >= number_) return;  // so that no two wait for each other
  MutexLock lock(mutex_);
  if (std::ranges::count(writers_, writer) == 0) writers_.push_back(writer);
}

void Ticket::close() {
  MutexLock lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::open) return;
  state_.store(entries_.empty() && writers_.empty() ? State::done : State::closed, std::memory_order_release);
  closed_.notify_all();
}

bool Ticket::is_last_of_queue(std::size_t i) const {
  for (std::size_t j = entries_.size(); j-- > i + 1;)
    if (entries_[j].queue == entries_[i].queue) return false;
  return true;
}

bool Ticket::have_ended() const {
  bool have = true;
  for (std::size_t i = entries_.size(); have && i-- > 0;) {
    bool is_known = true;
    const cl_int status = watchdog_->status_of(entries_[i].event(), device_, &is_known);
    // Nobody can say when its command ends.
    if (!is_known) watchdog_->give_up("clGetEventInfo fails on " + device_ + ": " + status_name(status));
    have = is_known && status <= CL_COMPLETE;
  }
  return have;
}

// Of older tickets, so the locks have an order.
bool Ticket::have_writers_ended() const {
  return std::ranges::all_of(writers_, [](const TicketPtr& writer) { return writer->is_done(); });
}

void Ticket::note_failure(const Entry& entry, cl_int status) const {
  failed_op_ = entry.op;
  failed_source_ = entry.source;
  failed_status_ = status;
  failed_queue_ = entry.queue;
}

void Ticket::settle() const {
  if (state_.load(std::memory_order_relaxed) != State::closed) return;
  for (const Entry& entry : entries_) {
    const cl_int status = watchdog_->status_of(entry.event(), device_);
    if (status >= 0) continue;
    note_failure(entry, status);
    break;
  }
  for (const Kept& kept : kept_) {
    if (failed_op_ || kept.task->failure().empty()) continue;
    failed_op_ = kept.op;
    failed_why_ = std::string(kept.op) + ": the host's part failed: " + kept.task->failure() + kept.source.text();
  }
  for (const TicketPtr& writer : writers_) {
    if (failed_op_ || !writer->is_failed()) continue;
    failed_why_ = writer->failure();
    failed_queue_ = writer->failed_queue();
    failed_status_ = writer->failed_status();
    failed_op_ = "what it reads";
  }
  writers_.clear();
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
  if (!have_ended() || !have_writers_ended()) return false;
  settle();
  return true;
}

void Ticket::ring_at_ends(const Bell& bell) {
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (is_last_of_queue(i)) bell.attach(entries_[i].event());
}

void Ticket::wait_quietly(bool is_patient) noexcept {
  if (state_.load(std::memory_order_acquire) >= State::done) return;
  {
    MutexLock lock(mutex_);
    while (state_.load(std::memory_order_relaxed) == State::open) closed_.wait(mutex_);
  }
  if (is_done()) return;
  const auto start = Watchdog::Clock::now();
  const Waiting waiting = watchdog_->waiting();
  const Bell bell(is_patient && waiting == Waiting::looks ? Waiting::naps : waiting);
  ring_at_ends(bell);
  while (!is_done()) {
    if (watchdog_->ends_wait(start, device_, [this] { return pending_text(); })) return abandon(-1, watchdog_->why());
    bell.wait();
  }
}

void Ticket::wait_so_far() {
  const auto ended = [&] {
    MutexLock lock(mutex_);
    return have_ended();
  };
  if (!ended()) {
    const auto start = Watchdog::Clock::now();
    const Bell bell(watchdog_->waiting());
    ring_at_ends(bell);
    while (!ended()) {
      if (watchdog_->ends_wait(start, device_, [this] { return pending_text(); }))
        watchdog_->check("waiting for the device", device_);
      bell.wait();
    }
  }
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    const cl_int status = watchdog_->status_of(entry.event(), device_);
    if (status < 0)
      throw DeviceError(std::string(entry.op) + ": the launch failed on " + device_ + ": " +
                            launch_status_name(status) + entry.source.text(),
                        "clWaitForEvents", launch_status_name(status), device_);
  }
}

bool Ticket::has_ended(const Entry& entry) const {
  bool is_known = true;
  return watchdog_->status_of(entry.event(), device_, &is_known) <= CL_COMPLETE && is_known;
}

int Ticket::pending_queue() const {
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_)
    if (!has_ended(entry)) return entry.queue;
  return -1;
}

// "3 commands, the first of matmul; result [3, 5], kernel ..., layer ..."
std::string Ticket::pending_text() const {
  MutexLock lock(mutex_);
  return pending_text_locked();
}

std::string Ticket::pending_text_locked() const {
  const Entry* first = nullptr;
  std::size_t count = 0;
  for (const Entry& entry : entries_) {
    if (has_ended(entry)) continue;
    ++count;
    if (!first) first = &entry;
  }
  if (!first) return "the device";
  return std::to_string(count) + (count == 1 ? " command, " : " commands, the first of ") + first->op +
         first->source.text();
}

int Ticket::failed_queue() const {
  if (!is_failed()) return -1;
  MutexLock lock(mutex_);
  return failed_queue_;
}

cl_int Ticket::failed_status() const {
  MutexLock lock(mutex_);
  return failed_status_;
}

void Ticket::abandon(int queue, const std::string& why) {
  MutexLock lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::closed) return;
  for (const Entry& entry : entries_)
    if (!failed_op_ && watchdog_->status_of(entry.event(), device_) != CL_COMPLETE) failed_op_ = entry.op;
  if (!failed_op_) failed_op_ = keep_op_name(why);
  keep_for_good(std::move(entries_));  // the driver may read the events, and call the functions, at any time
  keep_for_good(std::move(kept_));
  entries_.clear();
  kept_.clear();
  writers_.clear();
  failed_why_ = std::string(failed_op_) + ": " + device_ + " was given up: " + why;
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
