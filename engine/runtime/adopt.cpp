// Space: memory that the user owns, and the self-test of cl_mem aliases. Both ask whether a buffer made over host
// memory is that memory.
#include <cstdlib>
#include <cstring>

#include "runtime/allocator.h"
#include "runtime/faults.h"
#include "runtime/runtime.h"
#include "runtime/space.h"
#include "runtime/usm.h"
#include "samebytes/error.h"

namespace samebytes::detail {

// Returns an empty string and sets `as` if the memory can be adopted; otherwise returns the reason.
std::string Space::why_not_adopted(const void* pointer, MemoryMode* as) const {
  const DeviceInfo& info = info_;
  *as = mode();
  if (mode() == MemoryMode::system) return {};
  *as = MemoryMode::hostptr;
  if (mode() == MemoryMode::copy) return "the memory mode is copy";
  if (info.type == "cpu") return {};  // its kernels read the very bytes, whatever their alignment
  if (!info.unified_memory) return "the device has memory of its own";
  if (reinterpret_cast<std::uintptr_t>(pointer) % 4096 != 0) return "the pointer is not page-aligned";
  return {};
}

StoragePtr Space::adopt(void* pointer, std::size_t bytes, std::function<void()> deleter, Adoption* verdict) {
  if (bytes == 0 || !pointer) throw ArgumentError("adopt: expected memory, got an empty block");
  MemoryMode as{};
  const std::string reason = why_not_adopted(pointer, &as);
  if (reason.empty()) {
    allocator_->claim(pointer, bytes, "adopt");
    std::unique_ptr<Storage::Block> block = allocator_->wrap(pointer, bytes, as, deleter);
    if (block) {
      if (as == MemoryMode::hostptr && deleter) {
        // The user reads this memory after the deleter has run, so it must hold what the device wrote last; where a
        // call fails, it keeps its old contents.
        block->deleter = [buffer = copy_of(block->buffer, name()), queue = copy_of(host_queue(), name()), bytes,
                          name = name(), watchdog = runtime_.watchdog(), inner = std::move(deleter)]() mutable {
          try {
            void* const mapped = queue.enqueueMapBuffer(buffer, CL_FALSE, CL_MAP_READ, 0, bytes);
            watchdog->finish(queue, name);
            queue.enqueueUnmapMemObject(buffer, mapped);
            watchdog->finish(queue, name);
          } catch (const std::exception&) {
          }
          if (watchdog->is_given_up()) {  // the device may use the memory at any time
            buffer() = nullptr;
            return;
          }
          { const cl::Buffer gone = std::move(buffer); }
          inner();
        };
      }
      if (verdict)
        *verdict = {true, as == MemoryMode::system ? "adopted: the device reads any host pointer"
                                                   : "adopted: a buffer over the memory itself (hostptr)"};
      return std::make_shared<Storage>(*this, allocator_, std::move(block), bytes, Category::adopted);
    }
    allocator_->unclaim(pointer);
  }
  const std::string why = reason.empty() ? "the driver refuses a buffer over it" : reason;
  runtime_.count_copy(bytes, true, "adopt: copied, because " + why);
  StoragePtr storage = allocate(bytes, Category::value, "adopt");
  std::uint64_t borrow = 0;
  std::memcpy(storage->acquire_host(true, 0, bytes, __FILE__, __LINE__, &borrow), pointer, bytes);
  storage->release_host(borrow);
  if (deleter) allocator_->reaper().add(nullptr, std::move(deleter));
  if (verdict) *verdict = {false, "copied: " + why};
  return storage;
}

StoragePtr Space::adopt(const cl::Buffer& buffer, std::size_t bytes) {
  if (!buffer() || bytes == 0) throw ArgumentError("adopt: expected a buffer and elements, got none");
  if (buffer.getInfo<CL_MEM_CONTEXT>()() != context_())
    throw ArgumentError("adopt: the buffer is of another context than the engine's; make it in interop::context()");
  if (const auto size = buffer.getInfo<CL_MEM_SIZE>(); size < bytes)
    throw ArgumentError("adopt: expected a buffer of " + std::to_string(bytes) + " bytes, got one of " +
                        std::to_string(size));
  if (buffer.getInfo<CL_MEM_FLAGS>() & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY))
    throw ArgumentError("adopt: expected a buffer with CL_MEM_READ_WRITE, got one for reading or for writing only");
  void* host = nullptr;  // maps return it, on devices that share the host's memory
  if (mode() != MemoryMode::copy && (info_.type == "cpu" || info_.unified_memory)) {
    host = host_queue_.enqueueMapBuffer(buffer, CL_FALSE, CL_MAP_READ, 0, bytes);
    host_queue_.enqueueUnmapMemObject(buffer, host);
    runtime_.watchdog()->finish(host_queue_, name());
    allocator_->claim(host, bytes, "adopt");
  }
  return std::make_shared<Storage>(*this, allocator_, allocator_->wrap(copy_of(buffer, name()), host, bytes), bytes,
                                   Category::adopted);
}

StoragePtr Space::adopt_svm(void* pointer, std::size_t bytes, std::function<void()> deleter) {
  if (!pointer || bytes == 0) throw ArgumentError("adopt_svm: expected memory and elements, got none");
  if (mode() == MemoryMode::hostptr || mode() == MemoryMode::copy)
    throw ArgumentError(std::string("adopt_svm: the engine's memory mode is ") + samebytes::name_of(mode()) +
                        ", which binds buffers; adopt a cl::Buffer, or use mode fine or coarse");
  allocator_->claim(pointer, bytes, "adopt_svm");
  auto block = allocator_->wrap(pointer, bytes, mode(), std::move(deleter));
  if (block) return std::make_shared<Storage>(*this, allocator_, std::move(block), bytes, Category::adopted);
  allocator_->unclaim(pointer);
  throw OutOfMemory("adopt_svm: the host has no memory for " + std::to_string(bytes) + " bytes", bytes, 0);
}

bool Space::alias_works() {
  MutexLock lock(alias_mutex_);
  if (alias_state_ < 0) alias_state_ = run_alias_test() ? 1 : 0;
  return alias_state_ == 1;
}

bool Space::run_alias_test() {
  if (runtime_.is_dry() || mode() == MemoryMode::hostptr || mode() == MemoryMode::copy)
    return true;  // the buffer is what kernels use
  constexpr int kCount = 1024, kOffset = 256;
  const char* text =
      "__kernel void alias_probe(ARRAY_INPLACE(float, x), const int n) {\n"
      "  START(x);\n"
      "  const int i = (int)get_group_id(0);\n"
      "  if (i < n) x[i] = 2.0f * x[i] + 1.0f;\n"
      "}\n";
  try {
    Device& first = first_device();
    auto kernel = first.kernels().make_generated(f32, text, "alias_probe", "alias self-test");
    const cl::CommandQueue queue = make_queue(context(), first.handle(), 0, name());
    Watchdog& watchdog = *runtime_.watchdog();
    // These are raw blocks of the driver, outside the ledger and outside the rules for storages.
    const bool is_fine = mode() == MemoryMode::fine;
    void* raw = nullptr;
    if (mode() == MemoryMode::system)
      raw = allocate_pages(kCount * sizeof(float));
    else if (usm_)
      raw = usm_->allocate(context_(), kCount * sizeof(float));
    else
      raw = clSVMAlloc(context_(), CL_MEM_READ_WRITE | (is_fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0),
                       kCount * sizeof(float), 0);
    if (!raw) return false;
    struct Owner {
      cl_context context;
      void* raw;
      bool is_svm;
      const Usm* usm;
      const Watchdog& watchdog;
      ~Owner() {
        if (watchdog.is_given_up()) return;  // the device may use it at any time
        if (usm)
          usm->release(context, raw);
        else
          is_svm ? clSVMFree(context, raw) : std::free(raw);
      }
    } owner{context_(), raw, mode() != MemoryMode::system, usm_, watchdog};
    const bool needs_map = mode() == MemoryMode::coarse;
    auto map = [&] {
      if (needs_map) queue.enqueueMapSVM(raw, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, kCount * sizeof(float));
      watchdog.finish(queue, name());
    };
    auto unmap = [&] {
      if (needs_map) queue.enqueueUnmapSVM(raw);
    };
    auto* values = static_cast<float*>(raw);
    map();
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(i);
    unmap();
    const cl::Buffer alias(context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, kCount * sizeof(float), raw);
    const cl_int all = kCount, rest = kCount - kOffset;
    const cl_long start = 0, offset = kOffset;
    const auto set_pointer = usm_ ? usm_->set_argument : clSetKernelArgSVMPointer;
    check_cl(set_pointer(kernel->get(), 0, raw), "clSetKernelArgSVMPointer", name());
    kernel->set_bytes(1, &start, sizeof start);
    kernel->set_bytes(2, &all, sizeof all);
    queue.enqueueNDRangeKernel(kernel->handle(), cl::NullRange, cl::NDRange(kCount), cl::NDRange(1));
    kernel->set_bytes(0, &alias(), sizeof(cl_mem));
    kernel->set_bytes(1, &offset, sizeof offset);
    kernel->set_bytes(2, &rest, sizeof rest);
    queue.enqueueNDRangeKernel(kernel->handle(), cl::NullRange, cl::NDRange(kCount), cl::NDRange(1));
    watchdog.finish(queue, name());  // the memory goes at the end
    if (faults().break_alias_test.load()) return false;
    map();
    bool is_right = true;
    for (int i = 0; i < kCount; ++i) {
      const float once = 2.0f * static_cast<float>(i) + 1.0f;
      is_right = is_right && values[i] == (i < kOffset ? once : 2.0f * once + 1.0f);
    }
    unmap();
    watchdog.finish(queue, name());
    return is_right;
  } catch (const std::exception&) {
    return false;  // do not trust a driver that refuses any step of the test
  }
}

}  // namespace samebytes::detail
