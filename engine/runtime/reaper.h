// A thread that waits for tickets in order and then runs the jobs that depend on them: freeing memory that a device
// still read, the deleters of adopted memory. Callers never wait, except in drain().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "core/mutex.h"
#include "runtime/ticket.h"

namespace samebytes::detail {

class Reaper {
 public:
  Reaper() = default;
  ~Reaper();  // drains

  // Runs job once the ticket is complete (null: at once, still on the reaper's thread). Never blocks. Where the system
  // starts no thread, the job waits for the next add, or for drain or the destructor, which then do the work.
  void add(TicketPtr ticket, std::function<void()> job);
  void drain();  // blocks until everything added so far has run

 private:
  struct Item {
    TicketPtr ticket;
    std::function<void()> job;
  };
  enum class Wait : std::uint8_t { for_nobody, for_more };
  void run();
  // Takes the next item and finishes it; false where there is none and, waiting for more, none will come.
  bool finish_next(Wait wait);
  static void finish(Item item);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Item> items_ SAMEBYTES_GUARDED_BY(mutex_);
  bool is_running_ SAMEBYTES_GUARDED_BY(mutex_) = false;  // somebody is running a job
  bool is_stopping_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  bool is_started_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace samebytes::detail
