// Space: one OpenCL context of an engine. Its devices share memory in one mode. A device of another space reads this
// memory through a copy (carrier.h). Thread-safe unless a function says otherwise.
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
struct Usm;

class Space {
 public:
  // `info` describes its first device, with limits that hold for all devices and the mode that they share.
  Space(Runtime& runtime, int index, DeviceInfo info, const std::vector<cl::Device>& devices);
  Space(const Space&) = delete;

  // Called once, before any allocation. Throws ArgumentError for options that contradict each other.
  void open_memory(const RuntimeOptions& options);

  int index() const { return index_; }
  Runtime& runtime() const { return runtime_; }
  const DeviceInfo& info() const { return info_; }
  const std::string& name() const { return info_.name; }
  MemoryMode mode() const { return info_.memory_mode; }
  const cl::Context& context() const { return context_; }
  const cl::CommandQueue& host_queue() const { return host_queue_; }  // maps and reads: never behind a running step
  bool coarse_shadow() const { return coarse_shadow_; }  // PoCL in coarse mode keeps a shadow so that missing maps show
  const Usm* usm() const { return usm_; }                // in mode usm, else null
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  Device& first_device() const { return *first_device_; }  // whose queue takes unmaps and uploads
  void set_first_device(Device& device) { first_device_ = &device; }

  // Throws OutOfMemory; see Runtime::allocate.
  StoragePtr allocate(std::size_t bytes, Category category, const std::string& what, const char* layer = "",
                      FirstUse first = FirstUse::host);
  StoragePtr adopt(void* pointer, std::size_t bytes, std::function<void()> deleter, Adoption* verdict);
  // Memory of the user's, in this context. Throw ArgumentError if it cannot be used (interop/opencl.h).
  StoragePtr adopt(const cl::Buffer& buffer, std::size_t bytes);
  StoragePtr adopt_svm(void* pointer, std::size_t bytes, std::function<void()> deleter);
  // Runs the self-test of cl_mem aliases over storages at the first call: the host writes, a kernel works through the
  // pointer, the same kernel works through the alias at an offset, the host reads.
  bool alias_works();

  void leave() { host_queue_() = nullptr; }  // never releases its queue

  void note_housekeeping() { has_housekeeping_ = true; }  // the first device's queue got an unmap or upload
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
  const Usm* const usm_;

  Mutex alias_mutex_;
  int alias_state_ SAMEBYTES_GUARDED_BY(alias_mutex_) = -1;  // -1: not tested
};

}  // namespace samebytes::detail
