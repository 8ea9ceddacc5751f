// A fill that waits for a user event which ends with an error must fail (OpenCL 3.0, clSetUserEventStatus: "a
// negative integer value causes all enqueued commands that wait on this user event to be terminated").
// Intel's CPU runtime 2026.2 does not run it and reports CL_COMPLETE; PoCL 3.1 ends it with an error. The tests that
// plant failed launches in this way leave such a driver out (failed_waits_look_complete in tests/support/quirks.h).
//   c++ tests/drivers/failed_user_event.cpp -lOpenCL && ./a.out
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>

int main() {
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    return 2;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_command_queue queue = clCreateCommandQueue(context, device, 0, nullptr);
  int value = 1;
  const int filled = 2;
  const cl_mem buffer =
      clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof value, &value, nullptr);
  const cl_event gate = clCreateUserEvent(context, nullptr);
  cl_event event;
  clEnqueueFillBuffer(queue, buffer, &filled, sizeof filled, 0, sizeof filled, 1, &gate, &event);
  clSetUserEventStatus(gate, CL_OUT_OF_RESOURCES);
  clWaitForEvents(1, &event);
  cl_int status = 0;
  clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  const cl_command_queue other = clCreateCommandQueue(context, device, 0, nullptr);
  clEnqueueReadBuffer(other, buffer, CL_TRUE, 0, sizeof value, &value, 0, nullptr, nullptr);
  std::printf("status %d, value %d: %s\n", status, value, status < 0 && value == 1 ? "right" : "WRONG");
  return status < 0 && value == 1 ? 0 : 1;
}
