// The only door to the OpenCL headers inside the engine, with checked calls and one RAII owner per kind of handle.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#ifndef CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue: the only one that 1.2 devices know
#endif
#include <CL/cl.h>

#include <string>
#include <utility>

namespace samebytes::detail {

std::string status_name(cl_int status);  // "CL_OUT_OF_RESOURCES"

// Throws DeviceError naming call, status and device for anything but CL_SUCCESS.
void check_cl(cl_int status, const char* call, const std::string& device = {});

template <class T>
struct Release;
template <>
struct Release<cl_mem> {
  static void call(cl_mem h) { clReleaseMemObject(h); }
};
template <>
struct Release<cl_kernel> {
  static void call(cl_kernel h) { clReleaseKernel(h); }
};
template <>
struct Release<cl_program> {
  static void call(cl_program h) { clReleaseProgram(h); }
};
template <>
struct Release<cl_command_queue> {
  static void call(cl_command_queue h) { clReleaseCommandQueue(h); }
};
template <>
struct Release<cl_context> {
  static void call(cl_context h) { clReleaseContext(h); }
};
template <>
struct Release<cl_event> {
  static void call(cl_event h) { clReleaseEvent(h); }
};

// Owner of one OpenCL handle; move-only.
template <class T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_) Release<T>::call(raw_);
  }
  T get() const { return raw_; }
  T release() { return std::exchange(raw_, nullptr); }  // nobody owns it any more
  T* out() { return &raw_; }                            // for calls that write the handle; requires an empty owner
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  T raw_ = nullptr;
};

}  // namespace samebytes::detail
