// A ticket is one submission to the queues: everything that one evaluation enqueues. Storages remember the ticket that
// used them last; waiting for a ticket throws the DeviceError of the launch that failed, with its op. A ticket is open
// while its submission enqueues, then closed; waiting for an open one also waits until it is closed. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/mutex.h"
#include "profile/recorder.h"
#include "runtime/opencl.h"
#include "runtime/watchdog.h"

namespace samebytes::detail {

// The name of an op, kept for the life of the process: events outlive the plans whose ops they name.
const char* keep_op_name(std::string_view op);

// What the host does in the middle of a device's queue (Submission::enqueue_host). Runs on a driver thread.
class HostTask {
 public:
  virtual ~HostTask() = default;
  void start() noexcept;                               // runs, and keeps an exception's text
  const std::string& failure() const { return why_; }  // empty on success; valid once it has run

 private:
  virtual void run() = 0;
  std::string why_;
};

class Ticket {
 public:
  // Waits sleep until the driver calls, and look at the events from time to time, so that abandon() and the watchdog
  // end them and a driver that never calls cannot keep them.
  Ticket(std::uint64_t number, std::string device, WatchdogPtr watchdog)
      : number_(number), device_(std::move(device)), watchdog_(std::move(watchdog)) {}

  std::uint64_t number() const { return number_; }
  // Its weight among the submissions in flight: kStep for a step, less for a small evaluation. Set before close().
  static constexpr int kStep = 32;
  void set_weight(int weight) { weight_ = weight; }
  int weight() const { return weight_; }
  void reserve(std::size_t events);
  // Takes over the event. `op` lives forever (keep_op_name). The last event added for each queue stands for that queue.
  // `source`: whose launch it is, for the error.
  void add(cl::Event event, const char* op, int queue, LaunchSource source = {});
  // Keeps a host function and its data until everything is complete; if it failed, so does the ticket.
  void keep(std::shared_ptr<HostTask> task, const char* op, LaunchSource source = {});
  // It uses bytes that `writer` has still to write: if that one fails, so does this one. Requires: this one is open,
  // and `writer` was made before it.
  void reads_from(const std::shared_ptr<Ticket>& writer);
  void close();          // nothing is added afterwards
  bool is_done() const;  // never blocks; a failed ticket is done
  bool is_failed() const { return state_.load(std::memory_order_acquire) == State::failed; }  // known to have failed
  void wait();  // blocks; throws DeviceError if something failed (at every call)
  // Blocks; for destructors and the reaper. is_patient: nobody waits for this wait.
  void wait_quietly(bool is_patient = false) noexcept;
  void wait_so_far();                // for the submission itself: everything added up to now
  std::string failure() const;       // "matmul: CL_OUT_OF_RESOURCES"; empty if nothing failed
  std::string pending_text() const;  // what has not ended
  int pending_queue() const;         // of the first command of that; -1: none
  void throw_if_failed() const;
  int failed_queue() const;  // queue of the launch that failed first; -1 if none did
  // Stops all waiting: the ticket has failed, and its unfinished commands may still run at any time. Requires: the
  // ticket is closed.
  void abandon(int queue, const std::string& why);
  bool is_abandoned() const { return is_abandoned_.load(std::memory_order_acquire); }

 private:
  enum class State : std::uint8_t { open, closed, done, failed };
  struct Entry {
    cl::Event event;
    const char* op;
    int queue;
    LaunchSource source;
  };
  struct Kept {
    std::shared_ptr<HostTask> task;
    const char* op;
    LaunchSource source;
  };
  cl_int failed_status() const;
  bool is_last_of_queue(std::size_t entry) const SAMEBYTES_REQUIRES(mutex_);
  bool have_ended() const SAMEBYTES_REQUIRES(mutex_);  // all commands added so far
  bool have_writers_ended() const SAMEBYTES_REQUIRES(mutex_);
  void note_failure(const Entry& entry, cl_int status) const SAMEBYTES_REQUIRES(mutex_);
  void settle() const SAMEBYTES_REQUIRES(mutex_);  // requires: have_ended() and have_writers_ended()
  void ring_at_ends(const Bell& bell);
  bool has_ended(const Entry& entry) const;
  std::string pending_text_locked() const SAMEBYTES_REQUIRES(mutex_);

  const std::uint64_t number_;
  const std::string device_;
  const WatchdogPtr watchdog_;
  int weight_ = kStep;
  std::atomic<bool> is_abandoned_{false};
  mutable std::atomic<State> state_{State::open};
  mutable Mutex mutex_;
  mutable CondVar closed_;
  mutable std::vector<Entry> entries_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable std::vector<Kept> kept_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable std::vector<std::shared_ptr<Ticket>> writers_ SAMEBYTES_GUARDED_BY(mutex_);  // of what it reads
  mutable std::string failed_why_ SAMEBYTES_GUARDED_BY(mutex_);  // from a host function, or a device that was given up
  mutable LaunchSource failed_source_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable const char* failed_op_ SAMEBYTES_GUARDED_BY(mutex_) = nullptr;
  mutable cl_int failed_status_ SAMEBYTES_GUARDED_BY(mutex_) = CL_SUCCESS;  // OpenCL's status, if there is one
  mutable int failed_queue_ SAMEBYTES_GUARDED_BY(mutex_) = -1;
};
using TicketPtr = std::shared_ptr<Ticket>;

// The ticket to wait for if more than `steps` are in flight, else null; `queued`: oldest first. For small ones, waits
// until half of their places are free: waking up takes longer than the work of one.
TicketPtr first_to_wait_for(const std::deque<TicketPtr>& queued, int steps);

}  // namespace samebytes::detail
