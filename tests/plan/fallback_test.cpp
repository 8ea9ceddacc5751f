// What one device cannot run another one does: the same numbers, counted; and what is said where nobody may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/faults.h"
#include "samebytes/explain.h"
#include "samebytes/samebytes.h"
#include "support/environment.h"
#include "support/errors.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using detail::DeviceFault;
using detail::faults;
using detail::MutexLock;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The compiler of a device stops at texts with these words while this lives.
class Unbuildable {
 public:
  Unbuildable(int device, const std::string& words) {
    const MutexLock lock(faults().mutex);
    faults().unbuildable = words;
    faults().unbuildable_on = device;
  }
  ~Unbuildable() { faults().unbuildable_on = -1; }
  Unbuildable(const Unbuildable&) = delete;
};

// In the text of a program: "/softmax.cl\"", of whichever personality.
std::string file(const std::string& stem) { return "/" + stem + ".cl\""; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class Fallbacks : public ::testing::Test {
 protected:
  void SetUp() override { set("SAMEBYTES_TUNING", "off"); }  // the built-in cost of crossing
  void TearDown() override {
    set_log_sink({});
    faults().device_fault = DeviceFault::none;
  }
  void set(const char* name, const std::string& value) { environment_.set(name, value); }
  void keep_log() {
    set_log_sink([this](std::string_view level, std::string_view message) {
      if (message.find("fallback") == 0) log_.push_back(std::string(level) + " " + std::string(message));
    });
  }
  const std::vector<std::string>& log() const { return log_; }

 private:
  Environment environment_;
  std::vector<std::string> log_;
};

Array rows() { return uniform({24, 37}); }

std::vector<float> softmax_of_tanh(Engine& engine) {
  const EngineScope scope(engine);
  return softmax(tanh(rows()) * 3.0).to_vector<float>();
}

TEST_F(Fallbacks, a_kernel_that_does_not_build_runs_on_the_other_part_of_a_device) {
  SAMEBYTES_NEEDS_PARTS();
  const EngineOptions options{.split = {1, 1}, .forbid_copies = true, .seed = 4, .fallback = true};
  Engine plain(options);
  const std::vector<float> expected = softmax_of_tanh(plain);
  EXPECT_TRUE(plain.fallbacks().empty());
  keep_log();
  const Unbuildable fault(0, file("softmax"));
  Engine engine(options);
  EXPECT_EQ(softmax_of_tanh(engine), expected);
  softmax_of_tanh(engine);  // by the same plan
  EXPECT_EQ(engine.plans().plans_made, plain.plans().plans_made);
  const std::vector<Fallback> report = engine.fallbacks();
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].op, "softmax");
  EXPECT_THAT(report[0].device, StartsWith("cpu:0.0 '"));
  EXPECT_THAT(report[0].reason, HasSubstr("softmax.cl does not build: "));
  EXPECT_THAT(report[0].reason, HasSubstr("planted"));
  EXPECT_THAT(report[0].ran_on, StartsWith("cpu:0.1 '"));
  EXPECT_EQ(report[0].launches, 2u);
  EXPECT_EQ(report[0].bytes_crossed, 0u);
  EXPECT_EQ(engine.transfers().bytes_copied, 0u);
  ASSERT_EQ(log().size(), 1u);
  EXPECT_THAT(log()[0], StartsWith("warning fallback: softmax runs on cpu:0.1 '"));
  EXPECT_THAT(explain(engine), HasSubstr("softmax runs on cpu:0.1 '"));
}

TEST_F(Fallbacks, of_a_program_of_fused_kernels_only_those_that_do_not_build_run_elsewhere) {
  SAMEBYTES_NEEDS_PARTS();
  const auto values = [](Engine& engine) {
    const EngineScope scope(engine);
    const Array a = tanh(rows()) + 1.0, b = exp(uniform({5, 11}));
    eval({a, b});
    std::vector<float> all = a.to_vector<float>();
    for (const float v : b.to_vector<float>()) all.push_back(v);
    return all;
  };
  const EngineOptions options{.split = {1, 1}, .seed = 4, .host_execution = HostExecution::off, .fallback = true};
  Engine plain(options);
  const std::vector<float> expected = values(plain);
  const Unbuildable fault(0, "sb_tanh(a0)");
  Engine engine(options);
  EXPECT_EQ(values(engine), expected);
  ASSERT_EQ(engine.fallbacks().size(), 1u);
  EXPECT_THAT(engine.fallbacks()[0].op, HasSubstr("tanh"));
  EXPECT_THAT(engine.fallbacks()[0].op, Not(HasSubstr("exp")));
  EXPECT_EQ(engine.fallbacks()[0].launches, 1u);
}

// Three steps of a network with state; the loss of each and the weights at the end.
std::vector<float> trained(Engine& engine) {
  const EngineScope scope(engine);
  nn::Sequential net(nn::Linear({.in = 20, .out = 32}), nn::LayerNorm({.features = 32}), nn::Tanh(),
                     nn::Linear({.in = 32, .out = 7}));
  const std::vector<Array> parameters = net.parameters();
  optim::Sgd sgd(parameters, {.rate = 0.1, .momentum = 0.9});
  std::vector<float> numbers;
  for (int step = 0; step < 3; ++step) {
    const Array x = uniform({16, 20}), y = uniform({16, 7});
    const Array loss = mse_loss(softmax(net(x)), y);
    sgd.step(loss);
    numbers.push_back(static_cast<float>(loss.value()));
  }
  for (const Array& w : parameters)
    for (const float v : w.to_vector<float>()) numbers.push_back(v);
  return numbers;
}

TEST_F(Fallbacks, in_another_context_its_operands_cross_and_are_counted) {
  SAMEBYTES_NEEDS_PARTS();
  set("SAMEBYTES_CONTEXTS", "separate");
  for (const char* modes : {"fine", "fine,copy"}) {
    set("SAMEBYTES_MEMORY", modes);
    const EngineOptions options{.split = {1, 1}, .seed = 6, .fallback = true};
    Engine plain(options);
    const std::vector<float> expected = trained(plain);
    EXPECT_EQ(plain.transfers().crossings, 0u);
    const Unbuildable fault(0, file("softmax"));
    Engine engine(options);
    EXPECT_EQ(trained(engine), expected) << modes;
    const std::vector<Fallback> report = engine.fallbacks();
    ASSERT_FALSE(report.empty());
    std::uint64_t launches = 0, bytes = 0;
    for (const Fallback& each : report) {
      EXPECT_THAT(each.op, HasSubstr("softmax"));
      EXPECT_THAT(each.ran_on, StartsWith("cpu:0.1 '"));
      launches += each.launches;
      bytes += each.bytes_crossed;
    }
    EXPECT_GE(launches, 3u);
    EXPECT_EQ(bytes, engine.transfers().bytes_between_contexts);
    EXPECT_GE(bytes, 3 * 2 * 16 * 7 * sizeof(float));
    EXPECT_EQ(engine.device_count(), 2);
  }
}

TEST_F(Fallbacks, an_engine_of_one_device_opens_a_spare_one) {
  const bool is_cpu = list_devices().front().personality == Personality::cpu;
  if (!is_cpu) GTEST_SKIP() << "needs_cpu_kernels: " << list_devices().front().name << " does not run them";
  for (const char* contexts : {"platform", "separate"}) {
    set("SAMEBYTES_CONTEXTS", contexts);
    Engine plain({.seed = 6});
    const std::vector<float> expected = trained(plain);
    const Unbuildable fault(0, file("softmax"));
    Engine engine({.seed = 6, .fallback = true});
    const std::vector<float> numbers = trained(engine);
    ASSERT_EQ(numbers.size(), expected.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(numbers[i], expected[i], 1e-4) << i;
    EXPECT_EQ(engine.device_count(), 1);
    const std::vector<Fallback> report = engine.fallbacks();
    ASSERT_FALSE(report.empty());
    EXPECT_THAT(report[0].op, HasSubstr("softmax"));
    EXPECT_THAT(report[0].device, StartsWith("cpu:0 '"));
    EXPECT_THAT(report[0].ran_on,
                StartsWith(plain.device().personality == Personality::cpu ? "cpu:0/gpu" : "cpu:0/cpu"));
    EXPECT_EQ(report[0].bytes_crossed > 0, std::string(contexts) == "separate");
    EXPECT_EQ(engine.transfers().crossings > 0, std::string(contexts) == "separate");
    const EngineScope scope(engine);
    EXPECT_THROW(DeviceScope(1), ArgumentError);
  }
}

TEST_F(Fallbacks, where_nothing_is_refused_nothing_changes) {
  Engine plain({.forbid_copies = true, .seed = 6}), engine({.forbid_copies = true, .seed = 6, .fallback = true});
  EXPECT_EQ(trained(engine), trained(plain));
  EXPECT_TRUE(engine.fallbacks().empty());
  EXPECT_EQ(explain(engine), explain(plain));
  EXPECT_EQ(engine.plans().launches, plain.plans().launches);
  EXPECT_EQ(engine.device_count(), 1);
  EXPECT_EQ(engine.tuning().hash, plain.tuning().hash);
}

// A cell that a device of another context fills at first lies where it is used.
TEST_F(Fallbacks, weights_whose_first_values_come_from_elsewhere_cross_once) {
  SAMEBYTES_NEEDS_PARTS();
  set("SAMEBYTES_CONTEXTS", "separate");
  Engine engine({.split = {1, 1}, .seed = 2, .fallback = true});
  const Unbuildable fault(0, file("random"));
  const Array w = cell(uniform({40, 30}), "w");
  (w * 2.0).eval();
  const std::uint64_t crossed = engine.transfers().bytes_between_contexts;
  EXPECT_EQ(crossed, 40 * 30 * sizeof(float));
  EXPECT_EQ(engine.fallbacks().at(0).bytes_crossed, crossed);
  for (int i = 0; i < 3; ++i) (w * 3.0).eval();
  EXPECT_EQ(engine.transfers().bytes_between_contexts, crossed);
}

TEST_F(Fallbacks, without_it_the_error_names_op_device_reason_and_the_way_out) {
  Engine engine;
  const std::string device = engine.device().name;
  const Array x = array({1.0f, 2.0f, 4.0f});  // by the host: no kernel is built for it
  {
    const Unbuildable fault(0, file("softmax"));
    const std::string text = message_of<BuildError>([&] { softmax(x).eval(); });
    EXPECT_THAT(first_line(text), StartsWith("softmax: kernel "));
    for (const std::string& word : {std::string("softmax.cl"), device, std::string("--fallback"),
                                    std::string("EngineOptions::fallback"), std::string("CL_BUILD_PROGRAM_FAILURE")})
      EXPECT_THAT(first_line(text), HasSubstr(word));
    EXPECT_THAT(text, HasSubstr("planted"));
  }
  {
    const Unbuildable fault(0, "sb_tanh(a0)");
    const std::string text = message_of<BuildError>([&] { (tanh(x) * 7.0).eval(); });
    EXPECT_THAT(first_line(text), StartsWith("tanh"));
    EXPECT_THAT(first_line(text), HasSubstr("--fallback"));
  }
  EXPECT_NEAR(sum(softmax(rows())).value(), 24, 1e-4);  // the engine goes on
}

TEST_F(Fallbacks, where_no_device_is_left_the_error_says_so) {
  Engine engine({.fallback = true});
  const CustomOp broken{.name = "broken",
                        .entry = "broken",
                        .source = "__kernel void broken(ARRAY(const real, x), ARRAY(real, y), const int n) { oops; }"};
  const std::string text =
      message_of<BuildError>([&] { custom_op(broken, std::vector<Array>{array({1.0f})}, {1}).eval(); });
  EXPECT_THAT(first_line(text), StartsWith("broken: "));
  EXPECT_THAT(first_line(text), HasSubstr("no other device"));
  EXPECT_THAT(text, HasSubstr("oops"));
  EXPECT_EQ((array({1.0f}) + 1.0).value(), 2.0);  // the engine goes on
}

TEST_F(Fallbacks, copies_that_are_forbidden_keep_it_within_its_context) {
  SAMEBYTES_NEEDS_PARTS();
  set("SAMEBYTES_CONTEXTS", "separate");
  Engine engine({.split = {1, 1}, .forbid_copies = true, .fallback = true});
  const Unbuildable fault(0, file("softmax"));
  EXPECT_THAT(message_of<BuildError>([] { softmax(rows()).eval(); }), HasSubstr("no other device"));
}

TEST_F(Fallbacks, groups_that_are_too_large_for_a_device_run_elsewhere) {
  SAMEBYTES_NEEDS_PARTS();
  set("SAMEBYTES_PERSONALITY", "gpu");
  const EngineOptions options{.split = {1, 1}, .host_execution = HostExecution::off, .fallback = true};
  Engine plain(options);
  const auto run = [](Engine& engine) {
    const EngineScope scope(engine);
    return softmax(array({1.0f, 2.5f, 0.5f})).to_vector<float>();
  };
  const std::vector<float> expected = run(plain);
  faults().faulty_device = 0;
  faults().launches_before_fault = 1000;
  faults().device_fault = DeviceFault::small_groups;
  Engine engine(options);
  EXPECT_EQ(run(engine), expected);
  ASSERT_EQ(engine.fallbacks().size(), 1u);
  EXPECT_EQ(engine.fallbacks()[0].op, "softmax");
  EXPECT_THAT(engine.fallbacks()[0].reason, HasSubstr("items, at most 1 of this kernel"));
  Engine strict({.split = {1, 1}, .host_execution = HostExecution::off});
  EXPECT_EQ(run(strict), expected) << "without the option the driver is not asked beforehand";
}

TEST_F(Fallbacks, a_launch_that_is_not_accepted_runs_elsewhere_from_then_on) {
  SAMEBYTES_NEEDS_PARTS();
  const EngineOptions options{.split = {1, 1}, .seed = 4, .host_execution = HostExecution::off, .fallback = true};
  Engine plain(options);
  const std::vector<float> expected = softmax_of_tanh(plain);
  Engine engine(options);
  const EngineScope scope(engine);
  const Array x = rows();
  x.eval();
  faults().faulty_device = 0;
  faults().launches_before_fault = 1;  // the fused kernel before it
  faults().device_fault = DeviceFault::refuse;
  EXPECT_EQ(softmax(tanh(x) * 3.0).to_vector<float>(), expected);
  ASSERT_EQ(engine.fallbacks().size(), 1u);
  EXPECT_EQ(engine.fallbacks()[0].op, "softmax");
  EXPECT_THAT(engine.fallbacks()[0].reason, HasSubstr("CL_OUT_OF_RESOURCES"));
  softmax(uniform({6, 37})).eval();  // of another plan
  EXPECT_EQ(engine.fallbacks()[0].launches, 2u);
}

TEST_F(Fallbacks, what_was_overwritten_before_a_launch_is_refused_is_not_done_again) {
  SAMEBYTES_NEEDS_PARTS();
  Engine engine({.split = {1, 1}, .host_execution = HostExecution::off, .fallback = true});
  const Array count = cell(zeros({8, 16}), "count");
  count.eval();
  const auto step = [&] { return softmax(update(count, count + 1.0)).to_vector<float>(); };
  faults().faulty_device = 0;
  faults().launches_before_fault = 1;
  faults().device_fault = DeviceFault::refuse;
  EXPECT_THAT(message_of<DeviceError>(step), HasSubstr("begun to overwrite"));
  EXPECT_EQ(count.to_vector<float>()[0], 1);
  EXPECT_NEAR(step()[0], 1.0 / 16, 1e-6);
  EXPECT_EQ(count.to_vector<float>()[0], 2);
  EXPECT_EQ(engine.fallbacks().at(0).op, "softmax");
}

TEST_F(Fallbacks, a_launch_that_worked_before_is_the_devices_trouble) {
  SAMEBYTES_NEEDS_PARTS();
  Engine engine({.split = {1, 1}, .seed = 4, .host_execution = HostExecution::off, .fallback = true});
  const Array x = rows();
  x.eval();
  softmax(x).eval();
  faults().faulty_device = 0;
  faults().launches_before_fault = 0;
  faults().device_fault = DeviceFault::refuse;
  EXPECT_THROW(softmax(x).eval(), DeviceError);
  EXPECT_TRUE(engine.fallbacks().empty());
}

TEST_F(Fallbacks, the_environment_turns_it_on) {
  set("SAMEBYTES_FALLBACK", "1");
  EXPECT_TRUE(Engine().options().fallback);
  set("SAMEBYTES_FALLBACK", "0");
  EXPECT_FALSE(Engine().options().fallback);
  set("SAMEBYTES_FALLBACK", "maybe");
  EXPECT_THAT(message_of<ArgumentError>([] { Engine engine; }), HasSubstr("'maybe'"));
}

}  // namespace
}  // namespace samebytes::testing
