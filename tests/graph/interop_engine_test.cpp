// The user's own context, queue, buffers, SVM pointers and events: an engine works on them, in every memory mode.
#include "samebytes/interop/opencl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/environment.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/process.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSource = R"(
__kernel void add_twice(__global const float* x, const long x_offset, __global float* y, const long y_offset) {
  const size_t i = get_global_id(0);
  y[y_offset + i] += 2.0f * x[x_offset + i];
}
__kernel void triple(__global float* x) { x[get_global_id(0)] *= 3.0f; })";

// Each personality in each mode, where the environment asks for no other.
std::vector<DeviceCase> cases_of_every_mode() {
  std::vector<DeviceCase> cases;
  for (const DeviceCase& each : device_cases()) {
    if (each.memory) return device_cases();
    for (const MemoryMode mode : {MemoryMode::fine, MemoryMode::coarse, MemoryMode::hostptr, MemoryMode::copy})
      cases.push_back({each.personality, mode});
  }
  return cases;
}

class InteropEngineTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  InteropEngineTest()
      : personality_("SAMEBYTES_PERSONALITY", name_of(GetParam().personality)),
        device_(interop::device(engine_of(device_cases().front()))),
        context_(device_),
        queue_(context_, device_),
        program_(context_, std::string(kSource), true) {}

  void SetUp() override {
    const std::string svm = engine_of(device_cases().front()).device().svm;
    if (binds_pointers() && (svm == "none" || (GetParam().memory == MemoryMode::fine && svm == "coarse")))
      GTEST_SKIP() << "needs_svm: the device has " << svm;
  }

  std::unique_ptr<Engine> engine_on(const cl::CommandQueue& queue, EngineOptions options = {}) {
    options.memory = GetParam().memory;
    return std::make_unique<Engine>(context_, queue, options);
  }
  bool binds_pointers() const {
    return GetParam().memory != MemoryMode::hostptr && GetParam().memory != MemoryMode::copy;
  }
  // y += 2 x
  void add_twice(const Array& x, const Array& y) {
    cl::Kernel kernel(program_, "add_twice");
    interop::enqueue({x}, {y}, [&](const cl::CommandQueue& queue, std::span<const interop::DeviceBytes> bytes) {
      EXPECT_EQ(queue(), queue_());
      bytes[0].set_argument(kernel, 0);
      bytes[1].set_argument(kernel, 2);
      queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(static_cast<std::size_t>(x.size())));
    });
  }
  // A queue of the user's own with a command on the buffer: its event.
  cl::Event triple(const cl::CommandQueue& queue, const cl::Buffer& buffer, std::size_t items,
                   const std::vector<cl::Event>& after = {}) {
    cl::Kernel kernel(program_, "triple");
    kernel.setArg(0, buffer);
    cl::Event done;
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(items), cl::NullRange, &after, &done);
    queue.flush();
    return done;
  }

  const Environment personality_;
  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
  cl::Program program_;
};
INSTANTIATE_TEST_SUITE_P(On, InteropEngineTest, ::testing::ValuesIn(cases_of_every_mode()),
                         [](const auto& instance) { return name_of_case(instance.param); });

TEST_P(InteropEngineTest, an_engine_works_on_the_users_context_and_queue) {
  const auto engine = engine_on(queue_);
  const EngineScope use(*engine);
  EXPECT_EQ(interop::context(*engine)(), context_());
  EXPECT_EQ(interop::queue(*engine)(), queue_());
  EXPECT_EQ(interop::device(*engine)(), device_());
  const Array x = arange(0, 5) + 1.0;
  const Array y = array({10, 10, 10, 10, 10});
  add_twice(x, y);
  const Array z = y * 2.0 + sum(x);
  z.eval();
  add_twice(x, y);
  EXPECT_TRUE(all_close(z, std::vector<double>{39, 43, 47, 51, 55}, 1e-6));
  EXPECT_TRUE(all_close(y, std::vector<double>{14, 18, 22, 26, 30}, 1e-6));
}

TEST_P(InteropEngineTest, a_network_learns_the_same_on_it_as_on_the_engines_own) {
  const auto loss_of = [](Engine& engine) {
    const EngineScope use(engine);
    const Array w = cell(full({16, 4}, 0.25), "w");
    const Array x = reshape(arange(0, 8 * 16) * 0.01, {8, 16});
    optim::Sgd sgd(std::vector<Array>{w}, {.rate = 0.1});
    for (int step = 0; step < 3; ++step) sgd.step(mean(square(matmul(x, w) - 1.0)));
    return w.to_vector<float>();
  };
  const auto theirs = engine_on(queue_);
  const auto own = make_engine(GetParam());
  EXPECT_EQ(loss_of(*theirs), loss_of(*own));
}

TEST_P(InteropEngineTest, handles_outlive_the_engine_and_the_engine_outlives_them) {
  cl::CommandQueue kept;
  {
    auto engine = engine_on(queue_);
    kept = interop::queue(*engine);
    queue_ = cl::CommandQueue();
    const EngineScope use(*engine);
    EXPECT_EQ(sum(ones({100})).value(), 100.0);
  }
  cl::Buffer buffer(context_, CL_MEM_READ_WRITE, sizeof(float));
  const float one = 1.0f;
  float three = 0.0f;
  kept.enqueueWriteBuffer(buffer, CL_TRUE, 0, sizeof one, &one);
  triple(kept, buffer, 1);
  kept.enqueueReadBuffer(buffer, CL_TRUE, 0, sizeof three, &three);
  EXPECT_EQ(three, 3.0f);
}

TEST_P(InteropEngineTest, an_array_outlives_its_engine_and_the_users_context) {
  auto engine = engine_on(queue_);
  Array left;
  {
    const EngineScope use(*engine);
    left = ones({1000}) * 2.0;
    left.eval();
  }
  engine.reset();
  program_ = cl::Program();
  queue_ = cl::CommandQueue();
  context_ = cl::Context();
  left = Array();
}

TEST_P(InteropEngineTest, a_users_buffer_is_an_array_of_the_same_bytes) {
  const auto engine = engine_on(queue_);
  const EngineScope use(*engine);
  std::vector<float> values(64);
  std::iota(values.begin(), values.end(), 0.0f);
  const cl::Buffer buffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, values.size() * sizeof(float),
                          values.data());
  const cl::CommandQueue other(context_, device_);
  const Array x = interop::adopt(buffer, {8, 8}, f32);
  interop::wait_for(triple(other, buffer, 64), x);
  EXPECT_EQ((x + 1.0).to_vector<float>()[5], 16.0f);
  {
    const HostView<float> view = x.mutable_host<float>();
    EXPECT_EQ(view[63], 189.0f);
    view[63] = 7.0f;
  }
  // What the engine and the host left there is what the user's next command sees, and the other way round.
  interop::wait_for(triple(other, buffer, 64, {interop::ready(x)}), x);
  EXPECT_EQ(x.to_vector<float>()[63], 21.0f);
  EXPECT_EQ((x * 2.0).to_vector<float>()[5], 90.0f);
}

TEST_P(InteropEngineTest, a_users_shared_memory_is_an_array_of_the_same_bytes) {
  const auto engine = engine_on(queue_);
  const EngineScope use(*engine);
  const bool is_fine = GetParam().memory == MemoryMode::fine;
  auto* const values = static_cast<float*>(
      clSVMAlloc(context_(), CL_MEM_READ_WRITE | (is_fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0), 16 * sizeof(float), 0));
  ASSERT_NE(values, nullptr);
  if (!binds_pointers()) {
    EXPECT_THAT(message_of<ArgumentError>([&] { interop::adopt_svm(values, {16}, f32); }), HasSubstr("cl::Buffer"));
    clSVMFree(context_(), values);
    return;
  }
  if (!is_fine) queue_.enqueueMapSVM(values, CL_TRUE, CL_MAP_WRITE, 16 * sizeof(float));
  for (int i = 0; i < 16; ++i) values[i] = static_cast<float>(i);
  if (!is_fine) queue_.enqueueUnmapSVM(values);
  bool is_freed = false;
  {
    const Array x = interop::adopt_svm(values, {16}, f32, [&] { is_freed = true; });
    EXPECT_EQ((x * 2.0).to_vector<float>()[3], 6.0f);
    EXPECT_THROW(interop::adopt_svm(values, {16}, f32), ArgumentError);
    cl::Kernel kernel(program_, "triple");
    cl::Event done;
    queue_.finish();
    clSetKernelArgSVMPointer(kernel(), 0, values);
    const cl::CommandQueue other(context_, device_);
    const std::vector<cl::Event> after{interop::ready(x)};
    other.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(16), cl::NullRange, &after, &done);
    other.flush();
    interop::wait_for(done, x);
    EXPECT_EQ(x.to_vector<float>()[5], 15.0f);
  }
  engine->clear_cache();
  for (int i = 0; i < 1000 && !is_freed; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(is_freed);
  clSVMFree(context_(), values);
}

TEST_P(InteropEngineTest, a_view_waits_for_the_users_event) {
  const auto engine = engine_on(queue_);
  const EngineScope use(*engine);
  const Array x = array({1, 2, 3});
  const Array y = x * 2.0;
  y.eval();
  cl::UserEvent gate(context_);
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    gate.setStatus(CL_COMPLETE);
  });
  interop::wait_for(gate, x);
  EXPECT_EQ(x.to_vector<float>()[2], 3.0f);
  EXPECT_EQ(gate.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(), CL_COMPLETE);
  opens.join();
}

TEST_P(InteropEngineTest, a_context_of_several_devices_works_on_the_queues_one) {
  SAMEBYTES_NEEDS_PARTS();
  static auto& parts = *new std::vector<cl::Device>;  // as long as the process: a worker of PoCL 3.1 still looks there
  const cl_device_partition_property by_ones[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  if (parts.empty()) device_.createSubDevices(by_ones, &parts);
  ASSERT_GE(parts.size(), 2u);
  context_ = cl::Context(parts);
  const auto engine = engine_on(cl::CommandQueue(context_, parts[1]));
  const EngineScope use(*engine);
  EXPECT_EQ(engine->device_count(), 1);
  EXPECT_EQ(engine->device().cores, 1);
  EXPECT_EQ(interop::device(*engine)(), parts[1]());
  EXPECT_EQ(sum(matmul(ones({8, 8}), ones({8, 8}))).value(), 512.0);
}

TEST_P(InteropEngineTest, what_does_not_go_together_is_refused) {
  const auto refused = [&](const cl::Context& context, const cl::CommandQueue& queue, EngineOptions options = {}) {
    return message_of<ArgumentError>([&] { Engine engine(context, queue, options); });
  };
  EXPECT_THAT(refused(cl::Context(device_), queue_), HasSubstr("another context"));
  EXPECT_THAT(refused(context_, cl::CommandQueue()), HasSubstr("empty handle"));
  EXPECT_THAT(refused(cl::Context(), queue_), HasSubstr("empty handle"));
  EXPECT_THAT(refused(context_, queue_, {.device = "cpu"}), HasSubstr("leave device, devices and split out"));
  EXPECT_THAT(refused(context_, queue_, {.profile = true}), HasSubstr("CL_QUEUE_PROFILING_ENABLE"));
  const cl_command_queue_properties can = device_.getInfo<CL_DEVICE_QUEUE_ON_HOST_PROPERTIES>();
  if (can & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) {
    const cl::CommandQueue loose(context_, device_, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    EXPECT_THAT(refused(context_, loose), HasSubstr("in-order"));
  }
}

TEST_P(InteropEngineTest, buffers_and_events_that_do_not_fit_are_refused) {
  const auto engine = engine_on(queue_);
  const EngineScope use(*engine);
  const cl::Context elsewhere(device_);
  const auto refused = [](const cl::Buffer& buffer) {
    return message_of<ArgumentError>([&] { interop::adopt(buffer, {4}, f32); });
  };
  EXPECT_THAT(refused(cl::Buffer()), HasSubstr("got none"));
  EXPECT_THAT(refused(cl::Buffer(elsewhere, CL_MEM_READ_WRITE, 16)), HasSubstr("another context"));
  EXPECT_THAT(refused(cl::Buffer(context_, CL_MEM_READ_WRITE, 15)), HasSubstr("16 bytes, got one of 15"));
  EXPECT_THAT(refused(cl::Buffer(context_, CL_MEM_READ_ONLY, 16)), HasSubstr("CL_MEM_READ_WRITE"));
  const Array x = ones({4});
  x.eval();
  EXPECT_THROW(interop::wait_for(cl::Event(), x), ArgumentError);
  cl::UserEvent other(elsewhere);
  EXPECT_THAT(message_of<ArgumentError>([&] { interop::wait_for(other, x); }), HasSubstr("another context"));
  EXPECT_EQ(sum(x).value(), 4.0);
}

TEST_P(InteropEngineTest, profiles_where_the_queue_notes_times) {
  const auto engine = engine_on(cl::CommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE), {.profile = true});
  const EngineScope use(*engine);
  Profiler profiler(*engine);
  EXPECT_EQ(sum(ones({64, 64})).value(), 4096.0);
}

// In a process of its own: what a driver says of a device is asked for once.
TEST(InteropEngineErrors, DISABLED_the_devices_have_no_compiler) {
  std::vector<cl::Platform> platforms;
  std::vector<cl::Device> devices;
  cl::Platform::get(&platforms);
  for (const cl::Platform& platform : platforms)
    if (devices.empty()) platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
  ASSERT_FALSE(devices.empty());
  const cl::Context context(devices[0]);
  const cl::CommandQueue queue(context, devices[0]);
  const std::string message = message_of<ArgumentError>([&] { Engine engine(context, queue); });
  EXPECT_THAT(message, HasSubstr("engine: '" + devices[0].getInfo<CL_DEVICE_NAME>()));
  EXPECT_THAT(message, HasSubstr("cannot be used: its driver has no compiler"));
}

TEST(InteropEngineErrors, the_device_of_the_queue_cannot_be_used) {
  if (is_sanitized()) GTEST_SKIP() << "no_preload: this binary is instrumented";
  if (!std::filesystem::exists(built_program("libfaults_preload.so")))
    GTEST_SKIP() << "no_preload: the program stands outside its build";
  const Outcome child = run_child(
      "InteropEngineErrors.DISABLED_the_devices_have_no_compiler",
      {{"LD_PRELOAD", built_program("libfaults_preload.so")}, {"SAMEBYTES_FAULTS", "refuse clGetDeviceInfo 1"}});
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("[  PASSED  ] 1 test"));
}

}  // namespace
}  // namespace samebytes::testing
