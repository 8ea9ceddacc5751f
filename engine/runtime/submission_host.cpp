// The part of a submission that the evaluating thread does itself.
#include <algorithm>
#include <exception>
#include <functional>
#include <vector>

#include "runtime/faults.h"
#include "runtime/runtime.h"
#include "samebytes/error.h"

namespace samebytes::detail {

Submission::~Submission() {
  if (!is_finished_)
    for (const std::function<void()>& let_go : unfinished_) try {
        let_go();
      } catch (const std::exception&) {  // the error that ends the submission is on its way
      }
  close();
}

std::string Submission::pending_text() const {
  const std::string earlier = runtime_.pending_text();
  return earlier.empty() ? ticket_->pending_text() : earlier;
}

bool Submission::can_run_directly() const {
  return is_free_ && !runtime_.is_dry() && !faults().fail_launch.load(std::memory_order_relaxed) &&
         faults().device_fault.load(std::memory_order_relaxed) == DeviceFault::none;
}

void Submission::run_directly(HostTask& task, std::uint64_t launches) {
  task.start();
  is_direct_ = true;
  count_launches(launches);
  if (!task.failure().empty()) throw Error(task.failure());
}

void Submission::run_host(const char* op, const std::vector<HostUse>& uses,
                          const std::function<void(const std::function<void*(Storage&)>&)>& fn) {
  if (runtime_.is_dry()) return;
  for (int i = 0; i < runtime_.device_count(); ++i) {
    Device& device = runtime_.device(i);
    // Includes what earlier submissions and the runtime itself enqueued: unmaps, uploads.
    if (!(begun_ & bit_of(device))) begin_device(device);
    device.finish([this] { return pending_text(); });
  }
  unflushed_ = 0;
  ticket_->wait_so_far();
  struct Handed {
    Storage* storage;
    bool writes;
    void* address;
  };
  std::vector<Handed> handed;  // each storage once, even if several of its parts are used
  for (const HostUse& use : uses) {
    const auto found =
        std::find_if(handed.begin(), handed.end(), [&](const Handed& h) { return h.storage == use.storage; });
    if (found == handed.end())
      handed.push_back({use.storage, use.writes, nullptr});
    else
      found->writes = found->writes || use.writes;
  }
  for (Handed& h : handed) h.address = h.storage->begin_host_call(h.writes, op);
  fn([&](Storage& storage) -> void* {
    for (const Handed& h : handed)
      if (h.storage == &storage) return h.address;
    throw Error(std::string(op) + ": a host call asks for a storage that it did not declare");
  });
  for (const Handed& h : handed) h.storage->end_host_call(op);
  // What the hand-over put on the first queue of a space must run before later work of the space's other devices.
  for (int i = 0; i < runtime_.device_count(); ++i) {
    Device& device = runtime_.device(i);
    if (device.space().has_housekeeping()) order_after(device, device.space().first_device());
  }
}

}  // namespace samebytes::detail
