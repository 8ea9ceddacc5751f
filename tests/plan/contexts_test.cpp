// Devices of two contexts: the same numbers as in one, bytes that cross once for each value and reader, and counts of
// them. SAMEBYTES_CONTEXTS=separate gives each part of a device a context of its own, in the modes of SAMEBYTES_MEMORY.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/faults.h"
#include "samebytes/explain.h"
#include "samebytes/samebytes.h"
#include "support/device_chains.h"
#include "support/environment.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using detail::MutexLock;
using ::testing::HasSubstr;

class Contexts : public ::testing::Test {
 protected:
  void SetUp() override {
    SAMEBYTES_NEEDS_PARTS();
    set("SAMEBYTES_CONTEXTS", "separate");
    set("SAMEBYTES_TUNING", "off");  // the built-in cost of crossing
  }
  void set(const char* name, const std::string& value) { environment_.set(name, value); }
  void set_modes(const char* modes) { set("SAMEBYTES_MEMORY", modes); }

 private:
  Environment environment_;
};

constexpr const char* kModes[] = {"fine", "fine,copy", "hostptr,coarse", "copy,fine", "coarse,hostptr", "copy"};

std::vector<std::vector<float>> chains(int devices) {
  Engine engine({.split = {1, 1}, .seed = 3});
  std::vector<std::vector<float>> results = device_chains(devices, 48, 6);
  EXPECT_EQ(engine.transfers().bytes_between_contexts > 0, devices > 1);
  return results;
}

TEST_F(Contexts, values_that_change_contexts_are_what_they_are_in_one) {
  set_modes("fine");
  const auto one = chains(1);
  for (const char* modes : kModes) {
    set_modes(modes);
    EXPECT_EQ(chains(2), one) << modes;
  }
}

// Steps on halves of batches, each half on the next of so many devices, in one graph with one update.
std::vector<float> trained_on_halves(int devices, std::uint64_t* crossed) {
  Engine engine({.split = {1, 1}, .seed = 5});
  nn::Sequential net(nn::Conv2d({.in = 2, .out = 9, .kernel = 3, .pad = 1}), nn::Relu(), nn::Flatten(),
                     nn::Linear({.in = 9 * 25, .out = 33}), nn::Tanh(), nn::Linear({.in = 33, .out = 7}));
  const std::vector<Array> parameters = net.parameters();
  optim::AdamW adam(parameters, {.rate = 1e-2});
  for (int step = 0; step < 6; ++step) {
    if (step == 5) *crossed = engine.transfers().bytes_between_contexts;
    const Array x = uniform({64, 5, 5, 2}), y = uniform({64, 7});
    Array loss;
    for (int half = 0; half < 2; ++half) {
      const DeviceScope on(half % devices);
      const auto part = [&](const Array& a) { return slice(a, 0, half * 32, half * 32 + 32); };
      const Array own = mse_loss(net(part(x)), part(y)) * 0.5;
      loss = loss.defined() ? loss + own : own;
    }
    adam.step(loss);
    EXPECT_TRUE(std::isfinite(loss.value()));
  }
  *crossed = engine.transfers().bytes_between_contexts - *crossed;
  std::vector<float> weights;
  for (const Array& w : parameters)
    for (const float v : w.to_vector<float>()) weights.push_back(v);
  return weights;
}

TEST_F(Contexts, halves_of_a_batch_train_to_the_bytes_of_one_device) {
  set_modes("fine");
  std::uint64_t crossed = 0;
  const std::vector<float> one = trained_on_halves(1, &crossed);
  EXPECT_EQ(crossed, 0u);
  for (const char* modes : {"fine", "fine,copy", "coarse,hostptr"}) {
    set_modes(modes);
    EXPECT_EQ(trained_on_halves(2, &crossed), one) << modes;
    // Parameters there, gradients back, half of a batch and a loss: not each several times.
    const std::uint64_t weights = 4 * one.size(), data = 4 * 32 * (50 + 7);
    EXPECT_GE(crossed, 2 * weights + data) << modes;
    EXPECT_LE(crossed, 2 * weights + data + 4096) << modes;
  }
}

TEST_F(Contexts, a_value_crosses_once_for_all_its_readers) {
  Engine engine({.split = {1, 1}});
  const Array x = uniform({16, 16});
  x.eval();
  Array a, b;
  {
    const DeviceScope on(1);
    a = matmul(x, x);
    b = softmax(x) + a;
  }
  eval({a, b});
  EXPECT_EQ(engine.transfers().bytes_between_contexts, 16 * 16 * 4u);
  EXPECT_EQ(engine.transfers().crossings, 1u);
  b.to_vector<float>();  // read where it is
  EXPECT_EQ(engine.transfers().crossings, 1u);
  matmul(a, x).eval();  // what is ready crosses too
  EXPECT_EQ(engine.transfers().crossings, 2u);
  EXPECT_EQ(engine.transfers().bytes_copied, 2 * 16 * 16 * 4u);
}

TEST_F(Contexts, work_that_nobody_placed_is_left_where_its_bytes_are) {
  Engine engine({.split = {1, 1}});
  const Array x = uniform({256, 64}), w = uniform({64, 64});
  eval({x, w});
  Array y;
  {
    const DeviceScope on(1);
    y = matmul(x, w);
  }
  const Array score = mean(square(y) * 0.5);
  for (int step = 0; step < 2; ++step) {
    EXPECT_GT(score.value(), 0);
    EXPECT_EQ(engine.transfers().crossings, 2u);  // x and w
    const std::string text = explain(engine);
    EXPECT_THAT(text, HasSubstr("is left in context 1, where its inputs are"));
  }
  // As much on either side: it stays.
  const Array z = uniform({256, 64});
  z.eval();
  (y + z).eval();
  EXPECT_EQ(engine.transfers().crossings, 3u);
}

TEST_F(Contexts, the_cost_of_crossing_is_measured_once_and_kept) {
  const TemporaryFolder folder;
  set("SAMEBYTES_TUNING", folder.string());
  set_modes("fine,copy");
  const auto costs = [&] {
    const Engine engine({.split = {1, 1}});
    const Array x = uniform({16, 16});
    x.eval();
    const DeviceScope on(1);
    (x + x).eval();
    EXPECT_EQ(engine.transfers().bytes_between_contexts, 1024u);  // measuring is not counted
    std::ifstream file(folder / "contexts.json");
    return nlohmann::ordered_json::parse(file)["costs"];
  };
  const auto first = costs();
  EXPECT_EQ(first.size(), 4u);
  for (const auto& [name, cost] : first.items()) {
    EXPECT_GT(cost["seconds"], 0) << name;
    EXPECT_GT(cost["bytes_per_second"], 1e6) << name;
  }
  EXPECT_EQ(costs(), first);
  std::ofstream(folder / "contexts.json") << "{\"costs\": {\"a -> b\": {\"seconds\": 0}}}";
  EXPECT_THROW(costs(), IoError);
}

TEST_F(Contexts, only_the_part_that_is_read_crosses) {
  Engine engine({.split = {1, 1}});
  const Array x = uniform({64, 32});
  x.eval();
  Array y;
  {
    const DeviceScope on(1);
    y = matmul(slice(x, 0, 32, 40), transpose(slice(x, 0, 36, 44)));
  }
  y.eval();
  EXPECT_EQ(engine.transfers().bytes_between_contexts, 12 * 32 * 4u);
}

TEST_F(Contexts, what_is_overwritten_in_another_context_comes_back) {
  const auto statistics = [](int device) {
    Engine engine({.split = {1, 1}, .seed = 7});
    nn::BatchNorm norm({.features = 6});
    for (int step = 0; step < 3; ++step) {
      const DeviceScope on(device);
      norm(uniform({8, 4, 4, 6})).eval();
    }
    EXPECT_EQ(engine.transfers().crossings > 0, device == 1);
    std::vector<float> values;
    for (const nn::NamedArray& entry : norm.named_buffers())
      for (const float v : entry.array.to_vector<float>()) values.push_back(v);
    return values;
  };
  const auto one = statistics(0);
  for (const char* modes : {"fine", "fine,copy", "hostptr"}) {
    set_modes(modes);
    EXPECT_EQ(statistics(1), one) << modes;
  }
}

TEST_F(Contexts, a_part_of_a_model_may_live_in_another_context) {
  const auto train = [](bool apart) {
    Engine engine({.split = {1, 1}, .seed = 2});
    auto first = std::make_shared<nn::Linear>(nn::LinearOptions{.in = 12, .out = 20});
    std::shared_ptr<nn::Linear> second;
    {
      const DeviceScope on(apart ? 1 : 0);
      second = std::make_shared<nn::Linear>(nn::LinearOptions{.in = 20, .out = 5});
    }
    std::vector<Array> parameters = first->parameters();
    for (const Array& p : second->parameters()) parameters.push_back(p);
    optim::Sgd sgd(parameters, {.rate = 0.1, .momentum = 0.9});
    for (int step = 0; step < 4; ++step) {
      Array hidden = tanh((*first)(uniform({9, 12})));
      const DeviceScope on(apart ? 1 : 0);
      const Array loss = mean((*second)(hidden) * (*second)(hidden));
      sgd.step(loss);
    }
    std::vector<float> weights;
    for (const Array& p : parameters)
      for (const float v : p.to_vector<float>()) weights.push_back(v);
    return weights;
  };
  EXPECT_EQ(train(true), train(false));
}

TEST_F(Contexts, forbidden_copies_name_the_bytes) {
  Engine engine({.split = {1, 1}, .forbid_copies = true});
  const Array x = uniform({16, 16});
  const DeviceScope on(1);
  EXPECT_THAT(message_of<ArgumentError>([&] { matmul(x, x).eval(); }),
              HasSubstr("forbid_copies is set and 1024 bytes would cross from one context to another"));
}

TEST_F(Contexts, a_failure_crosses_too) {
  SAMEBYTES_NEEDS_FAILED_WAITS();
  Engine engine({.split = {1, 1}});
  const Array x = uniform({16, 16});
  x.eval();
  {
    MutexLock lock(detail::faults().mutex);
    detail::faults().failing_op = "softmax";
  }
  detail::faults().fail_launch = true;
  Array y;
  {
    const Array s = softmax(x);
    const DeviceScope on(1);
    y = matmul(s, x);
  }
  y.eval();
  detail::faults().fail_launch = false;
  try {
    y.to_vector<float>();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("softmax"));
  }
  EXPECT_THROW(engine.wait(), DeviceError);
  Array again;
  {
    const DeviceScope on(1);
    again = matmul(softmax(x), x);
  }
  const std::vector<float> there = again.to_vector<float>();  // its x crosses after the failure, which is over by now
  EXPECT_EQ(there, matmul(softmax(x), x).to_vector<float>());
}

TEST_F(Contexts, a_rehearsal_counts_what_would_cross) {
  Engine engine({.split = {1, 1}, .dry_run = true});
  const Array x = uniform({16, 16});
  x.eval();
  const DeviceScope on(1);
  matmul(x, x).eval();
  EXPECT_EQ(engine.transfers().bytes_between_contexts, 1024u);
}

TEST_F(Contexts, transfers_are_launches_of_a_profile) {
  Engine engine({.split = {1, 1}, .profile = true});
  const Array x = uniform({64, 64});
  x.eval();
  Profiler profiler(engine);
  {
    const DeviceScope on(1);
    matmul(x, x).eval();
  }
  const Profile profile = profiler.stop();
  ASSERT_EQ(profile.devices.size(), 3u);
  EXPECT_EQ(profile.devices[2], "between contexts");
  int transfers = 0;
  for (const ProfiledLaunch& launch : profile.launches) {
    if (launch.op != "transfer") continue;
    ++transfers;
    EXPECT_EQ(launch.device, 2);
    EXPECT_EQ(launch.bytes, 64 * 64 * 4.0);
    EXPECT_GT(launch.seconds, 0);
  }
  EXPECT_EQ(transfers, 1);
  EXPECT_THAT(chrome_trace(profile), HasSubstr("between contexts"));
}

TEST_F(Contexts, a_plan_says_what_runs_where_and_what_crosses) {
  set_modes("fine");
  Engine engine({.split = {1, 1}});
  EXPECT_EQ(explain(engine), "no plan was made yet\n");
  const Array x = uniform({16, 16});
  x.eval();
  Array y;
  {
    const DeviceScope on(1);
    y = softmax(matmul(x, x));
  }
  (y + x).eval();
  const std::string text = explain(engine);
  EXPECT_THAT(text, HasSubstr("plan of 5 launches"));
  EXPECT_THAT(text, HasSubstr("between contexts: 2 transfers of 2.05 kB"));
  EXPECT_THAT(text, HasSubstr("context 1, memory mode fine, 2 launches"));
  EXPECT_THAT(text, ::testing::ContainsRegex("0  context 0 to 1  transfer +1.02 kB\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("1  cpu:0.1 +matmul +\\[16, ?16\\] .*0\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("context 1 to 0  transfer"));
  EXPECT_THAT(text, HasSubstr("1024 bytes that the step begins with (f32 [16, 16]) go to context 1: 1 launch reads"));
  EXPECT_THAT(text, HasSubstr("1024 bytes that softmax makes"));
}

TEST_F(Contexts, one_context_moves_nothing) {
  set("SAMEBYTES_CONTEXTS", "platform");
  Engine engine({.split = {1, 1}, .forbid_copies = true});
  const Array x = uniform({16, 16});
  x.eval();
  Array y;
  {
    const DeviceScope on(1);
    y = softmax(matmul(x, x));
  }
  (y + x).eval();
  EXPECT_EQ(engine.transfers().bytes_copied, 0u);
  const std::string text = explain(engine, {.most_launches = 1});
  EXPECT_THAT(text, HasSubstr("between contexts: nothing"));
  EXPECT_THAT(text, HasSubstr("and 2 more\n"));
  EXPECT_THAT(text, HasSubstr("all devices share one context"));
  set("SAMEBYTES_CONTEXTS", "one");
  EXPECT_ERROR(Engine(), ArgumentError, "SAMEBYTES_CONTEXTS: expected platform or separate, got 'one'");
}

}  // namespace
}  // namespace samebytes::testing
