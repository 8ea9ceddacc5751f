// cl_intel_unified_shared_memory: memory that the driver allocates on the host and that host and device address alike.
// Used by the allocator and by kernels that bind such a pointer, in memory mode usm.
#pragma once

#include "runtime/opencl.h"

namespace samebytes::detail {

// The functions of one platform. The headers of older systems do not declare them.
struct Usm {
  using Allocate = void*(CL_API_CALL*)(cl_context, const cl_ulong*, std::size_t, cl_uint, cl_int*);
  using Release = cl_int(CL_API_CALL*)(cl_context, void*);
  using SetArgument = cl_int(CL_API_CALL*)(cl_kernel, cl_uint, const void*);

  Allocate allocate_on_host = nullptr;
  Release release = nullptr;  // at once, like clSVMFree
  SetArgument set_argument = nullptr;

  void* allocate(cl_context context, std::size_t bytes) const;  // null if the driver refuses
};

// Null if the platform lacks a function or the device cannot read and write memory of the host. The result lives as
// long as the process.
const Usm* find_usm(cl_platform_id platform, cl_device_id device);
const Usm* find_usm(const cl::Device& device);

}  // namespace samebytes::detail
