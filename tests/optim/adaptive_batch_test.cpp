// The sizes and rates that AdaptiveBatch takes for given noise scales, and a training that grows.
#include "samebytes/optim/adaptive_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using optim::AdaptiveBatch;
using optim::AdaptiveBatchOptions;
using optim::ScaleRule;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::int64_t> sizes_for(const AdaptiveBatchOptions& options, const std::vector<double>& scales) {
  AdaptiveBatch size(options);
  std::vector<std::int64_t> sizes;
  for (const double scale : scales) {
    const std::int64_t before = size.batch();
    const bool is_changed = size.measured(scale);
    EXPECT_EQ(is_changed, size.batch() != before);
    sizes.push_back(size.batch());
  }
  return sizes;
}

TEST(AdaptiveBatch, grows_by_two_after_enough_looks_in_a_row_that_found_more_noise) {
  EXPECT_EQ(
      sizes_for({.batch = 8, .max_batch = 40, .patience = 2}, {9, 9, 9, 15, 17, 17, 17, 500, 500, 500, kInfinity}),
      (std::vector<std::int64_t>{8, 16, 16, 16, 16, 32, 32, 32, 32, 32, 32}))
      << "64 is beyond the largest";
  EXPECT_EQ(sizes_for({.batch = 8, .max_batch = 64, .patience = 2}, {8, 8, 8, 9, 8, 9, std::nan(""), 9}),
            (std::vector<std::int64_t>{8, 8, 8, 8, 8, 8, 8, 16}))
      << "only above, in a row; NaN is no look";
  EXPECT_EQ(sizes_for({.batch = 8, .max_batch = 64, .patience = 1}, {kInfinity, kInfinity, 33, 3}),
            (std::vector<std::int64_t>{16, 32, 64, 64}));
}

TEST(AdaptiveBatch, halves_only_where_asked_and_far_below) {
  const AdaptiveBatchOptions options{.batch = 8, .max_batch = 64, .patience = 1, .shrink_below = 0.25};
  EXPECT_EQ(sizes_for(options, {100, 100, 9, 8, 7.9, 3, 1}), (std::vector<std::int64_t>{16, 32, 32, 32, 16, 8, 8}));
}

TEST(AdaptiveBatch, the_rate_follows_the_rule_with_a_warm_up_and_a_ceiling) {
  AdaptiveBatch size({.batch = 8, .max_batch = 512, .patience = 1, .most_factor = 2.0, .warmup = 4});
  EXPECT_EQ(size.rate_factor(), 1.0);
  size.measured(100);
  const double root = std::sqrt(2.0);
  for (int step = 1; step <= 4; ++step) {
    EXPECT_DOUBLE_EQ(size.rate_factor(), 1.0 + (root - 1.0) * step / 4);
    size.stepped();
  }
  EXPECT_DOUBLE_EQ(size.rate_factor(), root);
  for (int i = 0; i < 3; ++i) size.measured(1000);
  EXPECT_EQ(size.batch(), 128);
  for (int step = 0; step < 4; ++step) size.stepped();
  EXPECT_DOUBLE_EQ(size.rate_factor(), 2.0) << "the square root of 16 is beyond the ceiling";
  AdaptiveBatch linear({.batch = 8, .max_batch = 16, .patience = 1, .rule = ScaleRule::linear, .warmup = 0});
  linear.measured(100);
  EXPECT_EQ(linear.rate_factor(), 2.0);
}

TEST(AdaptiveBatch, a_saved_state_goes_on_alike) {
  const AdaptiveBatchOptions options{.batch = 8, .max_batch = 64, .patience = 2};
  AdaptiveBatch a(options), b(options);
  for (const double scale : {100.0, 100.0, 100.0}) a.measured(scale);
  a.stepped();
  b.load_state_dict(a.state_dict());
  EXPECT_EQ(b.batch(), 16);
  EXPECT_EQ(b.rate_factor(), a.rate_factor());
  EXPECT_TRUE(b.measured(100.0));
  EXPECT_EQ(b.batch(), 32);
  AdaptiveBatch other({.batch = 5, .max_batch = 64});
  EXPECT_ERROR(
      (other.load_state_dict(a.state_dict()), 0), ArgumentError,
      "AdaptiveBatch: batch must be that of the options times a power of two, at most max_batch, got 16.000000");
  EXPECT_EQ(other.batch(), 5);
}

TEST(AdaptiveBatch, wrong_options_are_named) {
  EXPECT_ERROR((AdaptiveBatch({.max_batch = 4})), ArgumentError,
               "AdaptiveBatch: batch must be at least 1, got 0.000000");
  EXPECT_ERROR((AdaptiveBatch({.batch = 8, .max_batch = 4})), ArgumentError,
               "AdaptiveBatch: max_batch must be at least batch, got 4.000000");
  EXPECT_ERROR((AdaptiveBatch({.batch = 8, .max_batch = 16, .shrink_below = 0.6})), ArgumentError,
               "AdaptiveBatch: shrink_below must be at least 0 and at most half of grow_above, got 0.600000");
}

class AdaptiveBatchTest : public OnDevice {
 protected:
  struct Run {
    std::vector<std::int64_t> sizes;
    std::vector<float> weights;
  };
  // The loop of the header on a linear regression, whose noise scale grows as the weights come near the solution.
  static Run train(std::uint64_t seed) {
    constexpr std::int64_t kWidth = 8, kMicro = 4;
    const Array w = cell(full({kWidth, 1}, 1.0), "w");
    optim::Sgd sgd(std::span(&w, 1), {.rate = 0.0});
    optim::Accumulator sums(sgd);
    optim::NoiseScaleMeter meter(sums, {.decay = 0.8});
    AdaptiveBatch size({.batch = 8, .max_batch = 32, .every = 4, .patience = 2, .warmup = 4});
    Run run;
    for (std::uint64_t micro = 0; run.sizes.size() < 60; ++micro) {
      const Array x = normal({kMicro, kWidth}, 0.0, 1.0, f32, {.seed = seed, .counter = 2 * micro});
      const Array y = normal({kMicro, 1}, 0.0, 1.0, f32, {.seed = seed, .counter = 2 * micro + 1});
      const Array wrong = matmul(x, w) - y;
      sums.add(mean(wrong * wrong) * 0.5, static_cast<double>(kMicro));
      if (sums.samples() < static_cast<double>(size.batch())) continue;
      run.sizes.push_back(static_cast<std::int64_t>(sums.samples()));
      sgd.set_rate(0.05 * size.rate_factor());
      meter.measure();
      sums.step();
      size.stepped(meter);
    }
    run.weights = w.to_vector<float>();
    return run;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(AdaptiveBatchTest);

TEST_P(AdaptiveBatchTest, a_training_grows_and_the_same_seed_gives_the_same_bytes) {
  if (is_simulated()) GTEST_SKIP() << "many steps";
  const Run first = train(3), again = train(3), other = train(4);
  EXPECT_EQ(first.sizes.front(), 8);
  EXPECT_EQ(first.sizes.back(), 32);
  for (std::size_t i = 1; i < first.sizes.size(); ++i) EXPECT_GE(first.sizes[i], first.sizes[i - 1]);
  EXPECT_EQ(first.sizes, again.sizes);
  EXPECT_EQ(first.weights, again.weights);
  EXPECT_NE(first.weights, other.weights);
}

TEST_P(AdaptiveBatchTest, a_run_saved_between_two_micro_batches_goes_on_alike) {
  if (is_simulated()) GTEST_SKIP() << "many steps";
  constexpr std::int64_t kWidth = 8, kMicro = 4;
  struct Saved {
    Array w = cell(full({kWidth, 1}, 1.0), "w");
    optim::Sgd sgd{std::span(&w, 1), {.rate = 0.05}};
    optim::Accumulator sums{sgd};
    optim::NoiseScaleMeter meter{sums, {.decay = 0.8}};
    AdaptiveBatch size{{.batch = 8, .max_batch = 32, .every = 4, .patience = 1, .warmup = 4}};
    RunState state{Engine::current()};
    Saved() {
      state.add("sgd", sgd);
      state.add("sums", sums);
      state.add("meter", meter);
      state.add("size", size);
    }
    void add(std::uint64_t micro) {
      const Array x = normal({kMicro, kWidth}, 0.0, 1.0, f32, {.seed = 3, .counter = 2 * micro});
      const Array y = normal({kMicro, 1}, 0.0, 1.0, f32, {.seed = 3, .counter = 2 * micro + 1});
      const Array wrong = matmul(x, w) - y;
      sums.add(mean(wrong * wrong) * 0.5, static_cast<double>(kMicro));
      if (sums.samples() < static_cast<double>(size.batch())) return;
      sgd.set_rate(0.05 * size.rate_factor());
      meter.measure();
      sums.step();
      size.stepped(meter);
    }
  };
  constexpr std::uint64_t kEnd = 160;
  for (const std::uint64_t middle : {1U, 46U, 47U}) {
    Saved whole;
    for (std::uint64_t micro = 0; micro < middle; ++micro) whole.add(micro);
    const RunSnapshot kept = whole.state.snapshot();
    const std::vector<float> weights = whole.w.to_vector<float>();
    for (std::uint64_t micro = middle; micro < kEnd; ++micro) whole.add(micro);
    EXPECT_GT(whole.size.batch(), 8);
    Saved rest;
    rest.state.restore(kept);
    assign(rest.w, array(std::span<const float>(weights), {kWidth, 1}));
    for (std::uint64_t micro = middle; micro < kEnd; ++micro) rest.add(micro);
    EXPECT_EQ(rest.w.to_vector<float>(), whole.w.to_vector<float>()) << middle;
    EXPECT_EQ(rest.size.batch(), whole.size.batch());
    EXPECT_EQ(rest.state.snapshot().description, whole.state.snapshot().description);
  }
}

}  // namespace
}  // namespace samebytes::testing
