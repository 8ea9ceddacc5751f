// Several devices of one engine: which of them are done, and how the engine continues without one that fails or hangs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "runtime/runtime.h"
#include "runtime/space.h"

namespace samebytes::detail {
namespace {

using Clock = std::chrono::steady_clock;

// The time until the next check, in proportion to the wait so far. Frequent checks take a core away from a CPU device.
constexpr double kShortestPause = 20e-6, kLongestPause = 500e-6;
constexpr double kLooksOfWait = 50;

}  // namespace

// Until then, a single device with one queue keeps no events for others to wait for.
void Runtime::open_spare() {
  if (is_spare_open_.load(std::memory_order_acquire)) return;
  for (int d = 0; d < own_devices_; ++d) device(d).finish();
  is_spare_open_.store(true, std::memory_order_release);
}

std::vector<cl::Event> Runtime::last_events() const {
  std::vector<cl::Event> events(tails_.size());
  for (std::size_t d = 0; d < tails_.size(); ++d) assign(events[d], tails_[d], devices_[d]->info().name);
  return events;
}

std::string Runtime::pending_text() {
  MutexLock lock(mutex_);
  for (const TicketPtr& ticket : in_flight_)
    if (!ticket->is_done()) return ticket->pending_text();
  return {};
}

Runtime::Standing Runtime::look_until_done(const std::vector<cl::Event>& events,
                                           std::chrono::steady_clock::time_point start, double limit) {
  Standing standing;
  standing.seconds.assign(events.size(), std::numeric_limits<double>::infinity());
  // From here on the watchdog's clock, which stands while the process is stopped.
  const double before = std::chrono::duration<double>(Clock::now() - start).count();
  const auto begin = Watchdog::Clock::now();
  for (;;) {
    const double passed = before + std::chrono::duration<double>(Watchdog::Clock::now() - begin).count();
    bool all = true;
    for (std::size_t d = 0; d < events.size(); ++d) {
      if (!std::isinf(standing.seconds[d])) continue;
      bool is_known = true;
      const std::string& name = devices_[d]->info().name;
      const cl_int status = events[d]() ? watchdog_->status_of(events[d](), name, &is_known) : CL_COMPLETE;
      if (!is_known) check_cl(status, "clGetEventInfo", name);
      if (status <= CL_COMPLETE)
        standing.seconds[d] = passed;
      else
        all = false;
    }
    if (watchdog_->is_given_up()) watchdog_->check("waiting for the devices", devices_.front()->info().name);
    if (all || passed > limit || watchdog_->is_stalled(begin)) break;
    const double pause = std::clamp(passed / kLooksOfWait, kShortestPause, kLongestPause);
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
  MutexLock lock(mutex_);
  for (const TicketPtr& ticket : in_flight_)
    if (standing.failed < 0 && ticket->is_done() && ticket->is_failed()) {
      standing.failed = ticket->failed_queue();
      standing.why = ticket->failure();
    }
  if (standing.failed < 0 && failed_) {
    standing.failed = failed_->failed_queue();
    standing.why = failed_->failure();
  }
  for (const TicketPtr& ticket : in_flight_)
    if (standing.why.empty() && !ticket->is_done()) {
      standing.why = "pending: " + ticket->pending_text();
      standing.silent = ticket->pending_queue();
    }
  // A transfer counts by the context that it went to.
  for (int* const device : {&standing.failed, &standing.silent})
    if (*device >= lane_count())
      *device = spaces_[static_cast<std::size_t>(*device - lane_count())]->first_device().index();
  if (refused_ >= 0) standing.failed = refused_;
  refused_ = -1;
  failed_.reset();
  std::erase_if(in_flight_, [](const TicketPtr& ticket) { return ticket->is_done(); });
  return standing;
}

// Another device that is still in use in the same space; -1: none.
int Runtime::place_beside(int device) const {
  const Space& space = devices_[static_cast<std::size_t>(device)]->space();
  for (const auto& each : devices_)
    if (&each->space() == &space && each->index() != device && each->index() < own_devices_ &&
        !is_given_up(each->index()))
      return each->index();
  return -1;
}

// Data in the first space needs a device there; other spaces are simply no longer used.
bool Runtime::can_give_up(int device) const {
  if (is_given_up(device)) return false;
  return place_beside(device) >= 0 || devices_[static_cast<std::size_t>(device)]->space().index() > 0;
}

int Runtime::give_up(int device, const std::string& why) {
  bool is_silent = false;
  {
    MutexLock lock(mutex_);
    for (const TicketPtr& ticket : in_flight_) {
      if (ticket->is_done()) continue;
      is_silent = true;
      ticket->abandon(device, why);
    }
    in_flight_.clear();
    failed_.reset();
  }
  is_given_up_[static_cast<std::size_t>(device)] = true;
  const int other = place_beside(device);
  if (other >= 0) {
    for (int& place : places_)
      if (place == device) place = other;
    Space& space = devices_[static_cast<std::size_t>(device)]->space();
    if (&space.first_device() == devices_[static_cast<std::size_t>(device)].get())
      space.set_first_device(*devices_[static_cast<std::size_t>(other)]);
  }
  // New queues: failed commands do not affect later ones, and commands stuck in an old queue stay there.
  for (cl::Event& tail : tails_) {
    if (is_silent) tail() = nullptr;  // never released
    replace(tail, cl::Event());
  }
  for (cl::Event& crossing : crossings_) {
    if (is_silent) crossing() = nullptr;
    replace(crossing, cl::Event());
  }
  for (const auto& each : devices_) each->drop_queue(!is_given_up(each->index()));
  return std::max(other, 0);
}

}  // namespace samebytes::detail
