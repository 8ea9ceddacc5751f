// Sampling by loss: frequencies, the floor, momentum, the weights of an epoch, and the loop that feeds it.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "samebytes/data/loader.h"
#include "samebytes/data/samplers.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

using Indices = std::vector<std::int64_t>;

Indices order(const Sampler& sampler, std::int64_t epoch) {
  Indices indices(static_cast<std::size_t>(sampler.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = sampler.at(epoch, static_cast<std::int64_t>(i));
  return indices;
}

TEST(HardExamples, come_as_often_as_their_loss_and_never_less_than_the_floor) {
  constexpr std::int64_t kSize = 1000;
  HardExamples hard(kSize, {.floor = 0.2});
  std::vector<std::int32_t> all(kSize);
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> losses(kSize, 0.0f);
  for (std::size_t i = 0; i < 10; ++i) losses[i] = 2;
  hard.feed(all, losses);
  constexpr int kEpochs = 50;
  std::vector<int> counts(kSize);
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    for (const std::int64_t index : order(hard, epoch)) ++counts[static_cast<std::size_t>(index)];
  const int heavy = std::accumulate(counts.begin(), counts.begin() + 10, 0);
  const double draws = kEpochs * static_cast<double>(kSize), share = 0.8 + 0.2 * 0.01;
  EXPECT_NEAR(heavy, draws * share, 6 * std::sqrt(draws * share * (1 - share)));
  // The floor: 0.2 / n of 50 n draws is 10 for each.
  const double least = 0.2 / kSize;
  for (std::size_t i = 10; i < kSize; ++i) EXPECT_NEAR(counts[i], draws * least, 6.5 * std::sqrt(draws * least));
}

TEST(HardExamples, count_unseen_samples_with_the_mean_and_follow_the_momentum) {
  HardExamples hard(4, {.momentum = 0.5, .floor = 0.1});
  EXPECT_EQ(hard.state().losses, (std::vector<float>{-1, -1, -1, -1}));
  hard.feed(std::vector<std::int32_t>{0, 2}, std::vector<float>{1, 3});
  hard.feed(std::vector<std::int32_t>{0}, std::vector<float>{2});
  EXPECT_EQ(hard.state().losses, (std::vector<float>{1.5f, -1, 3, -1}));
  hard.at(0, 0);  // the epoch begins: mean 2.25 for the unseen, sum 9
  const std::vector<double> weights = hard.state().weights;
  ASSERT_EQ(weights.size(), 4u);
  const std::vector<double> counted = {1.5, 2.25, 3, 2.25};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(weights[i], 0.025 + 0.9 * counted[i] / 9, 1e-6);
}

TEST(HardExamples, keep_the_weights_of_an_epoch_until_it_ends_and_resume_within_it) {
  HardExamples hard(50, {.seed = 9});
  hard.feed(std::vector<std::int32_t>{3, 4}, std::vector<float>{5, 1});
  const std::int64_t start = hard.at(2, 0);
  const HardExamples::State before = hard.state();
  const Indices expected = order(hard, 2);
  hard.feed(std::vector<std::int32_t>{3, 20}, std::vector<float>{0, 80});
  EXPECT_EQ(order(hard, 2), expected);
  EXPECT_EQ(expected[0], start);
  const HardExamples::State middle = hard.state();
  HardExamples resumed(50, {.seed = 9});
  resumed.restore(middle);
  EXPECT_EQ(order(resumed, 2), expected);
  EXPECT_EQ(order(resumed, 3), order(hard, 3));
  EXPECT_NE(before.losses, middle.losses);
  EXPECT_ERROR(HardExamples(3).restore(middle), ArgumentError, "hard examples: the state of 50 samples for 3");
}

TEST(HardExamples, refuse_losses_that_are_none) {
  HardExamples hard(3);
  const std::vector<std::int32_t> two = {0, 1};
  EXPECT_ERROR(hard.feed(two, std::vector<float>{1}), ArgumentError,
               "hard examples: expected one loss for each index, got 2 indices and 1 losses");
  EXPECT_ERROR(hard.feed(two, std::vector<float>{1, -0.5f}), ArgumentError,
               "hard examples: losses must be finite and 0 or more, got -0.500000");
  EXPECT_THROW(hard.feed(two, std::vector<float>{1, NAN}), ArgumentError);
  EXPECT_ERROR(hard.feed(std::vector<std::int32_t>{3}, std::vector<float>{1}), ArgumentError,
               "hard examples: sample 3 of 3");
  EXPECT_EQ(hard.state().losses, (std::vector<float>{-1, -1, -1}));  // nothing was taken
  EXPECT_ERROR(HardExamples(3, {.floor = 0}), ArgumentError,
               "hard examples: floor must be above 0 and at most 1, got 0.000000");
}

class SamplerLoaderTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SamplerLoaderTest);

// The loop as HardExamples' comment has it; losses are the sample's index.
TEST_P(SamplerLoaderTest, hard_examples_are_fed_from_the_loop_whatever_the_workers) {
  const DatasetPtr set = with_index(generate(40, {{"x", Shape{}}}, [](std::int64_t index, std::span<const Field> dst) {
    dst[0].as<float>()[0] = static_cast<float>(index);
  }));
  const auto run = [&](int workers) {
    const auto hard = std::make_shared<HardExamples>(40, HardExamplesOptions{.momentum = 0});
    Loader loader(engine(), set, {.batch = 8, .slots = 3, .workers = workers, .sampler = hard});
    std::vector<std::vector<std::int32_t>> seen;
    for (int epoch = 0; epoch < 4; ++epoch) {
      std::vector<Batch> kept;  // more slots are made in the middle of an epoch, which must not begin it anew
      std::vector<double> weights;
      for (const Batch& batch : loader) {
        kept.push_back(batch);
        if (kept.size() == 1) weights = hard->state().weights;
        EXPECT_EQ(hard->state().weights, weights) << epoch << " " << batch.step();
        const auto index = batch["index"].to_vector<std::int32_t>();
        const auto losses = batch["x"].to_vector<float>();
        for (std::size_t i = 0; i < index.size(); ++i) EXPECT_EQ(static_cast<float>(index[i]), losses[i]);
        hard->feed(index, losses);
        seen.push_back(index);
      }
    }
    return seen;
  };
  const auto expected = run(0);
  EXPECT_EQ(expected.size(), 20u);
  EXPECT_EQ(run(1), expected);
  EXPECT_EQ(run(3), expected);
  double early = 0, late = 0;
  for (std::size_t step = 0; step < 5; ++step)
    for (std::size_t i = 0; i < 8; ++i) {
      early += expected[step][i];
      late += expected[15 + step][i];
    }
  EXPECT_GT(late, early);
}

}  // namespace
}  // namespace samebytes::data
