// The runtime of one engine: one OpenCL context, its devices (a whole device or its sub-devices, each with one in-order queue), the
// allocator, the ledgers and the reaper. Everything above asks it for storages and hands it submissions.
// Thread-safe, except that submissions are made under the engine's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernels.h"
#include "runtime/opencl.h"
#include "runtime/storage.h"
#include "runtime/ticket.h"
#include "samebytes/device.h"
#include "samebytes/memory.h"

namespace samebytes::detail {

class Allocator;
class Reaper;

struct RuntimeOptions {
  std::string device;               // "", "cpu", "gpu:0", an index, or part of a name
  std::vector<int> split;           // sub-devices by cores; empty: the whole device
  int threads = 0;                  // limit of PoCL's threads asked for by the command; 0: all
  bool force_mode = false;          // else SAMEBYTES_MEMORY, else chosen
  MemoryMode mode = MemoryMode::fine;
  bool forbid_copies = false;
  std::size_t memory_limit = 0;     // 0: 85 % of the smaller of the cgroup's limit and what is available
  int steps_in_flight = 3;
};

// One device, or sub-device, of the engine.
class Device {
 public:
  Device(Runtime& runtime, int index, DeviceInfo info, cl_context context, Handle<cl_device_id> id);
  int index() const { return index_; }
  const DeviceInfo& info() const { return info_; }
  Personality personality() const { return info_.personality; }
  int vector_width(Dtype real) const;  // of f32 or f64; 1 in the gpu personality
  cl_context context() const { return context_; }
  cl_device_id id() const { return id_.get(); }
  cl_command_queue queue() const { return queue_.get(); }
  KernelLibrary& kernels() { return kernels_; }
  Runtime& runtime() { return runtime_; }

 private:
  Runtime& runtime_;
  int index_;
  DeviceInfo info_;
  cl_context context_;
  Handle<cl_device_id> id_;
  Handle<cl_command_queue> queue_;
  KernelLibrary kernels_;
};

// Everything that one evaluation enqueues. Use: acquire every storage, enqueue in order, finish.
class Submission {
 public:
  explicit Submission(Runtime& runtime);
  ~Submission();  // finishes quietly if finish() was not reached

  void acquire(Storage& storage, bool writes, const std::string& op, std::size_t offset, std::size_t length, bool whole = false);

  // Enqueues one kernel on a device. `op` names it in errors. Returns its index in this submission.
  void enqueue(Device& device, Kernel& kernel, const Geometry& geometry, const char* op);
  // Makes later work of `device` wait for everything enqueued so far on `other`.
  void order_after(Device& device, Device& other);
  // A library call on the queue (CLBlast): fn enqueues itself on the given queue and may write an event.
  void enqueue_call(Device& device, const char* op, const std::function<void(cl_command_queue)>& fn);
  // A host function over the same bytes: waits for what was enqueued, runs fn on the calling thread.
  // The storages it touches are acquired for the host by the runtime and handed back to the device after it.
  struct HostUse {
    Storage* storage;
    bool writes;
  };
  // fn gets a function that gives the host address of byte 0 of a storage.
  void run_host(const char* op, const std::vector<HostUse>& uses,
                const std::function<void(const std::function<void*(Storage&)>&)>& fn);

  // Flushes, marks every acquired storage with the ticket, and limits the submissions in flight.
  TicketPtr finish();
  std::uint64_t launches() const { return launches_; }

 private:
  Runtime& runtime_;
  TicketPtr ticket_;
  struct Use {
    Storage* storage;
    bool writes;
  };
  std::vector<Use> uses_;
  std::vector<std::uint64_t> pending_;  // launches since the last marker, per device
  std::vector<std::string> last_op_;
  std::uint64_t launches_ = 0;
  bool finished_ = false;
};

class Runtime {
 public:
  explicit Runtime(const RuntimeOptions& options);
  ~Runtime();

  const RuntimeOptions& options() const { return options_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  Device& device(int index = 0) { return *devices_[index]; }
  const std::string& device_name() const;
  MemoryMode mode() const { return mode_; }
  cl_context context() const { return context_.get(); }
  bool coarse_shadow() const { return coarse_shadow_; }  // PoCL in coarse mode keeps a shadow so that missing maps show

  // Throws OutOfMemory naming `what` (an op or an owner), the need, the budget and the cheapest ways out.
  // The bytes are not zeroed. bytes 0 gives null.
  StoragePtr allocate(std::size_t bytes, Category category, const std::string& what);
  // The user's memory. deleter runs on the reaper once nothing uses the bytes. verdict says adopted, or copied and why.
  StoragePtr adopt(void* pointer, std::size_t bytes, std::function<void()> deleter, Adoption* verdict);
  std::size_t clear_cache();  // bytes given back
  void set_memory_limit(std::size_t bytes);

  void wait();  // everything enqueued so far; throws DeviceError
  MemoryReport memory() const;
  TransferReport transfers() const;
  void count_copy(std::size_t bytes, bool to_device, const std::string& what);  // throws where copies are forbidden
  void count_map(std::size_t bytes);
  void count_relayout(std::size_t bytes);
  std::uint64_t launches() const { return launches_; }
  std::uint64_t programs_built() const;

 private:
  friend class Submission;
  friend class Storage;
  friend class Allocator;
  RuntimeOptions options_;
  MemoryMode mode_ = MemoryMode::fine;
  bool coarse_shadow_ = false;
  Handle<cl_context> context_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Reaper> reaper_;
  std::unique_ptr<Allocator> allocator_;
  struct Ledgers;
  std::unique_ptr<Ledgers> ledgers_;
  std::deque<TicketPtr> in_flight_;
  std::uint64_t next_ticket_ = 1;
  std::uint64_t launches_ = 0;
};

// The device that a name means among all devices; throws ArgumentError listing what there is, DeviceError where there is none.
DeviceInfo choose_device(const std::string& name);

}  // namespace samebytes::detail
