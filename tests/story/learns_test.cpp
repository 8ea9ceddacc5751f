// Small networks learn synthetic tasks, step by step on the device, and repeat themselves to the byte.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "samebytes/random.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class LearnsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LearnsTest);

struct Batch {
  Array image, label;
};

// Images of 8 x 8 with a wave along rows, columns or a diagonal, and which of the three it is.
Batch waves(std::int64_t n, std::uint64_t seed) {
  constexpr std::int64_t kSize = 8;
  Batch batch{empty({n, kSize, kSize, 1}), empty({n}, i32)};
  const HostView<float> image = batch.image.mutable_host<float>();
  const HostView<std::int32_t> label = batch.label.mutable_host<std::int32_t>();
  Random random({.seed = seed});
  for (std::int64_t i = 0; i < n; ++i) {
    const auto kind = static_cast<std::int32_t>(random.below(3));
    const float phase = random.uniform() * 6.28f, noise = 0.5f;
    label[static_cast<std::size_t>(i)] = kind;
    for (std::int64_t y = 0; y < kSize; ++y)
      for (std::int64_t x = 0; x < kSize; ++x) {
        const std::int64_t along = kind == 0 ? y : kind == 1 ? x : x + y;
        image[static_cast<std::size_t>((i * kSize + y) * kSize + x)] =
            std::sin(phase + 1.6f * static_cast<float>(along)) + noise * (random.uniform() - 0.5f);
      }
  }
  return batch;
}

struct Result {
  double first, last, accuracy;
  std::vector<float> parameters;
};

Result learn(nn::Sequential& net, int steps) {
  optim::AdamW adam(net.parameters(), {.rate = 1e-2f});
  adam.set_schedule(optim::Schedule{.decay = optim::Decay::cosine, .rate = 1e-2, .warmup = 5, .steps = steps});
  Mean first, last;
  for (int step = 0; step < steps; ++step) {
    const Batch batch = waves(32, static_cast<std::uint64_t>(step));
    const Array loss = cross_entropy(net(batch.image), batch.label);
    adam.step(loss);
    if (step < steps / 4) first.add(loss);
    if (step >= steps - steps / 4) last.add(loss);
  }
  net.eval();
  Accuracy accuracy;
  const Batch unseen = waves(256, 1'000'000);
  accuracy.add(net(unseen.image), unseen.label);
  Result result{first.value(), last.value(), accuracy.value(), {}};
  for (const auto& entry : net.state())
    for (const float v : entry.array.to_vector<float>()) result.parameters.push_back(v);
  return result;
}

nn::Sequential mlp() {
  return nn::Sequential(nn::Flatten(), nn::Linear({.in = 64, .out = 48}), nn::Relu(), nn::Linear({.in = 48, .out = 3}));
}

nn::Sequential cnn() {
  return nn::Sequential(nn::Conv2d({.in = 1, .out = 8, .kernel = 3, .pad = 1}), nn::BatchNorm2d({.features = 8}),
                        nn::Relu(), nn::MaxPool2d({.kernel = 2}),
                        nn::Conv2d({.in = 8, .out = 12, .kernel = 3, .pad = 1}), nn::Relu(), nn::Dropout(0.1),
                        nn::Flatten(), nn::Linear({.in = 4 * 4 * 12, .out = 3}));
}

TEST_P(LearnsTest, a_perceptron_tells_waves_apart) {
  nn::Sequential net = mlp();
  const Result result = learn(net, 80);
  EXPECT_GT(result.first, 2 * result.last);
  EXPECT_GT(result.accuracy, 0.9);
}

TEST_P(LearnsTest, a_convolutional_network_tells_waves_apart) {
  nn::Sequential net = cnn();
  const Result result = learn(net, 60);
  EXPECT_GT(result.first, 2 * result.last);
  EXPECT_GT(result.accuracy, 0.95);
}

TEST_P(LearnsTest, the_same_seed_gives_the_same_bytes) {
  const auto run = [&](std::uint64_t seed) {
    const auto own = make_engine(GetParam(), {.seed = seed});
    const EngineScope use(*own);
    nn::Sequential net = cnn();
    return learn(net, 12).parameters;
  };
  const auto first = run(3);
  EXPECT_EQ(first, run(3));
  EXPECT_NE(first, run(4));
}

TEST_P(LearnsTest, training_copies_no_byte_where_memory_is_shared) {
  if (engine().device().memory_mode == MemoryMode::copy) GTEST_SKIP() << "copy_mode: nothing is shared";
  nn::Sequential net = cnn();
  const auto before = engine().transfers().bytes_copied;
  learn(net, 8);
  EXPECT_EQ(engine().transfers().bytes_copied, before);
}

TEST_P(LearnsTest, after_its_first_steps_training_plans_and_builds_nothing) {
  nn::Sequential net = cnn();
  optim::AdamW adam(net.parameters());
  Mean mean;
  const auto step = [&](std::uint64_t seed) {
    const Batch batch = waves(16, seed);
    const Array loss = cross_entropy(net(batch.image), batch.label);
    adam.step(loss);
    mean.add(loss);
  };
  for (std::uint64_t i = 0; i < 3; ++i) step(i);
  const PlanReport before = engine().plans();
  for (std::uint64_t i = 3; i < 9; ++i) step(i);
  const PlanReport after = engine().plans();
  EXPECT_EQ(after.plans_made, before.plans_made);
  EXPECT_EQ(after.programs_built, before.programs_built);
  EXPECT_TRUE(std::isfinite(mean.value()));
}

}  // namespace
}  // namespace samebytes::testing
