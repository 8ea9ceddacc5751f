// Carrier: the thread that copies bytes from one space to another. Devices of two contexts share neither memory nor
// events, so the host carries: it waits for the events of the source, copies, and then sets a user event in both
// contexts, which launches wait for. Jobs run one after the other, in order. Thread-safe.
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
class Ticket;
class Storage;

class Carrier final : public EventClock {
 public:
  explicit Carrier(Runtime& runtime);
  ~Carrier() override;  // after the last job
  Carrier(const Carrier&) = delete;

  // Bytes on the device's side of a storage, which need not outlive the call that takes them.
  struct Side {
    Space* space = nullptr;
    std::byte* pointer = nullptr;  // SVM; null: use the buffer
    cl::Buffer buffer;
    std::size_t offset = 0;  // within the buffer
    bool is_direct = false;  // the host may touch the pointer
  };
  static Side side_of(Storage& storage, std::size_t offset);
  // A user event that marks the end of a job. Throws DeviceError.
  static cl::Event make_event(const Space& space);

  // When the bytes were carried, for the profile; the job and the recorder share it.
  struct Times {
    double start = 0, end = 0;
  };
  struct Job {
    std::vector<cl::Event> after;  // events of flushed queues; if one failed, the job fails too
    Side from, to;
    std::size_t bytes = 0;
    cl::Event at_source, at_target;  // user events for launches to wait for: always completed as successful, since
                                     // PoCL 3.1 loses the commands that wait for a failed one
    cl::Event verdict;               // a user event for the ticket, which fails if the job did; may be empty
    std::shared_ptr<Times> times;    // or null
    std::shared_ptr<Ticket> ticket;  // of the submission; null where `after` is empty
  };
  void add(Job job);

  // `event` is what the recorder's add_launch got: a std::shared_ptr<Times> on the heap.
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
  std::vector<std::byte> staging_;        // used if the host can touch neither side; only the thread uses it
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ SAMEBYTES_GUARDED_BY(mutex_);
  bool is_stopping_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace samebytes::detail
