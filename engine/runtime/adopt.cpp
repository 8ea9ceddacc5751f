// Of a space: memory of the user's own, and the self-test of cl_mem aliases: both ask whether a buffer made over host
// memory is that memory.
#include <cstdlib>
#include <cstring>

#include "runtime/allocator.h"
#include "runtime/faults.h"
#include "runtime/runtime.h"
#include "runtime/space.h"
#include "samebytes/error.h"

namespace samebytes::detail {

// Empty where the memory can be adopted, in the mode given back; else why not.
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
  if (bytes == 0 || !pointer) throw ArgumentError("adopt: needs memory, an empty block came");
  MemoryMode as{};
  const std::string reason = why_not_adopted(pointer, &as);
  if (reason.empty()) {
    allocator_->claim(pointer, bytes, "adopt");
    std::unique_ptr<Storage::Block> block = allocator_->wrap(pointer, bytes, as, deleter);
    if (block) {
      if (as == MemoryMode::hostptr && deleter) {
        // The user's memory is read again after the deleter: what the device wrote last must stand in it.
        clRetainMemObject(block->buffer.get());
        clRetainCommandQueue(host_queue());
        auto buffer = std::make_shared<Handle<cl_mem>>(block->buffer.get());
        auto queue = std::make_shared<Handle<cl_command_queue>>(host_queue());
        block->deleter = [buffer, queue, bytes, inner = std::move(deleter)] {
          cl_int status = CL_SUCCESS;
          void* mapped = clEnqueueMapBuffer(queue->get(), buffer->get(), CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr,
                                            nullptr, &status);
          if (status == CL_SUCCESS) clEnqueueUnmapMemObject(queue->get(), buffer->get(), mapped, 0, nullptr, nullptr);
          clFinish(queue->get());
          *buffer = {};
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
    Handle<cl_command_queue> queue;
    cl_int status = CL_SUCCESS;
    queue = Handle<cl_command_queue>(clCreateCommandQueue(context(), first.id(), 0, &status));
    check_cl(status, "clCreateCommandQueue", name());
    // Raw blocks of the driver, outside the ledger, and so outside every storage's rules.
    const bool is_fine = mode() == MemoryMode::fine;
    void* raw = nullptr;
    if (mode() == MemoryMode::system)
      raw = allocate_pages(kCount * sizeof(float));
    else
      raw = clSVMAlloc(context(), CL_MEM_READ_WRITE | (is_fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0),
                       kCount * sizeof(float), 0);
    if (!raw) return false;
    struct Owner {
      cl_context context;
      void* raw;
      bool is_svm;
      ~Owner() { is_svm ? clSVMFree(context, raw) : std::free(raw); }
    } owner{context(), raw, mode() != MemoryMode::system};
    const bool needs_map = mode() == MemoryMode::coarse;
    auto map = [&] {
      if (needs_map)
        check_cl(clEnqueueSVMMap(queue.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, raw, kCount * sizeof(float), 0,
                                 nullptr, nullptr),
                 "clEnqueueSVMMap", name());
    };
    auto unmap = [&] {
      if (needs_map) check_cl(clEnqueueSVMUnmap(queue.get(), raw, 0, nullptr, nullptr), "clEnqueueSVMUnmap", name());
    };
    auto* values = static_cast<float*>(raw);
    map();
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(i);
    unmap();
    Handle<cl_mem> alias(
        clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, kCount * sizeof(float), raw, &status));
    check_cl(status, "clCreateBuffer", name());
    const cl_int all = kCount, rest = kCount - kOffset;
    const cl_long start = 0, offset = kOffset;
    const std::size_t groups = kCount, one = 1;
    check_cl(clSetKernelArgSVMPointer(kernel->get(), 0, raw), "clSetKernelArgSVMPointer", name());
    kernel->set_bytes(1, &start, sizeof start);
    kernel->set_bytes(2, &all, sizeof all);
    check_cl(clEnqueueNDRangeKernel(queue.get(), kernel->get(), 1, nullptr, &groups, &one, 0, nullptr, nullptr),
             "clEnqueueNDRangeKernel", name());
    cl_mem bound = alias.get();
    check_cl(clSetKernelArg(kernel->get(), 0, sizeof(cl_mem), &bound), "clSetKernelArg", name());
    kernel->set_bytes(1, &offset, sizeof offset);
    kernel->set_bytes(2, &rest, sizeof rest);
    check_cl(clEnqueueNDRangeKernel(queue.get(), kernel->get(), 1, nullptr, &groups, &one, 0, nullptr, nullptr),
             "clEnqueueNDRangeKernel", name());
    check_cl(clFinish(queue.get()), "clFinish", name());
    if (faults().break_alias_test.load()) return false;
    map();
    bool is_right = true;
    for (int i = 0; i < kCount; ++i) {
      const float once = 2.0f * static_cast<float>(i) + 1.0f;
      is_right = is_right && values[i] == (i < kOffset ? once : 2.0f * once + 1.0f);
    }
    unmap();
    check_cl(clFinish(queue.get()), "clFinish", name());
    return is_right;
  } catch (const Error&) {
    return false;  // a driver that refuses any step of it cannot be trusted with the rest
  }
}

}  // namespace samebytes::detail
