// Draws against the frequencies that their weights ask for.
#include "samebytes/ops/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class SamplingTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SamplingTest);

using Ints = std::vector<std::int32_t>;

TEST_P(SamplingTest, draws_have_the_frequencies_of_their_weights) {
  const std::int64_t draws = is_simulated() ? 500 : 20000;
  const double tolerance = 4 * std::sqrt(0.25 / static_cast<double>(draws));
  const std::vector<double> weights{0.1, 0.0, 0.55, 0.35};
  const Array rows = broadcast_to(log(real_array(weights, {4}, f32)), {draws, 4});
  const Array few = multinomial(real_array(weights, {4}, f32) * 3.0, {.samples = draws, .replacement = true}, {5, 9});
  for (const Array& drawn : {categorical(rows, {7, 3}), few}) {
    ASSERT_EQ(drawn.shape(), (Shape{draws}));
    std::vector<double> frequencies(4, 0.0);
    for (const int c : drawn.to_vector<std::int32_t>())
      frequencies.at(static_cast<std::size_t>(c)) += 1 / static_cast<double>(draws);
    for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(frequencies[c], weights[c], c == 1 ? 0 : tolerance) << c;
  }
  EXPECT_TRUE(same_bytes(categorical(rows, {7, 3}), categorical(rows, {7, 3})));
  EXPECT_FALSE(same_bytes(categorical(rows), categorical(rows)));
}

TEST_P(SamplingTest, draws_with_replacement_are_of_classes_with_weight_only) {
  const std::int64_t classes = is_simulated() ? 70 : 9001, draws = 3 * classes, rows = 2;
  std::vector<double> weights = random_values(static_cast<std::size_t>(rows * classes), 4, 0.5, 1.5);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (i % 3 != 1) weights[i] = 0;  // the first and the last of each row, too
  const Ints drawn =
      multinomial(real_array(weights, {rows, classes}, f32), {.samples = draws, .replacement = true}, {3, 1})
          .to_vector<std::int32_t>();
  std::vector<double> halves(2, 0.0);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(draws);
    ASSERT_GT(weights.at(row * static_cast<std::size_t>(classes) + static_cast<std::size_t>(drawn[i])), 0) << i;
    halves[drawn[i] < classes / 2 ? 0 : 1] += 1 / static_cast<double>(rows * draws);
  }
  EXPECT_NEAR(halves[0], 0.5, is_simulated() ? 0.15 : 0.02);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Array special = array({0, 0, 0, 1, -1, 1, 1, nan, 1, 1, inf, 2}, {4, 3});
  EXPECT_EQ(multinomial(special, {.samples = 2, .replacement = true}, {1, 1}).to_vector<std::int32_t>(),
            (Ints{-1, -1, -1, -1, -1, -1, 1, 1}));
}

TEST_P(SamplingTest, draws_without_replacement_are_of_different_classes) {
  const std::int64_t rows = is_simulated() ? 200 : 10000;
  const std::vector<double> weights{1, 0, 2, 5};
  const Array a = broadcast_to(real_array(weights, {4}, f32), {rows, 4});
  const Ints drawn = multinomial(a, {.samples = 4}, {1, 2}).to_vector<std::int32_t>();
  double second_is_last = 0;  // class 3 after another one
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    EXPECT_EQ((std::set<int>{drawn[4 * r], drawn[4 * r + 1], drawn[4 * r + 2]}), (std::set<int>{0, 2, 3}));
    ASSERT_EQ(drawn[4 * r + 3], -1);
    second_is_last += (drawn[4 * r + 1] == 3) / static_cast<double>(rows);
  }
  EXPECT_NEAR(second_is_last, 1.0 / 8 * 5 / 7 + 2.0 / 8 * 5 / 6, 2 / std::sqrt(static_cast<double>(rows)));
}

TEST_P(SamplingTest, rows_with_nothing_to_draw_give_minus_one) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Array logits = array({-inf, -inf, 0, nan, -inf, 1}, {3, 2});
  EXPECT_EQ(categorical(logits, {1, 1}).to_vector<std::int32_t>(), (Ints{-1, -1, 1}));
  const Array weights = array({0, 0, 1, -1, 0, 1}, {3, 2});
  EXPECT_EQ(multinomial(weights, {}, {1, 1}).to_vector<std::int32_t>(), (Ints{-1, -1, 1}));
}

TEST_P(SamplingTest, wrong_arguments_are_refused) {
  const Array a = zeros({2, 3});
  EXPECT_ERROR((categorical(astype(a, i32))), ArgumentError,
               "categorical: needs a floating array of at least one class, logits is i32 [2, 3]");
  EXPECT_ERROR(
      ((multinomial(a, {.samples = 4}))), ArgumentError,
      "multinomial: samples must be at least 1 and, without replacement, at most the number of classes, got 4, "
      "weights is f32 [2, 3]");
}

}  // namespace
}  // namespace samebytes::testing
