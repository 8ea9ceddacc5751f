// The user's own kernels on arrays' bytes, in order with the engine's launches.
#include "samebytes/interop/opencl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSource = R"(
__kernel void add_twice(__global const float* x, const long x_offset, __global float* y, const long y_offset) {
  const size_t i = get_global_id(0);
  y[y_offset + i] += 2.0f * x[x_offset + i];
})";

class InteropTest : public OnDevice {
 protected:
  InteropTest() {
    const cl::Program program(interop::context(engine()), std::string(kSource), true);
    kernel_ = cl::Kernel(program, "add_twice");
  }
  // y += 2 x
  void add_twice(const Array& x, const Array& y) {
    interop::enqueue({x}, {y}, [&](const cl::CommandQueue& queue, std::span<const interop::DeviceBytes> bytes) {
      bytes[0].set_argument(kernel_, 0);
      bytes[1].set_argument(kernel_, 2);
      queue.enqueueNDRangeKernel(kernel_, cl::NullRange, cl::NDRange(static_cast<std::size_t>(x.size())));
    });
  }

 private:
  cl::Kernel kernel_;
};
SAMEBYTES_ON_EVERY_DEVICE(InteropTest);

TEST_P(InteropTest, a_users_kernel_runs_between_the_engines) {
  const Array x = arange(0, 5) + 1.0;  // evaluated by enqueue
  const Array y = array({10, 10, 10, 10, 10});
  add_twice(x, y);
  const Array z = y * 2.0;
  z.eval();
  add_twice(x, y);
  EXPECT_TRUE(all_close(z, std::vector<double>{24, 28, 32, 36, 40}, 1e-6));
  EXPECT_TRUE(all_close(y, std::vector<double>{14, 18, 22, 26, 30}, 1e-6));
}

TEST_P(InteropTest, parts_of_a_storage_are_bound_by_offset) {
  const Array x = arange(0, 8);
  const Array y = array({0, 0, 0});
  add_twice(slice(x, 0, 4, 7), y);
  EXPECT_TRUE(all_close(y, std::vector<double>{8, 10, 12}, 1e-6));
}

TEST_P(InteropTest, what_cannot_be_bound_is_refused) {
  const Array x = arange(0, 6), y = array({0, 0, 0, 0, 0, 0});
  EXPECT_THROW(add_twice(x, x + 1.0), ArgumentError);
  EXPECT_THROW(add_twice(transpose(reshape(x, {2, 3})), y), ArgumentError);
  EXPECT_THROW(add_twice(Array(), y), ArgumentError);
  EXPECT_THROW(interop::enqueue({}, {}, [](auto, auto) {}), ArgumentError);
  EXPECT_THROW(interop::queue(engine(), engine().device_count()), ArgumentError);
  {
    const HostView<float> view = y.mutable_host<float>();
    EXPECT_THROW(add_twice(x, y), ArgumentError);
  }
  add_twice(x, y);
  EXPECT_EQ(y.to_vector<double>()[5], 10.0);
}

TEST(InteropChild, DISABLED_a_wait_for_an_event_that_never_ends_is_given_up) {
  EngineOptions options;
  options.stall_seconds = 0.3;
  Engine engine(options);
  const Array x = ones({4}).eval();
  const cl::UserEvent never(interop::context(engine));
  EXPECT_THAT(message_of<DeviceError>([&] { interop::wait_for(never, std::vector{x}); }),
              HasSubstr("has not answered for 0.3 s"));
}

// Such a device would have to wait inside the call (submission.cpp), where nothing ends it.
TEST(Interop, a_device_that_works_inside_the_calls_waits_no_longer_than_the_watchdog) {
  if (Engine().device().platform.find("Portable") == std::string::npos) GTEST_SKIP() << "needs_pocl: POCL_DEVICES";
  const Outcome outcome = run_child("InteropChild.*", {{"POCL_DEVICES", "basic"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace samebytes::testing
