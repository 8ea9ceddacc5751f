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

void copy_shared(const cl::CommandQueue& queue, void* to, const void* from, std::size_t bytes,
                 const std::string& device) {
  check_cl(clEnqueueSVMMemcpy(queue(), CL_TRUE, to, from, bytes, 0, nullptr, nullptr), "clEnqueueSVMMemcpy", device);
}

}  // namespace

Carrier::Carrier(Runtime& runtime) {
  for (int s = 0; s < runtime.space_count(); ++s) {
    const Space& space = runtime.space(s);
    queues_.push_back(
        on_device(space.name(), [&] { return cl::CommandQueue(space.context(), space.first_device().handle()); }));
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

cl::Event Carrier::make_event(const Space& space) {
  return on_device(space.name(), [&] { return cl::UserEvent(space.context()); });
}

Carrier::Side Carrier::side_of(Storage& storage, std::size_t offset) {
  Side side;
  side.space = &storage.space();
  if (!storage.binds_pointer()) {
    side.buffer = storage.buffer();
    side.offset = offset;
    return side;
  }
  side.pointer = static_cast<std::byte*>(storage.device_pointer()) + offset;
  // Only the driver's threads may touch closed pages.
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
      copy_shared(queue_of(*job.from.space), landing, job.from.pointer, bytes, reader);
    else
      on_device(reader, [&] {
        return queue_of(*job.from.space).enqueueReadBuffer(job.from.buffer, CL_TRUE, job.from.offset, bytes, landing);
      });
    if (job.to.is_direct) return;
    source = landing;
  }
  if (job.to.is_direct)
    std::memcpy(job.to.pointer, source, bytes);
  else if (job.to.pointer)
    copy_shared(queue_of(*job.to.space), job.to.pointer, source, bytes, writer);
  else
    on_device(writer, [&] {
      return queue_of(*job.to.space).enqueueWriteBuffer(job.to.buffer, CL_TRUE, job.to.offset, bytes, source);
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
    for (const cl::Event& event : job.after) is_well = has_gone_well(event()) && is_well;
    const double start = steady_seconds();
    if (is_well) {
      try {
        carry(job);
      } catch (const std::exception&) {  // the ticket reports it, and everything that the ticket writes is lost
        is_well = false;
      }
    }
    if (job.times) *job.times = {start, steady_seconds()};
    if (job.verdict()) clSetUserEventStatus(job.verdict(), is_well ? CL_COMPLETE : CL_OUT_OF_RESOURCES);
    clSetUserEventStatus(job.at_source(), CL_COMPLETE);
    clSetUserEventStatus(job.at_target(), CL_COMPLETE);
  }
}

}  // namespace samebytes::detail
