// OpenCL of your own and Samebytes in one queue and on the same bytes: the engine works on your context, a kernel of
// yours reads what an expression made, and an expression reads what the kernel wrote.
#include <samebytes/interop/opencl.h>
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
namespace sb = samebytes;

constexpr const char* kSource = R"(
__kernel void clip_to(__global float* x, const long x_offset, const float most) {
  const size_t i = x_offset + get_global_id(0);
  x[i] = fmin(x[i], most);
})";

int main() {
  // What a program that uses OpenCL has already.
  const cl::Context context(CL_DEVICE_TYPE_ALL);
  const cl::Device device = context.getInfo<CL_CONTEXT_DEVICES>().front();
  const cl::CommandQueue queue(context, device);
  const cl::Program program(context, std::string(kSource), true);
  cl::Kernel clip_to(program, "clip_to");

  sb::Engine engine(context, queue);
  const sb::Array x = sb::exp(sb::arange(0, 8));
  sb::interop::enqueue({}, {x.eval()},
                       [&](const cl::CommandQueue& on, std::span<const sb::interop::DeviceBytes> bytes) {
                         bytes[0].set_argument(clip_to, 0);
                         clip_to.setArg(2, 10.0f);
                         on.enqueueNDRangeKernel(clip_to, cl::NullRange, cl::NDRange(8));
                       });
  std::printf("clipped, then summed: %g\n", sb::sum(x).value());
  assert(std::abs(sb::sum(x).value() - (1 + 2.718282 + 7.389056 + 5 * 10)) < 1e-3);

  // A buffer of yours as an array, and an event of yours that it waits for.
  const cl::Buffer buffer(context, CL_MEM_READ_WRITE, 4 * sizeof(float));
  cl::Event filled;
  queue.enqueueFillBuffer(buffer, 2.5f, 0, 4 * sizeof(float), nullptr, &filled);
  const sb::Array y = sb::interop::adopt(buffer, {4}, sb::f32);
  sb::interop::wait_for(filled, y);
  std::printf("a buffer, squared: %s\n", (y * y).to_string().c_str());
  assert(sb::sum(y * y).value() == 25.0);
}
