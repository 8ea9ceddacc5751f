// Makes PoCL look like the driver of a discrete GPU, from outside the library: LD_PRELOAD this, and its devices answer
// and behave as NVIDIA's do.
//   - Its type is GPU, its SVM is coarse-grained, its memory is its own, its vectors have one element, and it has no
//     native kernels, parts, 16-bit arithmetic or subgroups. The platform has another name, so that nothing takes it
//     for what it is.
//   - An SVM allocation is two blocks, one of the host and one of the device, and only map and unmap copy between
//     them. A buffer over memory of the host has bytes of its own too. What touches the host's block after it was
//     freed faults: its address is not given again, also because kernels keep arguments that seem to be the same.
// Images, sub-buffers and pointers to SVM inside of arrays are left as they are.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) static const auto real_##name = next(&name, #name)

// Pages at addresses that were never given before; null: there are none.
std::byte* make_pages(std::size_t bytes) {
  constexpr std::size_t kRoom = std::size_t{1} << 44;
  static void* const room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  static std::atomic<std::size_t> given{0};
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage, offset = given.fetch_add(whole + kPage);
  if (room == MAP_FAILED || offset + whole > kRoom) return nullptr;
  std::byte* const pages = static_cast<std::byte*>(room) + offset;
  return mprotect(pages, whole, PROT_READ | PROT_WRITE) == 0 ? pages : nullptr;
}

void free_pages(std::byte* pages, std::size_t bytes) {
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  mmap(pages, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

struct Mapping {
  std::byte* host;
  std::size_t offset, bytes;
  bool writes;
};

// An SVM allocation, or a buffer over memory of the host.
struct Twin {
  std::byte* host = nullptr;
  std::byte* device = nullptr;  // of SVM
  std::size_t bytes = 0;
  cl_mem_flags flags = 0;
  std::vector<Mapping> mappings;
};

// Never destroyed: the library releases memory while the process ends.
struct State {
  std::mutex mutex;
  std::map<const std::byte*, Twin> svm;
  std::map<cl_mem, Twin> buffers;
};
State& state() {
  static State& all = *new State;
  return all;
}
using Lock = std::lock_guard<std::mutex>;

// Under the mutex. Null for a pointer into no SVM allocation.
Twin* svm_of(const void* pointer) {
  const auto* const at = static_cast<const std::byte*>(pointer);
  auto after = state().svm.upper_bound(at);
  if (after == state().svm.begin()) return nullptr;
  Twin& twin = (--after)->second;
  return at < twin.host + twin.bytes ? &twin : nullptr;
}

// Where the device has the byte that the program means.
std::byte* device_pointer(const void* pointer) {
  const Lock lock(state().mutex);
  auto* const at = static_cast<std::byte*>(const_cast<void*>(pointer));
  const Twin* const twin = svm_of(pointer);
  return twin != nullptr ? twin->device + (at - twin->host) : at;
}

bool is_pocl(cl_platform_id platform) {
  NEXT(clGetPlatformInfo);
  char name[64] = "";
  real_clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, nullptr);
  return std::strcmp(name, "Portable Computing Language") == 0;
}
bool is_pocl(cl_device_id device) {
  NEXT(clGetDeviceInfo);
  cl_platform_id platform = nullptr;
  real_clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, nullptr);
  return is_pocl(platform);
}
bool is_pocl(cl_context context) {
  std::vector<cl_device_id> devices;
  std::size_t bytes = 0;
  clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes);
  devices.resize(bytes / sizeof(cl_device_id));
  clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr);
  return !devices.empty() && is_pocl(devices.front());
}

bool writes(cl_map_flags flags) { return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0; }

cl_int answer(const void* value, std::size_t bytes, std::size_t room, void* to, std::size_t* size) {
  if (size != nullptr) *size = bytes;
  if (to == nullptr) return CL_SUCCESS;
  if (room < bytes) return CL_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CL_SUCCESS;
}
template <class T>
cl_int answer(T value, std::size_t room, void* to, std::size_t* size) {
  return answer(&value, sizeof value, room, to, size);
}
template <std::size_t length>
cl_int answer(const char (&text)[length], std::size_t room, void* to, std::size_t* size) {
  return answer(text, length, room, to, size);
}

}  // namespace

extern "C" {

cl_int clGetPlatformInfo(cl_platform_id of, cl_platform_info what, size_t room, void* value, size_t* size) {
  NEXT(clGetPlatformInfo);
  if (what == CL_PLATFORM_NAME && is_pocl(of)) return answer("Discrete", room, value, size);
  return real_clGetPlatformInfo(of, what, room, value, size);
}

cl_int clGetDeviceIDs(cl_platform_id of, cl_device_type type, cl_uint room, cl_device_id* list, cl_uint* found) {
  NEXT(clGetDeviceIDs);
  if (!is_pocl(of)) return real_clGetDeviceIDs(of, type, room, list, found);
  constexpr cl_device_type kThese = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT;
  if ((type & kThese) == 0) return CL_DEVICE_NOT_FOUND;
  return real_clGetDeviceIDs(of, CL_DEVICE_TYPE_ALL, room, list, found);
}

cl_int clGetDeviceInfo(cl_device_id of, cl_device_info what, size_t room, void* value, size_t* size) {
  NEXT(clGetDeviceInfo);
  if (!is_pocl(of)) return real_clGetDeviceInfo(of, what, room, value, size);
  switch (what) {
    case CL_DEVICE_TYPE: return answer(cl_device_type{CL_DEVICE_TYPE_GPU}, room, value, size);
    case CL_DEVICE_OPENCL_C_VERSION: return answer("OpenCL C 1.2 discrete", room, value, size);
    case CL_DEVICE_SVM_CAPABILITIES:
      return answer(cl_device_svm_capabilities{CL_DEVICE_SVM_COARSE_GRAIN_BUFFER}, room, value, size);
    case CL_DEVICE_EXECUTION_CAPABILITIES:
      return answer(cl_device_exec_capabilities{CL_EXEC_KERNEL}, room, value, size);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return answer(cl_bool{CL_FALSE}, room, value, size);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_INT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES: return answer(cl_uint{1}, room, value, size);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF:
    case CL_DEVICE_MAX_NUM_SUB_GROUPS: return answer(cl_uint{0}, room, value, size);
    case CL_DEVICE_PARTITION_PROPERTIES: return answer(cl_device_partition_property{0}, room, value, size);
    case CL_DEVICE_PARTITION_AFFINITY_DOMAIN: return answer(cl_device_affinity_domain{0}, room, value, size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return answer(std::size_t{1024}, room, value, size);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer(cl_ulong{48 << 10}, room, value, size);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return answer(cl_uint{4096}, room, value, size);
    case CL_DEVICE_EXTENSIONS:
      return answer(
          "cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics cl_khr_local_int32_base_atomics "
          "cl_khr_local_int32_extended_atomics cl_khr_byte_addressable_store cl_khr_fp64",
          room, value, size);
    default: return real_clGetDeviceInfo(of, what, room, value, size);
  }
}

cl_int clCreateSubDevices(cl_device_id of, const cl_device_partition_property* how, cl_uint room, cl_device_id* list,
                          cl_uint* found) {
  NEXT(clCreateSubDevices);
  return is_pocl(of) ? CL_INVALID_VALUE : real_clCreateSubDevices(of, how, room, list, found);
}

cl_int clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK* call)(void*), void* data, size_t bytes,
                             cl_uint buffers, const cl_mem* list, const void** places, cl_uint waits,
                             const cl_event* wait_list, cl_event* event) {
  NEXT(clEnqueueNativeKernel);
  cl_device_id device = nullptr;
  clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(cl_device_id), &device, nullptr);
  if (is_pocl(device)) return CL_INVALID_OPERATION;
  return real_clEnqueueNativeKernel(queue, call, data, bytes, buffers, list, places, waits, wait_list, event);
}

void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  NEXT(clSVMAlloc);
  if (!is_pocl(context)) return real_clSVMAlloc(context, flags, bytes, alignment);
  if ((flags & (CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS)) != 0) return nullptr;
  Twin twin;
  twin.device = static_cast<std::byte*>(real_clSVMAlloc(context, flags, bytes, alignment));
  if (twin.device == nullptr) return nullptr;
  twin.host = make_pages(bytes);
  if (twin.host == nullptr) {
    NEXT(clSVMFree);
    real_clSVMFree(context, twin.device);
    return nullptr;
  }
  twin.bytes = bytes;
  const Lock lock(state().mutex);
  state().svm[twin.host] = twin;
  return twin.host;
}

void clSVMFree(cl_context context, void* pointer) {
  NEXT(clSVMFree);
  Twin twin;
  {
    const Lock lock(state().mutex);
    const auto found = state().svm.find(static_cast<std::byte*>(pointer));
    if (found != state().svm.end()) {
      twin = found->second;
      state().svm.erase(found);
    }
  }
  if (twin.host == nullptr) return real_clSVMFree(context, pointer);
  real_clSVMFree(context, twin.device);
  free_pages(twin.host, twin.bytes);
}

cl_int clSetKernelArgSVMPointer(cl_kernel of, cl_uint index, const void* value) {
  NEXT(clSetKernelArgSVMPointer);
  return real_clSetKernelArgSVMPointer(of, index, device_pointer(value));
}

cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocks, void* to, const void* from, size_t bytes,
                          cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueSVMMemcpy);
  return real_clEnqueueSVMMemcpy(queue, blocks, device_pointer(to), device_pointer(from), bytes, waits, list, event);
}

cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* to, const void* pattern, size_t pattern_bytes, size_t bytes,
                           cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueSVMMemFill);
  return real_clEnqueueSVMMemFill(queue, device_pointer(to), pattern, pattern_bytes, bytes, waits, list, event);
}

cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocks, cl_map_flags flags, void* of, size_t bytes,
                       cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueSVMMap);
  NEXT(clEnqueueSVMMemcpy);
  std::byte* const device = device_pointer(of);
  if (device == of) return real_clEnqueueSVMMap(queue, blocks, flags, of, bytes, waits, list, event);
  const cl_int status = real_clEnqueueSVMMemcpy(queue, blocks, of, device, bytes, waits, list, event);
  if (status != CL_SUCCESS) return status;
  const Lock lock(state().mutex);
  auto* const host = static_cast<std::byte*>(of);
  if (Twin* const twin = svm_of(of); twin != nullptr)
    twin->mappings.push_back({host, static_cast<std::size_t>(host - twin->host), bytes, writes(flags)});
  return status;
}

cl_int clEnqueueSVMUnmap(cl_command_queue queue, void* of, cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueSVMUnmap);
  NEXT(clEnqueueSVMMemcpy);
  NEXT(clEnqueueMarkerWithWaitList);
  std::byte* device = nullptr;
  Mapping mapping{};
  {
    const Lock lock(state().mutex);
    if (Twin* const twin = svm_of(of); twin != nullptr) {
      for (auto each = twin->mappings.begin(); each != twin->mappings.end(); ++each)
        if (each->host == of) {
          mapping = *each;
          twin->mappings.erase(each);
          break;
        }
      if (mapping.host == nullptr) return CL_INVALID_VALUE;
      device = twin->device + mapping.offset;
    }
  }
  if (device == nullptr) return real_clEnqueueSVMUnmap(queue, of, waits, list, event);
  if (!mapping.writes) return real_clEnqueueMarkerWithWaitList(queue, waits, list, event);
  return real_clEnqueueSVMMemcpy(queue, CL_FALSE, device, mapping.host, mapping.bytes, waits, list, event);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void* at, cl_int* status) {
  NEXT(clCreateBuffer);
  const bool is_over_host = (flags & CL_MEM_USE_HOST_PTR) != 0 && is_pocl(context);
  const cl_mem_flags own = is_over_host ? (flags & ~cl_mem_flags{CL_MEM_USE_HOST_PTR}) | CL_MEM_COPY_HOST_PTR : flags;
  const cl_mem made = real_clCreateBuffer(context, own, bytes, at, status);
  if (made == nullptr) return nullptr;
  const Lock lock(state().mutex);
  state().buffers.erase(made);  // a former one may have had this handle
  if (is_over_host) {
    Twin twin;
    twin.host = static_cast<std::byte*>(at);
    twin.bytes = bytes;
    twin.flags = flags;
    state().buffers[made] = twin;
  }
  return made;
}

cl_int clGetMemObjectInfo(cl_mem of, cl_mem_info what, size_t room, void* value, size_t* size) {
  NEXT(clGetMemObjectInfo);
  if (what == CL_MEM_FLAGS || what == CL_MEM_HOST_PTR) {
    const Lock lock(state().mutex);
    const auto found = state().buffers.find(of);
    if (found != state().buffers.end())
      return what == CL_MEM_FLAGS ? answer(found->second.flags, room, value, size)
                                  : answer(static_cast<void*>(found->second.host), room, value, size);
  }
  return real_clGetMemObjectInfo(of, what, room, value, size);
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem of, cl_bool blocks, cl_map_flags flags, size_t offset,
                         size_t bytes, cl_uint waits, const cl_event* list, cl_event* event, cl_int* status) {
  NEXT(clEnqueueMapBuffer);
  NEXT(clEnqueueReadBuffer);
  std::byte* host = nullptr;
  {
    const Lock lock(state().mutex);
    if (const auto found = state().buffers.find(of); found != state().buffers.end()) host = found->second.host + offset;
  }
  if (host == nullptr)
    return real_clEnqueueMapBuffer(queue, of, blocks, flags, offset, bytes, waits, list, event, status);
  const cl_int answered = real_clEnqueueReadBuffer(queue, of, blocks, offset, bytes, host, waits, list, event);
  if (status != nullptr) *status = answered;
  if (answered != CL_SUCCESS) return nullptr;
  const Lock lock(state().mutex);
  state().buffers[of].mappings.push_back({host, offset, bytes, writes(flags)});
  return host;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem of, void* at, cl_uint waits, const cl_event* list,
                               cl_event* event) {
  NEXT(clEnqueueUnmapMemObject);
  NEXT(clEnqueueWriteBuffer);
  NEXT(clEnqueueMarkerWithWaitList);
  Mapping mapping{};
  {
    const Lock lock(state().mutex);
    if (const auto found = state().buffers.find(of); found != state().buffers.end()) {
      std::vector<Mapping>& mappings = found->second.mappings;
      for (auto each = mappings.begin(); each != mappings.end(); ++each)
        if (each->host == at) {
          mapping = *each;
          mappings.erase(each);
          break;
        }
      if (mapping.host == nullptr) return CL_INVALID_VALUE;
    }
  }
  if (mapping.host == nullptr) return real_clEnqueueUnmapMemObject(queue, of, at, waits, list, event);
  if (!mapping.writes) return real_clEnqueueMarkerWithWaitList(queue, waits, list, event);
  return real_clEnqueueWriteBuffer(queue, of, CL_FALSE, mapping.offset, mapping.bytes, at, waits, list, event);
}

}  // extern "C"
