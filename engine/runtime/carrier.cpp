#include "runtime/carrier.h"

#include <cstring>

#include "runtime/protect.h"
#include "runtime/runtime.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

bool has_gone_well(cl_event event) {
  clWaitForEvents(1, &event);
  cl_int status = CL_COMPLETE;
  clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status >= 0;
}

}  // namespace

Carrier::Carrier(Runtime& runtime) {
  for (int s = 0; s < runtime.space_count(); ++s) {
    const Space& space = runtime.space(s);
    cl_int status = CL_SUCCESS;
    queues_.emplace_back(clCreateCommandQueue(space.context(), space.first_device().id(), 0, &status));
    check_cl(status, "clCreateCommandQueue", space.name());
  }
  thread_ = std::thread([this] { run(); });
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

Handle<cl_event> Carrier::make_event(const Space& space) {
  cl_int status = CL_SUCCESS;
  Handle<cl_event> event(clCreateUserEvent(space.context(), &status));
  check_cl(status, "clCreateUserEvent", space.name());
  return event;
}

Carrier::Side Carrier::side_of(Storage& storage, std::size_t offset) {
  Side side{.space = &storage.space()};
  if (!storage.binds_pointer()) {
    side.buffer = storage.buffer();
    side.offset = offset;
    return side;
  }
  side.pointer = static_cast<std::byte*>(storage.device_pointer()) + offset;
  // With closed pages only the driver's threads may touch them.
  side.is_direct = wanted_protection() == Protection::off &&
                   (storage.mode() == MemoryMode::fine || storage.mode() == MemoryMode::system);
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
  const std::string& reader = job.from.space->name();
  const std::string& writer = job.to.space->name();
  const std::byte* source = job.from.pointer;
  if (!job.from.is_direct) {
    std::byte* landing = job.to.pointer;
    if (!job.to.is_direct) {
      if (staging_.size() < bytes) staging_.resize(bytes);
      landing = staging_.data();
    }
    if (job.from.pointer)
      check_cl(
          clEnqueueSVMMemcpy(queue_of(*job.from.space), CL_TRUE, landing, job.from.pointer, bytes, 0, nullptr, nullptr),
          "clEnqueueSVMMemcpy", reader);
    else
      check_cl(clEnqueueReadBuffer(queue_of(*job.from.space), job.from.buffer, CL_TRUE, job.from.offset, bytes, landing,
                                   0, nullptr, nullptr),
               "clEnqueueReadBuffer", reader);
    if (job.to.is_direct) return;
    source = landing;
  }
  if (job.to.is_direct)
    std::memcpy(job.to.pointer, source, bytes);
  else if (job.to.pointer)
    check_cl(clEnqueueSVMMemcpy(queue_of(*job.to.space), CL_TRUE, job.to.pointer, source, bytes, 0, nullptr, nullptr),
             "clEnqueueSVMMemcpy", writer);
  else
    check_cl(clEnqueueWriteBuffer(queue_of(*job.to.space), job.to.buffer, CL_TRUE, job.to.offset, bytes, source, 0,
                                  nullptr, nullptr),
             "clEnqueueWriteBuffer", writer);
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
    for (const Handle<cl_event>& event : job.after) is_well = has_gone_well(event.get()) && is_well;
    const double start = steady_seconds();
    if (is_well) {
      try {
        carry(job);
      } catch (const std::exception&) {  // its ticket says so, and all that the ticket writes is lost
        is_well = false;
      }
    }
    if (job.times) *job.times = {start, steady_seconds()};
    if (job.verdict) clSetUserEventStatus(job.verdict.get(), is_well ? CL_COMPLETE : CL_OUT_OF_RESOURCES);
    clSetUserEventStatus(job.at_source.get(), CL_COMPLETE);
    clSetUserEventStatus(job.at_target.get(), CL_COMPLETE);
  }
}

}  // namespace samebytes::detail
