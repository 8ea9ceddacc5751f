// Space: one OpenCL context of an engine. The devices in it share memory in one mode. What lies in it is read by a
// device of another space through a copy (carrier.h). Thread-safe where it says nothing else.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "runtime/opencl.h"
#include "runtime/storage.h"
#include "samebytes/device.h"

namespace samebytes::detail {

class Allocator;
class Device;
class Runtime;
struct RuntimeOptions;

class Space {
 public:
  // `info` is of its first device, with the limits of all of them and the mode that holds for all.
  Space(Runtime& runtime, int index, DeviceInfo info, const std::vector<cl::Device>& devices);
  Space(const Space&) = delete;

  // Once, before anything is allocated. Throws ArgumentError for wishes that do not go together.
  void open_memory(const RuntimeOptions& options);

  int index() const { return index_; }
  Runtime& runtime() const { return runtime_; }
  const DeviceInfo& info() const { return info_; }
  const std::string& name() const { return info_.name; }
  MemoryMode mode() const { return info_.memory_mode; }
  const cl::Context& context() const { return context_; }
  const cl::CommandQueue& host_queue() const { return host_queue_; }  // maps and reads: never behind a running step
  bool coarse_shadow() const { return coarse_shadow_; }  // PoCL in coarse mode keeps a shadow so that missing maps show
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  Device& first_device() const { return *first_device_; }  // whose queue takes unmaps and uploads
  void set_first_device(Device& device) { first_device_ = &device; }

  // Throws OutOfMemory; see Runtime::allocate.
  StoragePtr allocate(std::size_t bytes, Category category, const std::string& what, const char* layer = "",
                      FirstUse first = FirstUse::host);
  StoragePtr adopt(void* pointer, std::size_t bytes, std::function<void()> deleter, Adoption* verdict);
  // Of the user's, in this context. Throw ArgumentError for what cannot be used (interop/opencl.h).
  StoragePtr adopt(const cl::Buffer& buffer, std::size_t bytes);
  StoragePtr adopt_svm(void* pointer, std::size_t bytes, std::function<void()> deleter);
  // The self-test of cl_mem aliases over storages, run at the first call: host writes, a kernel through the pointer,
  // the same kernel through the alias at an offset, host reads.
  bool alias_works();

  void note_housekeeping() { has_housekeeping_ = true; }  // an unmap or upload was put on the first device's queue
  bool has_housekeeping() const { return has_housekeeping_.load(); }
  bool take_housekeeping() { return has_housekeeping_.exchange(false); }

 private:
  bool run_alias_test();
  std::string why_not_adopted(const void* pointer, MemoryMode* as) const;

  Runtime& runtime_;
  const int index_;
  const DeviceInfo info_;
  const bool coarse_shadow_;
  cl::Context context_;
  cl::CommandQueue host_queue_;
  std::shared_ptr<Allocator> allocator_;
  Device* first_device_ = nullptr;
  std::atomic<bool> has_housekeeping_{false};

  Mutex alias_mutex_;
  int alias_state_ SAMEBYTES_GUARDED_BY(alias_mutex_) = -1;  // -1: not tested
};

}  // namespace samebytes::detail
