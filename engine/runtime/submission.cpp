// The path of every training step: microseconds count here. One event per launch is kept, because it names the op that
// failed and costs nothing that the driver does not spend anyway (a launch costs 0.07 us more than the driver's own
// 0.3 us on PoCL 3.1 with 2 cores; submission_speed_test).
#include "runtime/faults.h"
#include "runtime/runtime.h"

#include <algorithm>
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

std::uint64_t bit_of(const Device& device) { return std::uint64_t{1} << device.index(); }

// A launch that is accepted and then fails, as a GPU's may: it waits for an event that ends with an error.
bool is_doomed(const char* op) {
  if (!faults().fail_launch.load(std::memory_order_relaxed)) return false;
  MutexLock lock(faults().mutex);
  return faults().failing_op == op;
}

}  // namespace

Submission::Submission(Runtime& runtime) : runtime_(runtime) {
  ticket_ = std::make_shared<Ticket>(runtime_.next_ticket_++, runtime_.device_name());
  ticket_->reserve(runtime_.launches_hint_);
}

Submission::~Submission() { close(); }

void Submission::acquire(Storage& storage, bool writes, const std::string& op, std::size_t offset, std::size_t length,
                         bool whole) {
  storage.acquire_device(ticket_, writes, op, offset, length, whole);
}

void Submission::begin_device(Device& device) {
  begun_ |= bit_of(device);
  if (runtime_.device_count() == 1) return;
  // One queue per device: what this submission does here comes after everything of the submissions before it, and after
  // the unmaps and uploads on the first device's queue.
  std::vector<cl_event> before;
  for (int other = 0; other < runtime_.device_count(); ++other)
    if (other != device.index() && runtime_.tails_[other]) before.push_back(runtime_.tails_[other].get());
  if (!before.empty())
    check_cl(clEnqueueBarrierWithWaitList(device.queue(), static_cast<cl_uint>(before.size()), before.data(), nullptr),
             "clEnqueueBarrierWithWaitList", device.info().name);
  if (device.index() != 0 && runtime_.has_housekeeping_.load()) order_after(device, runtime_.device(0));
}

void Submission::add_event(Device& device, cl_event event, const char* op,
                           const std::shared_ptr<const LaunchInfo>& info) {
  if (info && runtime_.recorder_.is_active()) {
    clRetainEvent(event);
    runtime_.recorder_.add_launch(info, event, device.clock(), device.index(), other_bytes_);
  }
  if (runtime_.device_count() > 1) {
    clRetainEvent(event);
    runtime_.tails_[device.index()] = Handle<cl_event>(event);
  }
  ticket_->add(event, keep_op_name(op), device.index());
  unflushed_ |= bit_of(device);
}

std::uint64_t Submission::enqueue(Device& device, Kernel& kernel, const Geometry& geometry, const char* op,
                                  const std::shared_ptr<const LaunchInfo>& info) {
  if (runtime_.is_dry()) return count_launches(1);
  if (!(begun_ & bit_of(device))) begin_device(device);
  std::size_t global[3];
  for (int i = 0; i < geometry.dimensions; ++i) global[i] = geometry.groups[i] * geometry.local[i];
  cl_event event = nullptr;
  Handle<cl_event> doom;
  if (is_doomed(op)) doom = Handle<cl_event>(clCreateUserEvent(device.context(), nullptr));
  const cl_event wait_for = doom.get();
  const cl_int status =
      clEnqueueNDRangeKernel(device.queue(), kernel.get(), static_cast<cl_uint>(geometry.dimensions), nullptr, global,
                             geometry.local, doom ? 1 : 0, doom ? &wait_for : nullptr, &event);
  if (status != CL_SUCCESS) {
    const std::string name = status_name(status);
    std::string groups;
    for (int i = 0; i < geometry.dimensions; ++i)
      groups += (i ? "x" : "") + std::to_string(geometry.groups[i]) + "*" + std::to_string(geometry.local[i]);
    throw DeviceError(std::string(op) + ": kernel " + kernel.entry() + " (" + groups + ") cannot be enqueued on " +
                          device.info().name + ": " + name,
                      "clEnqueueNDRangeKernel", name, device.info().name);
  }
  if (doom) clSetUserEventStatus(doom.get(), CL_OUT_OF_RESOURCES);
  add_event(device, event, op, info);
  return count_launches(1);
}

std::uint64_t Submission::count_launches(std::uint64_t count) {
  runtime_.launches_.fetch_add(count, std::memory_order_relaxed);
  launches_ += count;
  return launches_ - count;
}

Submission::Mark Submission::mark(Device& device) {
  if (runtime_.is_dry() || !runtime_.tails_[device.index()]) return {};
  clRetainEvent(runtime_.tails_[device.index()].get());
  return {Handle<cl_event>(runtime_.tails_[device.index()].get()), device.index()};
}

void Submission::order_after(Device& device, const Mark& mark) {
  if (!mark.event || mark.device == device.index()) return;
  if (!(begun_ & bit_of(device))) begin_device(device);
  Device& other = runtime_.device(mark.device);
  if (unflushed_ & bit_of(other)) {  // else the other queue could wait for ever
    check_cl(clFlush(other.queue()), "clFlush", other.info().name);
    unflushed_ &= ~bit_of(other);
  }
  const cl_event event = mark.event.get();
  check_cl(clEnqueueBarrierWithWaitList(device.queue(), 1, &event, nullptr), "clEnqueueBarrierWithWaitList",
           device.info().name);
  unflushed_ |= bit_of(device);
}

void Submission::order_after(Device& device, Device& other) {
  if (device.index() == other.index() || runtime_.is_dry()) return;
  if (!(begun_ & bit_of(device))) begin_device(device);
  if (!(begun_ & bit_of(other))) begin_device(other);
  Handle<cl_event> reached;
  check_cl(clEnqueueMarkerWithWaitList(other.queue(), 0, nullptr, reached.out()), "clEnqueueMarkerWithWaitList",
           other.info().name);
  check_cl(clFlush(other.queue()), "clFlush", other.info().name);  // else the other queue could wait for ever
  const cl_event event = reached.get();
  check_cl(clEnqueueBarrierWithWaitList(device.queue(), 1, &event, nullptr), "clEnqueueBarrierWithWaitList",
           device.info().name);
  unflushed_ |= bit_of(device);
}

void Submission::enqueue_call(Device& device, const char* op, const std::function<int(cl_command_queue)>& fn,
                              const std::shared_ptr<const LaunchInfo>& info) {
  if (runtime_.is_dry()) {
    count_launches(1);
    return;
  }
  if (!(begun_ & bit_of(device))) begin_device(device);
  const int launches = fn(device.queue());
  cl_event event = nullptr;
  check_cl(clEnqueueMarkerWithWaitList(device.queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList",
           device.info().name);
  add_event(device, event, op, info);
  count_launches(static_cast<std::uint64_t>(launches));
}

namespace {
void CL_CALLBACK start_task(void* argument) { (*static_cast<HostTask**>(argument))->start(); }
}  // namespace

void Submission::enqueue_host(Device& device, const char* op, std::shared_ptr<HostTask> task) {
  if (runtime_.is_dry()) {
    count_launches(1);
    return;
  }
  if (!(begun_ & bit_of(device))) begin_device(device);
  cl_event event = nullptr;
  Handle<cl_event> doom;
  if (is_doomed(op)) doom = Handle<cl_event>(clCreateUserEvent(device.context(), nullptr));
  const cl_event wait_for = doom.get();
  HostTask* argument = task.get();  // the driver copies it
  check_cl(clEnqueueNativeKernel(device.queue(), start_task, &argument, sizeof argument, 0, nullptr, nullptr,
                                 doom ? 1 : 0, doom ? &wait_for : nullptr, &event),
           "clEnqueueNativeKernel", device.info().name);
  if (doom) clSetUserEventStatus(doom.get(), CL_OUT_OF_RESOURCES);
  ticket_->keep(std::move(task), keep_op_name(op));
  add_event(device, event, op, nullptr);
  count_launches(1);
}

void Submission::run_host(const char* op, const std::vector<HostUse>& uses,
                          const std::function<void(const std::function<void*(Storage&)>&)>& fn) {
  if (runtime_.is_dry()) return;
  for (int i = 0; i < runtime_.device_count(); ++i) {
    Device& device = runtime_.device(i);
    // Also what earlier submissions and the runtime itself put there: unmaps, uploads.
    if (!(begun_ & bit_of(device))) begin_device(device);
    check_cl(clFinish(device.queue()), "clFinish", device.info().name);
  }
  unflushed_ = 0;
  ticket_->wait_so_far();
  struct Handed {
    Storage* storage;
    bool writes;
    void* address;
  };
  std::vector<Handed> handed;  // each storage once, though several of its parts may be used
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
  // What the hand-over put on the first queue must come before later work of the other devices.
  if (runtime_.has_housekeeping_.load())
    for (int i = 1; i < runtime_.device_count(); ++i) order_after(runtime_.device(i), runtime_.device(0));
}

void Submission::close() noexcept {
  if (is_finished_) return;
  is_finished_ = true;
  // Unmaps and uploads that no launch followed still belong to this ticket.
  const bool has_housekeeping = runtime_.has_housekeeping_.exchange(false);
  if (has_housekeeping && !(unflushed_ & 1)) {
    cl_event event = nullptr;
    Device& first = runtime_.device(0);
    if (clEnqueueMarkerWithWaitList(first.queue(), 0, nullptr, &event) == CL_SUCCESS) {
      ticket_->add(event, "unmap", 0);
      unflushed_ |= 1;
    }
  }
  for (int i = 0; i < runtime_.device_count(); ++i)
    if (unflushed_ & bit_of(runtime_.device(i))) clFlush(runtime_.device(i).queue());
  if (launches_ > runtime_.launches_hint_) runtime_.launches_hint_ = launches_;
  ticket_->close();
  MutexLock lock(runtime_.mutex_);
  runtime_.in_flight_.push_back(ticket_);
}

TicketPtr Submission::finish() {
  close();
  for (;;) {
    TicketPtr oldest;
    {
      MutexLock lock(runtime_.mutex_);
      std::deque<TicketPtr>& queued = runtime_.in_flight_;
      while (!queued.empty() && queued.front()->is_done()) {
        if (!runtime_.failed_ && queued.front()->is_failed()) runtime_.failed_ = queued.front();
        queued.pop_front();
      }
      if (queued.size() <= static_cast<std::size_t>(runtime_.options_.steps_in_flight)) break;
      oldest = queued.front();
    }
    const RecordedSpan span(runtime_.recorder_, "wait for device");
    oldest->wait_quietly();
  }
  return ticket_;
}

}  // namespace samebytes::detail
