// Rotary positions against double in both personalities.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "samebytes/ops/attention.h"
#include "samebytes/ops/rotary.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class RotaryTest : public OnDevice {
 protected:
  static std::vector<double> reference(const std::vector<double>& x, const Shape& s, const RotaryOptions& o) {
    std::vector<double> y = x;
    const std::int64_t half = s[3] / 2, turned = o.heads ? o.heads : s[2];
    for (std::int64_t n = 0; n < s[0]; ++n)
      for (std::int64_t t = 0; t < s[1]; ++t)
        for (std::int64_t h = 0; h < turned; ++h)
          for (std::int64_t i = 0; i < half; ++i) {
            const double angle = static_cast<double>(o.offset + t) *
                                 std::pow(o.base, -2.0 * static_cast<double>(i) / static_cast<double>(s[3]));
            const auto row = static_cast<std::size_t>(((n * s[1] + t) * s[2] + h) * s[3]);
            const auto p = row + static_cast<std::size_t>(o.interleaved ? 2 * i : i);
            const auto q = row + static_cast<std::size_t>(o.interleaved ? 2 * i + 1 : i + half);
            y[p] = x[p] * std::cos(angle) - x[q] * std::sin(angle);
            y[q] = x[q] * std::cos(angle) + x[p] * std::sin(angle);
          }
    return y;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(RotaryTest);

TEST_P(RotaryTest, turns_pairs_by_their_position) {
  for (const Shape& shape : {Shape{2, 5, 3, 64}, Shape{1, 7, 2, 38}, Shape{1, 3, 1, 2}, Shape{3, 1, 5, 6}})
    for (const bool interleaved : {false, true})
      for (const Dtype dtype : real_dtypes()) {
        const RotaryOptions options{
            .interleaved = interleaved, .base = 500, .offset = 11, .heads = shape[2] > 2 ? 2 : 0};
        const auto x = random_values(shape.size(), 1);
        // The error of an angle is its rounding times the position.
        EXPECT_TRUE(all_close(rotary(real_array(x, shape, dtype), options), reference(x, shape, options),
                              20 * sum_tolerance(dtype, 2)))
            << shape.to_string() << (interleaved ? " interleaved" : "");
      }
}

TEST_P(RotaryTest, scores_depend_on_the_distance_alone) {
  const Array q = uniform({1, 1, 1, 32}, -1, 1), k = uniform({1, 1, 1, 32}, -1, 1);
  const auto score = [&](std::int64_t at_q, std::int64_t at_k) {
    return sum(rotary(q, {.offset = at_q}) * rotary(k, {.offset = at_k})).value();
  };
  EXPECT_NEAR(score(9, 4), score(105, 100), 1e-4);
  EXPECT_GT(std::abs(score(9, 4) - score(9, 5)), 1e-3);
}

TEST_P(RotaryTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  const auto input = random_input("x", {1, 3, 2, 6});
  EXPECT_TRUE(check_gradients([](auto x) { return rotary(x[0], {.offset = 3}); }, {input}));
  EXPECT_TRUE(
      check_gradients([](auto x) { return rotary(x[0], {.interleaved = true, .offset = 3, .heads = 1}); }, {input}));
}

TEST_P(RotaryTest, views_are_read_in_place_and_other_offsets_are_no_other_plan) {
  const Array x = uniform({2, 3, 4, 8}, -1, 1);
  x.eval();
  const Array part = slice(x, 2, 1, 3);
  const auto relayouts = engine().transfers().relayout_bytes;
  const Array y = rotary(part, {.offset = 1}).eval();
  EXPECT_EQ(engine().transfers().relayout_bytes, relayouts);
  const auto made = engine().plans().plans_made;
  rotary(part, {.offset = 2}).wait();
  EXPECT_EQ(engine().plans().plans_made, made);
  EXPECT_TRUE(same_bytes(y, rotary(contiguous(part), {.offset = 1})));
  EXPECT_TRUE(same_bytes(rotary(transpose(x, {0, 1, 3, 2})), rotary(contiguous(transpose(x, {0, 1, 3, 2})))));
}

TEST_P(RotaryTest, sixteen_bit_arrays_stay_sixteen_bit_and_empty_ones_empty) {
  EXPECT_EQ(rotary(astype(uniform({1, 2, 1, 4}), bf16)).dtype(), bf16);
  EXPECT_EQ(rotary(empty({0, 2, 1, 4})).wait().size(), 0);
}

TEST_P(RotaryTest, wrong_arguments_are_refused) {
  EXPECT_ERROR((rotary(zeros({1, 2, 3, 5}))), ArgumentError,
               "rotary: x must be floating [N, T, H, D] with D even, x is f32 [1, 2, 3, 5]");
  EXPECT_ERROR((rotary(zeros({1, 2, 3, 4}), {.heads = 4})), ArgumentError,
               "rotary: heads must be between 0 and those of x, got 4, x is f32 [1, 2, 3, 4]");
  EXPECT_ERROR((rotary(zeros({1, 2, 3, 4}), {.base = 0})), ArgumentError, "rotary: base must be above 0, got 0.000000");
  EXPECT_ERROR((rotary(zeros({1, 2, 3, 4}), {.offset = -2})), ArgumentError,
               "rotary: offset must be 0 or more, got -2");
}

TEST_P(RotaryTest, a_table_gives_the_frequencies_of_the_first_values_and_a_scale) {
  for (const Shape& shape : {Shape{2, 5, 3, 64}, Shape{1, 7, 2, 38}, Shape{3, 2, 1, 6}})
    for (const std::int64_t pairs : {shape[3] / 2, shape[3] / 2 - 2, std::int64_t{1}})
      for (const bool interleaved : {false, true})
        for (const Dtype dtype : real_dtypes()) {
          const std::int64_t heads = shape[2] > 2 ? 2 : shape[2], offset = 4;
          const double scale = 1.25;
          const auto x = random_values(shape.size(), 1), f = random_values(pairs, 2);
          std::vector<double> expected = x;
          for (std::int64_t n = 0; n < shape[0]; ++n)
            for (std::int64_t t = 0; t < shape[1]; ++t)
              for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t i = 0; i < pairs; ++i) {
                  const double angle = static_cast<double>(offset + t) * f[static_cast<std::size_t>(i)];
                  const auto row = static_cast<std::size_t>(((n * shape[1] + t) * shape[2] + h) * shape[3]);
                  const auto p = row + static_cast<std::size_t>(interleaved ? 2 * i : i);
                  const auto q = row + static_cast<std::size_t>(interleaved ? 2 * i + 1 : i + pairs);
                  expected[p] = scale * (x[p] * std::cos(angle) - x[q] * std::sin(angle));
                  expected[q] = scale * (x[q] * std::cos(angle) + x[p] * std::sin(angle));
                }
          const Array y = rotary(real_array(x, shape, dtype), real_array(f, {pairs}, dtype),
                                 {.interleaved = interleaved, .offset = offset, .heads = heads, .scale = scale});
          EXPECT_TRUE(all_close(y, expected, 20 * sum_tolerance(dtype, 2)))
              << shape.to_string() << " " << pairs << (interleaved ? " interleaved" : "");
        }
}

TEST_P(RotaryTest, a_table_of_one_base_gives_what_the_base_gives) {
  const Array x = uniform({2, 3, 4, 16}, -1, 1);
  std::vector<float> table;
  for (int i = 0; i < 8; ++i) table.push_back(static_cast<float>(std::pow(500.0, -2.0 * i / 16)));
  const Array difference = rotary(x, array(table, {8}), {.offset = 3}) - rotary(x, {.base = 500, .offset = 3});
  EXPECT_LT(max(abs(difference)).value(), 1e-5);
}

TEST_P(RotaryTest, gradients_with_a_table_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  const Array table = array(std::vector<double>{0.7, 0.2}, {2});
  EXPECT_TRUE(check_gradients([&](auto x) { return rotary(x[0], table, {.offset = 3, .heads = 1, .scale = 1.5}); },
                              {random_input("x", {1, 3, 2, 6})}));
}

TEST_P(RotaryTest, wrong_tables_are_refused) {
  const Array x = zeros({1, 2, 3, 4});
  EXPECT_ERROR((rotary(x, zeros({3}))), ArgumentError,
               "rotary: x f32 [1, 2, 3, 4] needs 1 to 2 frequencies of f32, frequencies is f32 [3]");
  EXPECT_ERROR((rotary(x, zeros({2}, i32))), ArgumentError,
               "rotary: x f32 [1, 2, 3, 4] needs 1 to 2 frequencies of f32, frequencies is i32 [2]");
  EXPECT_ERROR((rotary(x, zeros({2}), {.heads = 4})), ArgumentError,
               "rotary: heads must be between 0 and those of x, got 4, x is f32 [1, 2, 3, 4]");
}

class SmallShapesRotaryTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesRotaryTest);

TEST_P(SmallShapesRotaryTest, rotary_positions) {
  run([](std::span<const Array> x) { return rotary(x[0], {.heads = 2}); }, {{2, 3, 3, 38}});
  run([](std::span<const Array> x) { return rotary(x[0], {.interleaved = true}); }, {{1, 2, 2, 34}});
}

}  // namespace
}  // namespace samebytes::testing
