// Runs one small kernel that is wrong on purpose, so that it can be shown that the checks see such a thing:
//   planted_kernel overrun   a work-item writes one element past its buffer
//   planted_kernel race      all work-items write the same element without an order
//   planted_kernel unset     a work-item reads local memory that nobody wrote
//   planted_kernel clean     the same launch without a mistake
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <cstring>

namespace {

constexpr char kSource[] =
    "__kernel void clean(__global float *dst) { dst[get_global_id(0)] = 1.0f; }\n"
    "__kernel void overrun(__global float *dst) { dst[get_global_id(0) + 1] = 1.0f; }\n"
    "__kernel void race(__global float *dst) { dst[0] = (float)get_global_id(0); }\n"
    "__kernel void unset(__global float *dst) {\n"
    "  __local float tile[64];\n"
    "  if (get_local_id(0) > 0) tile[get_local_id(0)] = 2.0f;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  dst[get_global_id(0)] = tile[get_local_id(0)];\n"
    "}\n";
constexpr std::size_t kItems = 64;

int run(const char* name) {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS) return 2;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) return 2;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_command_queue queue = clCreateCommandQueue(context, device, 0, nullptr);
  const char* source = kSource;
  const cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
  if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return 1;
  cl_int status = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, name, &status);
  if (status != CL_SUCCESS) {
    std::fprintf(stderr, "no kernel named %s\n", name);
    return 1;
  }
  const cl_mem dst = clCreateBuffer(context, CL_MEM_READ_WRITE, kItems * sizeof(float), nullptr, nullptr);
  clSetKernelArg(kernel, 0, sizeof dst, &dst);
  clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kItems, &kItems, 0, nullptr, nullptr);
  clFinish(queue);
  clReleaseMemObject(dst);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: planted_kernel overrun|race|unset|clean\n");
    return 2;
  }
  return run(argv[1]);
}
