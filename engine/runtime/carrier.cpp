#include "runtime/carrier.h"

#include <cstring>

#include "core/threads.h"
#include "runtime/protect.h"
#include "runtime/runtime.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

// Who waits for the ticket looks after the time, and may give up one device alone: then the ticket ends here, too.
bool has_gone_well(const Carrier::Job& job, const cl::Event& event) {
  Watchdog& watchdog = *job.from.space->runtime().watchdog();
  const auto is_over = [&] { return watchdog.is_given_up() || job.ticket->is_done(); };
  try {
    watchdog.wait_until(event(), "clEnqueueNDRangeKernel", "transfer", job.from.space->name(), is_over);
    return true;
  } catch (const DeviceError&) {  // the ticket of that command reports it
    return false;
  }
}

// Makes a call that enqueues something and gives its event, and waits for that.
template <class Enqueue>
void run_and_wait(Space& space, const cl::CommandQueue& queue, const char* call, const Enqueue& enqueue) {
  Watchdog& watchdog = *space.runtime().watchdog();
  cl::Event event;
  check_cl(watchdog.call(call, space.name(), [&] { return enqueue(queue(), &event()); }), call, space.name());
  check_cl(watchdog.call("clFlush", space.name(), [&] { return clFlush(queue()); }), "clFlush", space.name());
  watchdog.wait_for(event(), call, "transfer", space.name(), [&] { return space.runtime().pending_text(); });
}

// What waits for an event that cannot be ended would wait for ever.
void end_event(Watchdog& watchdog, const cl::Event& event, cl_int how, const Space& space) {
  const cl_int status =
      watchdog.call("clSetUserEventStatus", space.name(), [&] { return clSetUserEventStatus(event(), how); });
  if (status != CL_SUCCESS)
    watchdog.give_up("clSetUserEventStatus failed on " + space.name() + ": " + status_name(status));
}

}  // namespace

Carrier::Carrier(Runtime& runtime) {
  for (int s = 0; s < runtime.space_count(); ++s) {
    const Space& space = runtime.space(s);
    queues_.push_back(make_queue(space.context(), space.first_device().handle(), 0, space.name()));
  }
  thread_ = start_thread("transfers between devices", [this] { run(); });
}

Carrier::~Carrier() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

int Carrier::index_of(const Space& space) { return space.index(); }

cl::Event Carrier::make_event(const Space& space) {
  return on_device(space.name(), [&] { return cl::UserEvent(space.context()); });
}

Carrier::Side Carrier::side_of(Storage& storage, std::size_t offset) {
  Side side;
  side.space = &storage.space();
  if (!storage.binds_pointer()) {
    assign(side.buffer, storage.buffer(), storage.space().name());
    side.offset = offset;
    return side;
  }
  side.pointer = static_cast<std::byte*>(storage.device_pointer()) + offset;
  // Only the driver's threads may touch closed pages.
  side.is_direct = wanted_protection() == Protection::off && needs_no_map(storage.mode());
  return side;
}

void Carrier::add(Job job) {
  MutexLock lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

bool Carrier::read(void* event, double* start, double* end) const {
  const auto& times = *static_cast<std::shared_ptr<Times>*>(event);
  *start = times->start;
  *end = times->end;
  return times->end > 0;
}

void Carrier::release(void* event) const { delete static_cast<std::shared_ptr<Times>*>(event); }

void Carrier::carry(const Job& job) {
  const std::size_t bytes = job.bytes;
  const auto copy = [&](Space& space, void* to, const void* from) {
    run_and_wait(space, queue_of(space), "clEnqueueSVMMemcpy", [&](cl_command_queue queue, cl_event* event) {
      return clEnqueueSVMMemcpy(queue, CL_FALSE, to, from, bytes, 0, nullptr, event);
    });
  };
  const std::byte* source = job.from.pointer;
  if (!job.from.is_direct) {
    std::byte* landing = job.to.pointer;
    if (!job.to.is_direct) {
      if (staging_.size() < bytes) staging_.resize(bytes);
      landing = staging_.data();
    }
    if (job.from.pointer)
      copy(*job.from.space, landing, job.from.pointer);
    else
      run_and_wait(*job.from.space, queue_of(*job.from.space), "clEnqueueReadBuffer",
                   [&](cl_command_queue queue, cl_event* event) {
                     return clEnqueueReadBuffer(queue, job.from.buffer(), CL_FALSE, job.from.offset, bytes, landing, 0,
                                                nullptr, event);
                   });
    if (job.to.is_direct) return;
    source = landing;
  }
  if (job.to.is_direct)
    std::memcpy(job.to.pointer, source, bytes);
  else if (job.to.pointer)
    copy(*job.to.space, job.to.pointer, source);
  else
    run_and_wait(*job.to.space, queue_of(*job.to.space), "clEnqueueWriteBuffer",
                 [&](cl_command_queue queue, cl_event* event) {
                   return clEnqueueWriteBuffer(queue, job.to.buffer(), CL_FALSE, job.to.offset, bytes, source, 0,
                                               nullptr, event);
                 });
}

void Carrier::run() {
  for (;;) {
    Job job;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && !is_stopping_) changed_.wait(mutex_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    bool is_well = true;
    Watchdog& watchdog = *job.from.space->runtime().watchdog();
    for (const cl::Event& event : job.after) is_well = has_gone_well(job, event) && is_well;
    const double start = steady_seconds();
    if (is_well) {
      try {
        carry(job);
      } catch (const std::exception&) {  // the ticket reports it, and everything that the ticket writes is lost
        is_well = false;
      }
    }
    if (job.times) *job.times = {start, steady_seconds()};
    if (job.verdict()) end_event(watchdog, job.verdict, is_well ? CL_COMPLETE : CL_OUT_OF_RESOURCES, *job.to.space);
    end_event(watchdog, job.at_source, CL_COMPLETE, *job.from.space);
    end_event(watchdog, job.at_target, CL_COMPLETE, *job.to.space);
  }
}

}  // namespace samebytes::detail
