// The only place where the engine includes OpenCL: <CL/opencl.hpp>, whose objects own their handles; its exceptions
// become ours here. Calls on the path of every launch are the bare ones of <CL/cl.h> with check_cl: they take arrays
// where the wrappers want vectors, and a wrapper would be made and released for each.
#pragma once

#ifndef CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_ENABLE_EXCEPTIONS
#endif
#ifndef CL_HPP_TARGET_OPENCL_VERSION
#define CL_HPP_TARGET_OPENCL_VERSION 300
#endif
#ifndef CL_HPP_MINIMUM_OPENCL_VERSION
#define CL_HPP_MINIMUM_OPENCL_VERSION 110  // we need 1.2, but the header of 2023 does not compile with 120
#endif
#include <CL/opencl.hpp>

#include <string>
#include <utility>

namespace samebytes::detail {

std::string status_name(cl_int status);  // "CL_OUT_OF_RESOURCES"

// Throws DeviceError with call, status and device for any status but CL_SUCCESS.
void check_cl(cl_int status, const char* call, const std::string& device = {});

// Returns what `calls` returns; a cl::Error from it becomes the DeviceError of check_cl.
template <class Calls>
auto on_device(const std::string& device, Calls&& calls) {
  try {
    return calls();
  } catch (const cl::Error& error) {
    check_cl(error.err(), error.what(), device);
    throw;
  }
}

// Takes over `from`. What the driver does not release is left to it; the wrappers' own assignment throws.
template <class Handle>
void replace(Handle& to, Handle from) {
  std::swap(to(), from());
}

// The call that a copy of a handle makes, which the wrappers do not name.
inline const char* retain_call(const cl::Context&) { return "clRetainContext"; }
inline const char* retain_call(const cl::CommandQueue&) { return "clRetainCommandQueue"; }
inline const char* retain_call(const cl::Event&) { return "clRetainEvent"; }
inline const char* retain_call(const cl::Memory&) { return "clRetainMemObject"; }

// A copy, or DeviceError.
template <class Handle>
Handle copy_of(const Handle& from, const std::string& device) {
  try {
    return Handle(from);
  } catch (const cl::Error& error) {
    check_cl(error.err(), retain_call(from), device);
    throw;
  }
}

// Likewise. The wrappers' own assignment keeps, where it fails to retain, a handle that is not its own.
template <class Handle>
void assign(Handle& to, const Handle& from, const std::string& device) {
  replace(to, copy_of(from, device));
}

// An in-order queue. The wrappers' own constructor reads, where a query fails, what nobody has set.
cl::CommandQueue make_queue(const cl::Context& context, const cl::Device& of, cl_command_queue_properties properties,
                            const std::string& device);

}  // namespace samebytes::detail
