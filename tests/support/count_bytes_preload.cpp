// Counts, from outside the library, every OpenCL call that moves bytes: LD_PRELOAD this and name a file in
// SAMEBYTES_COUNT_FILE. At exit the file holds one JSON object with {"calls", "bytes"} for each kind of call, and
// "moved", the bytes of all kinds that move data between two places. Mapping and filling stand apart: a map moves
// nothing on a device that shares memory, a fill has no source; "kernel" counts launches. Image calls are not counted,
// since Samebytes has no images.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace {

enum Kind { kRead, kWrite, kCopy, kSvmCopy, kMigrate, kHostPointerCopied, kMap, kUnmap, kFill, kKernel, kKinds };
constexpr const char* kNames[kKinds] = {"read", "write", "copy", "svm_memcpy", "migrate", "copied_host_pointer",
                                        "map",  "unmap", "fill", "kernel"};
constexpr Kind kLastMoving = kHostPointerCopied;

struct Count {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> bytes{0};
};
Count g_counts[kKinds];

// Sizes of SVM allocations, since a migration may name a whole one by size 0. Never freed: exit handlers may still
// allocate.
std::mutex& svm_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::map<const void*, std::size_t>& svm_sizes() {
  static auto* sizes = new std::map<const void*, std::size_t>;
  return *sizes;
}

void count(Kind kind, std::uint64_t bytes) {
  g_counts[kind].calls += 1;
  g_counts[kind].bytes += bytes;
}

// Counts only what the driver took.
cl_int counted(cl_int status, Kind kind, std::uint64_t bytes) {
  if (status == CL_SUCCESS) count(kind, bytes);
  return status;
}

std::uint64_t volume(const std::size_t* region) { return std::uint64_t{region[0]} * region[1] * region[2]; }

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) static const auto real_##name = next(&name, #name)

struct Report {
  ~Report() {
    const char* path = std::getenv("SAMEBYTES_COUNT_FILE");
    if (path == nullptr) return;
    std::FILE* file = std::fopen(path, "w");
    if (file == nullptr) return;
    std::uint64_t moved = 0;
    std::fputc('{', file);
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto calls = static_cast<unsigned long long>(g_counts[kind].calls);
      const auto bytes = static_cast<unsigned long long>(g_counts[kind].bytes);
      if (kind <= kLastMoving) moved += bytes;
      std::fprintf(file, "\"%s\": {\"calls\": %llu, \"bytes\": %llu}, ", kNames[kind], calls, bytes);
    }
    std::fprintf(file, "\"moved\": %llu}\n", static_cast<unsigned long long>(moved));
    std::fclose(file);
  }
} g_report;

}  // namespace

extern "C" {

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint waits, const cl_event* wait_list,
                              cl_event* event) {
  NEXT(clEnqueueNDRangeKernel);
  return counted(real_clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list, event),
                 kKernel, 0);
}

cl_int clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK* function)(void*), void* arguments,
                             size_t argument_bytes, cl_uint objects, const cl_mem* object_list,
                             const void** object_places, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueNativeKernel);
  return counted(real_clEnqueueNativeKernel(queue, function, arguments, argument_bytes, objects, object_list,
                                            object_places, waits, wait_list, event),
                 kKernel, 0);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                           void* ptr, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueReadBuffer);
  return counted(real_clEnqueueReadBuffer(queue, buffer, blocking, offset, size, ptr, waits, wait_list, event), kRead,
                 size);
}

cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t* buffer_origin,
                               const size_t* host_origin, const size_t* region, size_t buffer_row, size_t buffer_slice,
                               size_t host_row, size_t host_slice, void* ptr, cl_uint waits, const cl_event* wait_list,
                               cl_event* event) {
  NEXT(clEnqueueReadBufferRect);
  return counted(real_clEnqueueReadBufferRect(queue, buffer, blocking, buffer_origin, host_origin, region, buffer_row,
                                              buffer_slice, host_row, host_slice, ptr, waits, wait_list, event),
                 kRead, volume(region));
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                            const void* ptr, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueWriteBuffer);
  return counted(real_clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, ptr, waits, wait_list, event), kWrite,
                 size);
}

cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t* buffer_origin,
                                const size_t* host_origin, const size_t* region, size_t buffer_row, size_t buffer_slice,
                                size_t host_row, size_t host_slice, const void* ptr, cl_uint waits,
                                const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueWriteBufferRect);
  return counted(real_clEnqueueWriteBufferRect(queue, buffer, blocking, buffer_origin, host_origin, region, buffer_row,
                                               buffer_slice, host_row, host_slice, ptr, waits, wait_list, event),
                 kWrite, volume(region));
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset,
                           size_t size, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueCopyBuffer);
  return counted(real_clEnqueueCopyBuffer(queue, src, dst, src_offset, dst_offset, size, waits, wait_list, event),
                 kCopy, size);
}

cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem src, cl_mem dst, const size_t* src_origin,
                               const size_t* dst_origin, const size_t* region, size_t src_row, size_t src_slice,
                               size_t dst_row, size_t dst_slice, cl_uint waits, const cl_event* wait_list,
                               cl_event* event) {
  NEXT(clEnqueueCopyBufferRect);
  return counted(real_clEnqueueCopyBufferRect(queue, src, dst, src_origin, dst_origin, region, src_row, src_slice,
                                              dst_row, dst_slice, waits, wait_list, event),
                 kCopy, volume(region));
}

cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* dst, const void* src, size_t size,
                          cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueSVMMemcpy);
  return counted(real_clEnqueueSVMMemcpy(queue, blocking, dst, src, size, waits, wait_list, event), kSvmCopy, size);
}

cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint number, const cl_mem* objects,
                                  cl_mem_migration_flags flags, cl_uint waits, const cl_event* wait_list,
                                  cl_event* event) {
  NEXT(clEnqueueMigrateMemObjects);
  std::uint64_t bytes = 0;
  for (cl_uint i = 0; i < number; ++i) {
    std::size_t size = 0;
    if (clGetMemObjectInfo(objects[i], CL_MEM_SIZE, sizeof size, &size, nullptr) == CL_SUCCESS) bytes += size;
  }
  return counted(real_clEnqueueMigrateMemObjects(queue, number, objects, flags, waits, wait_list, event), kMigrate,
                 bytes);
}

cl_int clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint number, const void** pointers, const size_t* sizes,
                              cl_mem_migration_flags flags, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueSVMMigrateMem);
  std::uint64_t bytes = 0;
  for (cl_uint i = 0; i < number; ++i) {
    if (sizes != nullptr && sizes[i] != 0) {
      bytes += sizes[i];
      continue;
    }
    const std::lock_guard lock(svm_mutex());
    const auto found = svm_sizes().find(pointers[i]);
    if (found != svm_sizes().end()) bytes += found->second;
  }
  return counted(real_clEnqueueSVMMigrateMem(queue, number, pointers, sizes, flags, waits, wait_list, event), kMigrate,
                 bytes);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* ptr, cl_int* status) {
  NEXT(clCreateBuffer);
  const cl_mem buffer = real_clCreateBuffer(context, flags, size, ptr, status);
  if (buffer != nullptr && (flags & CL_MEM_COPY_HOST_PTR) != 0) count(kHostPointerCopied, size);
  return buffer;
}

cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
                                    size_t size, void* ptr, cl_int* status) {
  NEXT(clCreateBufferWithProperties);
  const cl_mem buffer = real_clCreateBufferWithProperties(context, properties, flags, size, ptr, status);
  if (buffer != nullptr && (flags & CL_MEM_COPY_HOST_PTR) != 0) count(kHostPointerCopied, size);
  return buffer;
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                         size_t size, cl_uint waits, const cl_event* wait_list, cl_event* event, cl_int* status) {
  NEXT(clEnqueueMapBuffer);
  void* const pointer =
      real_clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, waits, wait_list, event, status);
  if (pointer != nullptr) count(kMap, size);
  return pointer;
}

cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void* ptr, size_t size,
                       cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueSVMMap);
  return counted(real_clEnqueueSVMMap(queue, blocking, flags, ptr, size, waits, wait_list, event), kMap, size);
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem object, void* ptr, cl_uint waits,
                               const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueUnmapMemObject);
  return counted(real_clEnqueueUnmapMemObject(queue, object, ptr, waits, wait_list, event), kUnmap, 0);
}

cl_int clEnqueueSVMUnmap(cl_command_queue queue, void* ptr, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueSVMUnmap);
  return counted(real_clEnqueueSVMUnmap(queue, ptr, waits, wait_list, event), kUnmap, 0);
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t pattern_size,
                           size_t offset, size_t size, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueFillBuffer);
  return counted(real_clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset, size, waits, wait_list, event),
                 kFill, size);
}

cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* ptr, const void* pattern, size_t pattern_size, size_t size,
                           cl_uint waits, const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueSVMMemFill);
  return counted(real_clEnqueueSVMMemFill(queue, ptr, pattern, pattern_size, size, waits, wait_list, event), kFill,
                 size);
}

void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
  NEXT(clSVMAlloc);
  void* const pointer = real_clSVMAlloc(context, flags, size, alignment);
  if (pointer != nullptr) {
    const std::lock_guard lock(svm_mutex());
    svm_sizes()[pointer] = size;
  }
  return pointer;
}

void clSVMFree(cl_context context, void* ptr) {
  NEXT(clSVMFree);
  {
    const std::lock_guard lock(svm_mutex());
    svm_sizes().erase(ptr);
  }
  real_clSVMFree(context, ptr);
}

}  // extern "C"
