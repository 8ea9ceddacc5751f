// A ticket is one submission to the queues: everything enqueued by one evaluation. Storages remember the ticket that used
// them last; waiting for a ticket throws the DeviceError of the launch that failed, with its op.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/opencl.h"

namespace samebytes::detail {

class Ticket {
 public:
  explicit Ticket(std::uint64_t number) : number_(number) {}

  std::uint64_t number() const { return number_; }
  void add(cl_event event, std::string what);  // takes over the event; the last one of each queue is enough
  bool is_done() const;                        // never blocks; a failed ticket is done
  void wait();                                 // blocks; throws DeviceError if something failed (every time it is asked)
  void wait_quietly() noexcept;                // blocks; for destructors and the reaper

 private:
  struct Entry {
    Handle<cl_event> event;
    std::string what;
  };
  std::uint64_t number_;
  std::vector<Entry> entries_;
  mutable std::atomic<bool> done_{false};
};
using TicketPtr = std::shared_ptr<Ticket>;

}  // namespace samebytes::detail
