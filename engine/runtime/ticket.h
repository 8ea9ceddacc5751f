// A ticket is one submission to the queues: everything enqueued by one evaluation. Storages remember the ticket that
// used them last; waiting for a ticket throws the DeviceError of the launch that failed, with its op. A ticket is open
// while its submission enqueues, then closed; waiting for an open one waits for the closing too. Thread-safe.
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

namespace samebytes::detail {

// The text of an op, kept for the life of the process: events outlive the plans whose ops they name.
const char* keep_op_name(std::string_view op);

// What the host does in the middle of a device's queue (Submission::enqueue_host). Runs on a thread of the driver.
class HostTask {
 public:
  virtual ~HostTask() = default;
  void start() noexcept;                               // runs, and keeps what it threw
  const std::string& failure() const { return why_; }  // empty where it went well; once it has run

 private:
  virtual void run() = 0;
  std::string why_;
};

class Ticket {
 public:
  // is_polled: waits do not leave the thread to the driver, which calls when events end; they look at them now and
  // then, too, so that abandon() ends them.
  explicit Ticket(std::uint64_t number, std::string device, bool is_polled = false)
      : number_(number), device_(std::move(device)), is_polled_(is_polled) {}

  std::uint64_t number() const { return number_; }
  // How much it counts in what is in flight: kStep for a step, less for a small evaluation. Set before it is closed.
  static constexpr int kStep = 32;
  void set_weight(int weight) { weight_ = weight; }
  int weight() const { return weight_; }
  void reserve(std::size_t events);
  // Takes over the event. `op` lives for ever (keep_op_name). The last event added for each queue stands for that
  // queue.
  // `source`: whose launch it is, for the error.
  void add(cl::Event event, const char* op, int queue, LaunchSource source = {});
  // Keeps a host function, and what it works on, until everything is complete; where it failed, so has the ticket.
  void keep(std::shared_ptr<HostTask> task, const char* op, LaunchSource source = {});
  void close();          // nothing is added any more
  bool is_done() const;  // never blocks; a failed ticket is done
  bool is_failed() const { return state_.load(std::memory_order_acquire) == State::failed; }  // known to have failed
  void wait();                   // blocks; throws DeviceError if something failed (every time it is asked)
  void wait_quietly() noexcept;  // blocks; for destructors and the reaper
  void wait_so_far();            // for the submission itself: everything added up to now
  std::string failure() const;   // "matmul: CL_OUT_OF_RESOURCES", empty where nothing failed
  void throw_if_failed() const;
  int failed_queue() const;  // of the launch that failed first; -1 where none did
  // Nobody waits for what is not complete: the ticket has failed, and its commands may still run at any time.
  // Requires: is_polled, and that the ticket is closed.
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
  std::vector<cl::Event> last_events() const SAMEBYTES_REQUIRES(mutex_);  // one of each queue
  void settle() const SAMEBYTES_REQUIRES(mutex_);                         // every event is complete

  const std::uint64_t number_;
  const std::string device_;
  const bool is_polled_;
  int weight_ = kStep;
  std::atomic<bool> is_abandoned_{false};
  mutable std::atomic<State> state_{State::open};
  mutable Mutex mutex_;
  mutable CondVar closed_;
  mutable std::vector<Entry> entries_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable std::vector<Kept> kept_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable std::string failed_why_ SAMEBYTES_GUARDED_BY(mutex_);  // of a host function, and of a device given up
  mutable LaunchSource failed_source_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable const char* failed_op_ SAMEBYTES_GUARDED_BY(mutex_) = nullptr;
  mutable cl_int failed_status_ SAMEBYTES_GUARDED_BY(mutex_) = CL_SUCCESS;  // what OpenCL said, if it did
  mutable int failed_queue_ SAMEBYTES_GUARDED_BY(mutex_) = -1;
};
using TicketPtr = std::shared_ptr<Ticket>;

// The one to wait for where more than `steps` are in flight, else null; `queued`: the oldest first. Small ones are
// waited for until half of their places are free: to be woken takes longer than what one of them does.
TicketPtr first_to_wait_for(const std::deque<TicketPtr>& queued, int steps);

}  // namespace samebytes::detail
