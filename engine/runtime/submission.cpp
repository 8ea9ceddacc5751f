// Every training step takes this path, so microseconds count. One event per launch is kept: it names the op that failed
// and adds nothing to the driver's own work (a launch costs 0.07 us more than the driver's own 0.3 us on PoCL 3.1 with
// 2 cores; submission_speed_test).
#include "runtime/carrier.h"
#include "runtime/device_times.h"
#include "runtime/faults.h"
#include "runtime/inside_calls.h"
#include "runtime/runtime.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "samebytes/error.h"

namespace samebytes::detail {

thread_local std::shared_ptr<DeviceTimes> device_times;

namespace {

// Whether an injected fault applies: the launch is accepted and then fails, as a GPU's may, because it waits for an
// event that ends with an error.
bool is_doomed(const char* op) {
  if (!faults().fail_launch.load(std::memory_order_relaxed)) return false;
  MutexLock lock(faults().mutex);
  return faults().failing_op == op;
}

// The event that the doomed launch waits for. Requires: no launch is running. If the launch before it ended at the same
// moment, PoCL 3.1 would submit what it has just failed, and hit an assertion or freed memory.
cl::Event make_doom(Device& device) {
  return on_device(device.info().name, [&] {
    device.finish();
    return cl::Event(cl::UserEvent(device.context()));
  });
}

// Of a launch of the engine itself, whose error names the kernel all the same.
LaunchSource own_work(const char* op, const Kernel& kernel) {
  return {std::make_shared<const LaunchInfo>(LaunchInfo{.op = op, .kernel = kernel.entry(), .layer = {}, .shape = {}}),
          {}};
}

// The injected fault for the next launch on this device.
DeviceFault fault_of(const Device& device) {
  const DeviceFault fault = faults().device_fault.load(std::memory_order_relaxed);
  if (fault == DeviceFault::none || faults().faulty_device != device.index()) return DeviceFault::none;
  if (faults().launches_before_fault.fetch_sub(1) > 0) return DeviceFault::none;
  if (fault != DeviceFault::slow) faults().device_fault = DeviceFault::none;
  return fault;
}

// Whether to wait for what an earlier submission left. A failed event counts as done: its ticket reports the failure
// and its results are lost, but work that does not read them must not fail with it.
bool is_pending(const cl::Event& event, Device& device) {
  bool is_known = true;
  return event() &&
         (device.runtime().watchdog()->status_of(event(), device.info().name, &is_known) > CL_COMPLETE || !is_known);
}

thread_local int previous_device = -1;  // of this thread's submission

struct Ending {
  std::shared_ptr<DeviceTimes> times;
  int device;
};

void CL_CALLBACK note_ending(cl_event, cl_int, void* ending) {
  const std::unique_ptr<Ending> note(static_cast<Ending*>(ending));
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  note->times->ended[static_cast<std::size_t>(note->device)] =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void watch_ending(cl_event event, int device) {
  if (!device_times || static_cast<std::size_t>(device) >= DeviceTimes::kMost) return;
  auto ending = std::make_unique<Ending>(Ending{device_times, device});
  if (clSetEventCallback(event, CL_COMPLETE, note_ending, ending.get()) != CL_SUCCESS) return;
  [[maybe_unused]] const Ending* const taken = ending.release();  // note_ending owns it now
}

void CL_CALLBACK sleep_a_while(void* microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(*static_cast<int*>(microseconds)));
}

// Later commands of this device run after these events of other devices. Where a driver that works inside the calls has
// to wait for an event, it does so in the other device's thread, which then waits for itself (PoCL 3.1's basic).
void enqueue_wait(Device& device, const std::vector<cl_event>& events, const Watchdog::Pending& pending) {
  const auto count = static_cast<cl_uint>(events.size());
  const bool is_inside = on_device(device.info().name, [&] { return works_inside_calls(device.handle()()); });
  Watchdog& watchdog = *device.runtime().watchdog();
  const std::string& name = device.info().name;
  if (is_inside) {
    for (const cl_event event : events)
      watchdog.wait_for(event, "a command", "waiting for another device", name, pending);
    return;
  }
  const auto wait = [&] { return clEnqueueBarrierWithWaitList(device.queue().get(), count, events.data(), nullptr); };
  check_cl(watchdog.call("clEnqueueBarrierWithWaitList", name, wait), "clEnqueueBarrierWithWaitList", name);
}

void flush_queue(Device& device) {
  const auto flush = [&] { return clFlush(device.queue().get()); };
  check_cl(device.runtime().watchdog()->call("clFlush", device.info().name, flush), "clFlush", device.info().name);
}

cl::Event enqueue_marker(Device& device) {
  cl::Event marker;
  const auto enqueue = [&] { return clEnqueueMarkerWithWaitList(device.queue().get(), 0, nullptr, &marker()); };
  check_cl(device.runtime().watchdog()->call("clEnqueueMarkerWithWaitList", device.info().name, enqueue),
           "clEnqueueMarkerWithWaitList", device.info().name);
  return marker;
}

// The last command on a device's queue so far. Flushes the queue: otherwise another queue could wait forever.
cl::Event reached_by(Device& device) {
  cl::Event reached = enqueue_marker(device);
  flush_queue(device);
  return reached;
}

}  // namespace

Submission::Submission(Runtime& runtime) : runtime_(runtime) {
  ticket_ = std::make_shared<Ticket>(runtime_.next_ticket_++, runtime_.device_name(), runtime_.watchdog());
  ticket_->reserve(runtime_.launches_hint_);
  previous_device = -1;
}

void Submission::acquire(Storage& storage, bool writes, const std::string& op, std::size_t offset, std::size_t length,
                         bool whole) {
  is_free_ = storage.acquire_device(ticket_, writes, op, offset, length, whole) && is_free_;
}

void Submission::begin_device(Device& device) {
  begun_ |= bit_of(device);
  if (runtime_.device_count() == 1) return;
  // One queue per device: this submission's work runs after everything of earlier submissions, and after the unmaps and
  // uploads on the queue of its space's first device.
  const Space& space = device.space();
  std::vector<cl_event> before;
  for (int other = 0; other < runtime_.device_count(); ++other)
    if (other != device.index() && &runtime_.device(other).space() == &space &&
        is_pending(runtime_.tails_[other], device))
      before.push_back(runtime_.tails_[other]());
  if (const auto& crossing = runtime_.crossings_[static_cast<std::size_t>(space.index())]; is_pending(crossing, device))
    before.push_back(crossing());
  if (!before.empty()) enqueue_wait(device, before, [this] { return pending_text(); });
  if (&device != &space.first_device() && space.has_housekeeping()) order_after(device, space.first_device());
}

void Submission::flush(Device& device) {
  if (!(unflushed_ & bit_of(device))) return;
  flush_queue(device);
  unflushed_ &= ~bit_of(device);
}

// The ticket has the event before anything else can fail.
void Submission::add_event(Device& device, cl::Event event, const char* op,
                           const std::shared_ptr<const LaunchInfo>& info, LaunchSource source) {
  const std::string& name = device.info().name;
  Watchdog& watchdog = *runtime_.watchdog();
  const auto retain = [&] { return watchdog.call("clRetainEvent", name, [&] { return clRetainEvent(event()); }); };
  const bool is_recorded = info && runtime_.recorder_.is_active();
  const cl_int recorded = is_recorded ? retain() : CL_SUCCESS;  // for the recorder, whose clock releases it
  if (is_recorded && recorded == CL_SUCCESS)
    runtime_.recorder_.add_launch(info, event(), device.clock(), device.index(), other_bytes_);
  const bool has_tail = runtime_.device_count() > 1;
  const cl_int kept = has_tail ? retain() : CL_SUCCESS;
  cl::Event tail;
  if (has_tail && kept == CL_SUCCESS) tail = cl::Event(event());
  ticket_->add(std::move(event), keep_op_name(op), device.index(), std::move(source));
  unflushed_ |= bit_of(device);
  if (has_tail) {
    if (device_times && previous_device >= 0 && previous_device != device.index())
      watch_ending(runtime_.tails_[previous_device](), previous_device);
    previous_device = device.index();
    if (kept != CL_SUCCESS)
      device.finish([this] { return pending_text(); });  // nothing is left that others would have to wait for
    replace(runtime_.tails_[device.index()], std::move(tail));
  }
  check_cl(recorded, "clRetainEvent", name);
  check_cl(kept, "clRetainEvent", name);
}

std::uint64_t Submission::enqueue(Device& device, Kernel& kernel, const Geometry& geometry, const char* op,
                                  const std::shared_ptr<const LaunchInfo>& info) {
  if (runtime_.is_dry()) return count_launches(1);
  if (!(begun_ & bit_of(device))) begin_device(device);
  std::size_t global[3];
  for (int i = 0; i < geometry.dimensions; ++i) global[i] = geometry.groups[i] * geometry.local[i];
  cl::Event event, doom;
  const DeviceFault fault = fault_of(device);
  if (is_doomed(op) || fault == DeviceFault::fail || fault == DeviceFault::hang) doom = make_doom(device);
  if (fault == DeviceFault::slow) {
    int pause = faults().slow_microseconds;
    clEnqueueNativeKernel(device.queue().get(), sleep_a_while, &pause, sizeof pause, 0, nullptr, nullptr, 0, nullptr,
                          nullptr);
  }
  const cl_int status =
      fault == DeviceFault::refuse
          ? CL_OUT_OF_RESOURCES
          : clEnqueueNDRangeKernel(device.queue().get(), kernel.get(), static_cast<cl_uint>(geometry.dimensions),
                                   nullptr, global, geometry.local, doom() ? 1 : 0, doom() ? &doom() : nullptr,
                                   &event());
  if (status != CL_SUCCESS) {
    runtime_.refused_ = device.index();
    const std::string name = status_name(status);
    std::string groups;
    for (int i = 0; i < geometry.dimensions; ++i)
      groups += (i ? "x" : "") + std::to_string(geometry.groups[i]) + "*" + std::to_string(geometry.local[i]);
    throw DeviceError(std::string(op) + ": kernel " + kernel.entry() + " (" + groups +
                          ") cannot be enqueued (clEnqueueNDRangeKernel) on " + device.info().name + ": " + name,
                      "clEnqueueNDRangeKernel", name, device.info().name);
  }
  if (doom() && fault != DeviceFault::hang) clSetUserEventStatus(doom(), CL_OUT_OF_RESOURCES);
  add_event(device, std::move(event), op, info, source_.info ? source_ : own_work(op, kernel));
  return count_launches(1);
}

std::uint64_t Submission::count_launches(std::uint64_t count) {
  runtime_.launches_.fetch_add(count, std::memory_order_relaxed);
  launches_ += count;
  return launches_ - count;
}

Submission::Mark Submission::mark(Device& device) {
  if (runtime_.is_dry() || !runtime_.tails_[device.index()]()) return {};
  Mark mark{{}, {}, device.index(), device.space().index()};
  assign(mark.event, runtime_.tails_[device.index()], device.info().name);
  return mark;
}

void Submission::order_after(Device& device, const Mark& mark) {
  if (!mark.event() || mark.device == device.index()) return;
  const bool is_here = mark.space == device.space().index();
  if (mark.device >= 0 && !is_here) return;
  if (!(begun_ & bit_of(device))) begin_device(device);
  if (mark.device >= 0) flush(runtime_.device(mark.device));  // otherwise the other queue could wait forever
  enqueue_wait(device, {is_here ? mark.event() : mark.at_source()}, [this] { return pending_text(); });
  unflushed_ |= bit_of(device);
}

void Submission::order_after(Device& device, Device& other) {
  if (device.index() == other.index() || &device.space() != &other.space() || runtime_.is_dry()) return;
  if (!(begun_ & bit_of(device))) begin_device(device);
  if (!(begun_ & bit_of(other))) begin_device(other);
  enqueue_wait(device, {reached_by(other)()}, [this] { return pending_text(); });
  unflushed_ |= bit_of(device);
}

// Waits for unfinished work of earlier submissions, and for this one's unmaps and uploads.
void Submission::begin_transfers() {
  if (runtime_.is_dry()) return;
  for (int d = 0; d < runtime_.device_count(); ++d) {
    Device& device = runtime_.device(d);
    const cl::Event& tail = runtime_.tails_[static_cast<std::size_t>(d)];
    if (is_pending(tail, device)) assign(before_transfers_.emplace_back(), tail, device.info().name);
  }
  for (const auto& space : runtime_.spaces_) {
    if (space->has_housekeeping()) before_transfers_.push_back(reached_by(space->first_device()));
  }
}

Submission::Mark Submission::transfer(const Crossing& crossing, const std::vector<const Mark*>& after, const char* op,
                                      const std::shared_ptr<const LaunchInfo>& info) {
  runtime_.count_crossing(crossing.bytes, op);
  count_launches(1);
  if (runtime_.is_dry()) return {};
  if (!runtime_.carrier_) runtime_.carrier_ = std::make_unique<Carrier>(runtime_);
  Carrier::Job job;
  job.after.swap(before_transfers_);
  for (const Mark* mark : after) {
    if (!mark->event() || mark->device < 0) continue;  // transfers run in order
    flush(runtime_.device(mark->device));
    assign(job.after.emplace_back(), mark->event, runtime_.device(mark->device).info().name);
  }
  job.from = Carrier::side_of(*crossing.from, crossing.from_offset);
  job.to = Carrier::side_of(*crossing.to, crossing.to_offset);
  job.bytes = crossing.bytes;
  job.ticket = ticket_;
  Mark mark;
  mark.space = job.to.space->index();
  job.at_source = Carrier::make_event(*job.from.space);
  job.at_target = Carrier::make_event(*job.to.space);
  job.verdict = Carrier::make_event(*job.to.space);
  const std::string &source = job.from.space->name(), &target = job.to.space->name();
  assign(mark.at_source, job.at_source, source);
  assign(mark.event, job.at_target, target);
  assign(runtime_.crossings_[static_cast<std::size_t>(job.from.space->index())], job.at_source, source);
  assign(runtime_.crossings_[static_cast<std::size_t>(mark.space)], job.at_target, target);
  // Each target has its own queue; the ticket waits for the last event of each.
  cl::Event verdict;
  assign(verdict, job.verdict, target);
  ticket_->add(std::move(verdict), keep_op_name(op), runtime_.lane_count() + mark.space);
  if (info && runtime_.recorder_.is_active()) {
    job.times = std::make_shared<Carrier::Times>();
    runtime_.recorder_.add_launch(info, new std::shared_ptr<Carrier::Times>(job.times), *runtime_.carrier_,
                                  runtime_.lane_count(), other_bytes_);
  }
  runtime_.carrier_->add(std::move(job));
  return mark;
}

void Submission::enqueue_call(Device& device, const char* op, const std::function<int(const cl::CommandQueue&)>& fn,
                              const std::shared_ptr<const LaunchInfo>& info) {
  if (runtime_.is_dry()) {
    count_launches(1);
    return;
  }
  if (!(begun_ & bit_of(device))) begin_device(device);
  const int launches = fn(device.queue());
  add_event(device, enqueue_marker(device), op, info, source_);
  count_launches(static_cast<std::uint64_t>(launches));
}

namespace {
void CL_CALLBACK start_task(void* argument) { static_cast<HostTask*>(*static_cast<void**>(argument))->start(); }
}  // namespace

void Submission::enqueue_host(Device& device, const char* op, std::shared_ptr<HostTask> task) {
  if (runtime_.is_dry()) {
    count_launches(1);
    return;
  }
  if (!(begun_ & bit_of(device))) begin_device(device);
  cl::Event event, doom;
  if (is_doomed(op)) doom = make_doom(device);
  void* argument = task.get();  // the driver copies it
  const cl_int status = clEnqueueNativeKernel(device.queue().get(), start_task, &argument, sizeof argument, 0, nullptr,
                                              nullptr, doom() ? 1 : 0, doom() ? &doom() : nullptr, &event());
  if (status != CL_SUCCESS) {
    runtime_.refused_ = device.index();
    throw DeviceError(std::string(op) + ": the host's part cannot be enqueued (clEnqueueNativeKernel) on " +
                          device.info().name + ": " + status_name(status),
                      "clEnqueueNativeKernel", status_name(status), device.info().name);
  }
  if (doom()) clSetUserEventStatus(doom(), CL_OUT_OF_RESOURCES);
  ticket_->keep(std::move(task), keep_op_name(op), source_);
  add_event(device, std::move(event), op, nullptr, source_);
  count_launches(1);
}

void Submission::close() noexcept {
  if (is_finished_) return;
  is_finished_ = true;
  // Unmaps and uploads that no launch followed also belong to this ticket.
  for (const auto& space : runtime_.spaces_) {
    Device& first = space->first_device();
    if (!space->take_housekeeping() || (unflushed_ & bit_of(first))) continue;
    try {
      ticket_->add(enqueue_marker(first), "unmap", first.index());
      unflushed_ |= bit_of(first);
    } catch (const DeviceError& error) {
      runtime_.watchdog()->give_up(error.what());
    }
  }
  if (device_times)
    for (const auto& device : runtime_.devices_)
      if (const auto& tail = runtime_.tails_[device->index()]; tail() && (begun_ & bit_of(*device)))
        watch_ending(tail(), device->index());
  for (int i = 0; i < runtime_.device_count(); ++i) try {
      if (unflushed_ & bit_of(runtime_.device(i))) flush_queue(runtime_.device(i));
    } catch (const DeviceError& error) {  // what was enqueued may never run
      runtime_.watchdog()->give_up(error.what());
    }
  if (launches_ > runtime_.launches_hint_) runtime_.launches_hint_ = launches_;
  ticket_->close();
  if (is_direct_) return;
  MutexLock lock(runtime_.mutex_);
  runtime_.in_flight_.push_back(ticket_);
}

TicketPtr Submission::finish() {
  close();
  std::uint64_t done = 0;
  for (;;) {
    TicketPtr next;
    {
      MutexLock lock(runtime_.mutex_);
      std::deque<TicketPtr>& queued = runtime_.in_flight_;
      while (!queued.empty() && queued.front()->is_done()) {
        if (!runtime_.failed_ && queued.front()->is_failed()) runtime_.failed_ = queued.front();
        done = queued.front()->number();
        queued.pop_front();
      }
      next = first_to_wait_for(queued, runtime_.options_.steps_in_flight);
    }
    if (!next) break;
    const RecordedSpan span(runtime_.recorder_, "wait for device");
    next->wait_quietly();
  }
  runtime_.settle_kernels(ticket_->number(), done);
  return ticket_;
}

}  // namespace samebytes::detail
