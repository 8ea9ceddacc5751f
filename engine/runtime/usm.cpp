#include "runtime/usm.h"

#include <map>

#include "core/mutex.h"

namespace samebytes::detail {
namespace {

constexpr cl_device_info kHostMemCapabilities = 0x4190;  // CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL
constexpr cl_bitfield kAccess = 1;                       // CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL

template <class Function>
Function function_of(cl_platform_id platform, const char* name) {
  return reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform, name));
}

}  // namespace

void* Usm::allocate(cl_context context, std::size_t bytes) const {
  cl_int status = CL_SUCCESS;
  void* const memory = allocate_on_host(context, nullptr, bytes, 0, &status);
  return status == CL_SUCCESS ? memory : nullptr;
}

const Usm* find_usm(cl_platform_id platform, cl_device_id device) {
  cl_bitfield capabilities = 0;
  if (clGetDeviceInfo(device, kHostMemCapabilities, sizeof capabilities, &capabilities, nullptr) != CL_SUCCESS ||
      !(capabilities & kAccess))
    return nullptr;
  static Mutex& mutex = *new Mutex;
  static auto& known = *new std::map<cl_platform_id, Usm>;
  const MutexLock lock(mutex);
  const auto [found, is_new] = known.try_emplace(platform);
  Usm& usm = found->second;
  if (is_new) {
    usm.allocate_on_host = function_of<Usm::Allocate>(platform, "clHostMemAllocINTEL");
    usm.release = function_of<Usm::Release>(platform, "clMemFreeINTEL");
    usm.set_argument = function_of<Usm::SetArgument>(platform, "clSetKernelArgMemPointerINTEL");
  }
  return usm.allocate_on_host && usm.release && usm.set_argument ? &usm : nullptr;
}

const Usm* find_usm(const cl::Device& device) {
  // A cl_platform_id until 2023, a cl::Platform since.
  return on_device("", [&] { return find_usm(cl::Platform(device.getInfo<CL_DEVICE_PLATFORM>())(), device()); });
}

}  // namespace samebytes::detail
