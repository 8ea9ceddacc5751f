// Makes a known number of byte-moving OpenCL calls of every kind: what tests/support/count_bytes_preload.cpp must
// report. Exit status 0, or 2 where there is no device with SVM.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <vector>

namespace {

constexpr std::size_t kBytes = 4096;

int run() {
  cl_uint platforms = 0;
  if (clGetPlatformIDs(0, nullptr, &platforms) != CL_SUCCESS || platforms == 0) return 2;
  std::vector<cl_platform_id> ids(platforms);
  clGetPlatformIDs(platforms, ids.data(), nullptr);
  cl_device_id device = nullptr;
  for (const cl_platform_id id : ids) {
    if (clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) continue;
    cl_device_svm_capabilities svm = 0;
    clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr);
    if (svm != 0) break;
    device = nullptr;
  }
  if (device == nullptr) return 2;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);

  std::vector<char> host(kBytes);
  const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, kBytes, nullptr, nullptr);
  const cl_mem copied = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, kBytes, host.data(), nullptr);  // 4096
  clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 100, host.data(), 0, nullptr, nullptr);             // 100
  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 200, host.data(), 0, nullptr, nullptr);              // 200
  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 2 * kBytes, host.data(), 0, nullptr, nullptr);       // refused: 0
  const std::size_t origin[3] = {0, 0, 0};
  const std::size_t region[3] = {8, 4, 2};
  clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin, origin, region, 16, 64, 16, 64, host.data(), 0, nullptr,
                          nullptr);  // 64
  clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, origin, origin, region, 16, 64, 16, 64, host.data(), 0, nullptr,
                           nullptr);                                                                            // 64
  clEnqueueCopyBuffer(queue, buffer, copied, 0, 0, 300, 0, nullptr, nullptr);                                   // 300
  clEnqueueCopyBufferRect(queue, buffer, copied, origin, origin, region, 16, 64, 16, 64, 0, nullptr, nullptr);  // 64
  clEnqueueMigrateMemObjects(queue, 1, &buffer, 0, 0, nullptr, nullptr);                                        // 4096
  const char zero = 0;
  clEnqueueFillBuffer(queue, buffer, &zero, 1, 0, 500, 0, nullptr, nullptr);  // 500
  void* const mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 600, 0, nullptr, nullptr, nullptr);
  clEnqueueUnmapMemObject(queue, buffer, mapped, 0, nullptr, nullptr);

  void* const first = clSVMAlloc(context, CL_MEM_READ_WRITE, kBytes, 0);
  void* const second = clSVMAlloc(context, CL_MEM_READ_WRITE, kBytes, 0);
  clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, first, 700, 0, nullptr, nullptr);
  clEnqueueSVMUnmap(queue, first, 0, nullptr, nullptr);
  clEnqueueSVMMemFill(queue, first, &zero, 1, 800, 0, nullptr, nullptr);
  clEnqueueSVMMemcpy(queue, CL_TRUE, second, first, 900, 0, nullptr, nullptr);
  clFinish(queue);
  clSVMFree(context, first);
  clSVMFree(context, second);
  clReleaseMemObject(copied);
  clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}

}  // namespace

int main() { return run(); }
