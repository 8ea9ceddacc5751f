// Carrier: the thread that brings bytes from one space to another. Devices of two contexts know neither each other's
// memory nor each other's events, so the host carries: it waits for the events of the source, copies, and then sets a
// user event in both contexts, which launches wait for. Jobs run one after the other, in their order. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "profile/recorder.h"
#include "runtime/opencl.h"

namespace samebytes::detail {

class Runtime;
class Space;
class Storage;

class Carrier final : public EventClock {
 public:
  explicit Carrier(Runtime& runtime);
  ~Carrier() override;  // after the last job
  Carrier(const Carrier&) = delete;

  // Bytes on the device's side of a storage, which need not outlive the call that names them.
  struct Side {
    Space* space = nullptr;
    std::byte* pointer = nullptr;  // SVM; else
    cl::Buffer buffer;
    std::size_t offset = 0;  // within the buffer
    bool is_direct = false;  // the host may touch the pointer
  };
  static Side side_of(Storage& storage, std::size_t offset);
  // A user event: an ending of a job. Throws DeviceError.
  static cl::Event make_event(const Space& space);

  // When it was carried, for the profile: kept by the job and by the recorder.
  struct Times {
    double start = 0, end = 0;
  };
  struct Job {
    std::vector<cl::Event> after;  // of flushed queues; where one failed the job fails too
    Side from, to;
    std::size_t bytes = 0;
    cl::Event at_source, at_target;  // user events for launches to wait for: complete in any case, since
                                     // PoCL 3.1 loses what waits for one that fails
    cl::Event verdict;               // a user event for the ticket, which fails where the job did; or none
    std::shared_ptr<Times> times;    // or null
  };
  void add(Job job);

  // Of what add_launch of a recorder got: a std::shared_ptr<Times> on the heap.
  bool read(void* event, double* start, double* end) const override;
  void release(void* event) const override;

 private:
  void run();
  void carry(const Job& job);
  const cl::CommandQueue& queue_of(const Space& space) const {
    return queues_[static_cast<std::size_t>(index_of(space))];
  }
  static int index_of(const Space& space);

  std::vector<cl::CommandQueue> queues_;  // by space
  std::vector<std::byte> staging_;        // where neither side can be touched; of the thread alone
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ SAMEBYTES_GUARDED_BY(mutex_);
  bool is_stopping_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace samebytes::detail
