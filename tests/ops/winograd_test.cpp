// Convolutions by minimal filtering, 3x3 and along a line, and their gradients against double with the tolerances of
// the direct kernels, in both personalities: overhanging tiles, padding, epilogues, which algorithm is taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "graph/launch.h"
#include "ops/conv.h"
#include "ops/winograd.h"
#include "reference/matmul.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/epilogue.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

using detail::ConvAlgorithm;
using detail::ConvAttributes;

class WinogradTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(WinogradTest);

ConvAttributes attributes(int pad_h, int pad_w, ConvAlgorithm algorithm = ConvAlgorithm::winograd) {
  return {.axes = 2, .pad = {0, pad_h, pad_w}, .algorithm = algorithm};
}

ConvAttributes line_attributes(int pad, ConvAlgorithm algorithm = ConvAlgorithm::winograd) {
  return {.axes = 1, .pad = {0, 0, pad}, .algorithm = algorithm};
}

// The three passes of one convolution with a bias; the gradients are those of sum(dy * y).
struct Passes {
  Array y, d_src, d_weight;
};
Passes passes(const Array& src, const Array& weight, const Array& bias, const Array& dy, const ConvAttributes& a) {
  Passes p{detail::conv_forward(src, weight, bias, dy.shape(), a),
           detail::conv_bwd_input(dy, weight, {}, src.shape(), a), detail::conv_bwd_filter(src, dy, weight.shape(), a)};
  eval({p.y, p.d_src, p.d_weight});
  return p;
}

struct Case {
  const char* what;
  Shape src;
  std::int64_t columns;
  int pad_h = 1, pad_w = 1;
};

std::vector<Case> cases() {
  return {{"whole tiles", {3, 8, 8, 32}, 32},
          {"prime sizes", {2, 7, 5, 16}, 48},
          {"14 x 14", {2, 14, 14, 32}, 64},
          {"no padding", {2, 9, 7, 16}, 32, 0, 0},
          {"padding on one axis only", {1, 5, 11, 32}, 16, 0, 1},
          {"padding of two", {1, 4, 6, 16}, 16, 2, 2},
          {"one pixel", {5, 1, 1, 16}, 16},
          {"64 channels", {2, 8, 9, 64}, 64},
          {"channels that are no whole vectors", {2, 9, 7, 24}, 40},
          {"one channel more than a vector, one less than three", {1, 8, 9, 17}, 47},
          {"more tiles than a group takes", {9, 16, 13, 16}, 16}};
}

TEST_P(WinogradTest, equals_the_definition_with_its_gradients) {
  for (const Dtype dtype : real_dtypes()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.what);
      const Shape w{3, 3, c.src[3], c.columns};
      Conv2dOptions options;
      options.pad_h = c.pad_h;
      options.pad_w = c.pad_w;
      const auto src = random_values(c.src.size(), 1), weight = random_values(w.size(), 2),
                 bias = random_values(c.columns, 3);
      const Shape shape{c.src[0], c.src[1] + 2 * c.pad_h - 2, c.src[2] + 2 * c.pad_w - 2, c.columns};
      const auto dy = random_values(shape.size(), 4);
      const auto want = reference_conv2d(src, c.src, weight, w, options, dy);
      std::vector<double> y = want.y;
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
      const Passes p =
          passes(real_array(src, c.src, dtype), real_array(weight, w, dtype), real_array(bias, {c.columns}, dtype),
                 real_array(dy, shape, dtype), attributes(c.pad_h, c.pad_w));
      EXPECT_TRUE(all_close(p.y, y, sum_tolerance(dtype, 9 * c.src[3])));
      EXPECT_TRUE(all_close(p.d_src, want.d_src, sum_tolerance(dtype, 9 * c.columns)));
      EXPECT_TRUE(all_close(p.d_weight, want.d_weight, sum_tolerance(dtype, shape[0] * shape[1] * shape[2])));
    }
  }
}

struct LineCase {
  const char* what;
  Shape src;
  std::int64_t taps, columns;
  int pad;
};

std::vector<LineCase> line_cases() {
  return {{"whole tiles", {3, 40, 32}, 3, 32, 1},
          {"four taps, prime length", {2, 23, 16}, 4, 48, 2},
          {"five taps", {2, 51, 32}, 5, 64, 2},
          {"no padding", {3, 17, 16}, 5, 16, 0},
          {"the most padding", {2, 9, 48}, 5, 16, 4},
          {"one pixel", {5, 1, 16}, 3, 16, 1},
          {"long sums of many channels", {2, 12, 128}, 4, 16, 1},
          {"more tiles than a group takes", {7, 601, 16}, 5, 32, 2}};
}

TEST_P(WinogradTest, along_a_line_equals_the_definition_with_its_gradients) {
  for (const Dtype dtype : real_dtypes()) {
    for (const LineCase& c : line_cases()) {
      SCOPED_TRACE(c.what);
      const std::int64_t n = c.src[0], length = c.src[1], depth = c.src[2], out = length + 2 * c.pad - c.taps + 1;
      const Shape w{c.taps, depth, c.columns}, shape{n, out, c.columns};
      const auto src = random_values(c.src.size(), 1), weight = random_values(w.size(), 2),
                 bias = random_values(c.columns, 3), dy = random_values(shape.size(), 4);
      Conv2dOptions options;
      options.pad_w = c.pad;
      const auto want =
          reference_conv2d(src, {n, 1, length, depth}, weight, {1, c.taps, depth, c.columns}, options, dy);
      std::vector<double> y = want.y, d_bias(bias.size());
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] += bias[i % bias.size()];
        d_bias[i % bias.size()] += dy[i];
      }
      const auto array = [dtype](const std::vector<double>& values, const Shape& s) {
        return real_array(values, s, dtype);
      };
      const Array x = array(src, c.src), k = array(weight, w), b = array(bias, {c.columns});
      const Array result = detail::conv_forward(x, k, b, shape, line_attributes(c.pad));
      const auto d = gradients(sum(result * array(dy, shape)), std::vector<Array>{x, k, b});
      std::vector<Array> all{result, d[0], d[1], d[2]};
      eval(all);
      EXPECT_TRUE(all_close(result, y, sum_tolerance(dtype, c.taps * depth)));
      EXPECT_TRUE(all_close(d[0], want.d_src, sum_tolerance(dtype, c.taps * c.columns)));
      EXPECT_TRUE(all_close(d[1], want.d_weight, sum_tolerance(dtype, n * out)));
      EXPECT_TRUE(all_close(d[2], d_bias, sum_tolerance(dtype, n * out)));
    }
  }
}

// A convolution of x and w with what a later op hands it to add or cut as it stores. sums: the definition's, without
// bias.
void expect_epilogues(const Array& x, const Array& w, const std::vector<double>& sums, const Shape& shape,
                      const ConvAttributes& a, double tolerance) {
  const std::int64_t columns = shape.back();
  const auto b = random_values(columns, 3), residual = random_values(shape.size(), 4);
  const std::vector<Array> inputs = {x, w, real_array(b, {columns}, f32), real_array(residual, shape, f32)};
  const Array plain = detail::conv_forward(inputs[0], inputs[1], inputs[2], shape, a);
  const detail::OpPtr op = plain.node()->op;
  ASSERT_TRUE(op->traits().takes_epilogue);
  for (const bool has_residual : {true, false}) {
    std::vector<double> y = sums;
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = std::max(0.0, y[i] + b[i % b.size()] + (has_residual ? residual[i] : 0.0));
    const Array got = detail::make_array(detail::make_op<WithEpilogue>(op, has_residual, false), shape, f32,
                                         std::span(inputs).first(has_residual ? 4 : 3));
    EXPECT_TRUE(all_close(got, y, tolerance));
  }
  std::vector<double> kept = sums;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = residual[i] > 0 ? kept[i] + b[i % b.size()] : 0;
  const auto gated = detail::make_op<WithEpilogue>(op, false, true);
  EXPECT_TRUE(all_close(detail::make_array(gated, shape, f32, inputs), kept, tolerance));
}

TEST_P(WinogradTest, adds_a_residual_and_cuts_at_zero_or_by_a_gate_as_it_stores) {
  const Shape src{2, 5, 7, 16}, weight{3, 3, 16, 32};
  const auto x = random_values(src.size(), 1), w = random_values(weight.size(), 2);
  const auto want = reference_conv2d(x, src, w, weight, {.pad_h = 1, .pad_w = 1});
  expect_epilogues(real_array(x, src, f32), real_array(w, weight, f32), want.y, want.shape, attributes(1, 1),
                   sum_tolerance(f32, 144));
  const Shape odd{2, 5, 7, 24}, odd_weight{3, 3, 24, 40};
  const auto ox = random_values(odd.size(), 7), ow = random_values(odd_weight.size(), 8);
  const auto odd_want = reference_conv2d(ox, odd, ow, odd_weight, {.pad_h = 1, .pad_w = 1});
  expect_epilogues(real_array(ox, odd, f32), real_array(ow, odd_weight, f32), odd_want.y, odd_want.shape,
                   attributes(1, 1), sum_tolerance(f32, 216));
  const Shape line{2, 13, 16}, taps{5, 16, 32};
  const auto v = random_values(line.size(), 5), u = random_values(taps.size(), 6);
  Conv2dOptions padded;
  padded.pad_w = 2;
  const auto along = reference_conv2d(v, {2, 1, 13, 16}, u, {1, 5, 16, 32}, padded);
  expect_epilogues(real_array(v, line, f32), real_array(u, taps, f32), along.y, {2, 13, 32}, line_attributes(2),
                   sum_tolerance(f32, 80));
}

// All passes over arrays of 16 bits are those over the widened ones, rounded once.
void expect_rounded_once(Dtype dtype, const Shape& src, const Shape& weight, const Shape& dst,
                         const ConvAttributes& a) {
  const auto rounded = [dtype](const Shape& shape, std::uint64_t seed) {
    const Array values = astype(real_array(random_values(shape.size(), seed), shape, f32), dtype);
    eval(std::vector<Array>{values});
    return values;
  };
  const Array x = rounded(src, 1), w = rounded(weight, 2), dy = rounded(dst, 4);
  const auto wide = [](const Array& values) { return astype(values, f32); };
  const Array b = real_array(random_values(dst.back(), 3), {dst.back()}, f32);  // added to the sums, in their precision
  const Passes came = passes(x, w, b, dy, a), want = passes(wide(x), wide(w), b, wide(dy), a);
  EXPECT_TRUE(same_bytes(came.y, astype(want.y, dtype)));
  EXPECT_TRUE(same_bytes(came.d_src, astype(want.d_src, dtype)));
  EXPECT_TRUE(same_bytes(came.d_weight, astype(want.d_weight, dtype)));
  // What is added meets the rounded convolution.
  const std::vector<Array> inputs{x, w, b, dy};
  const detail::OpPtr op = detail::conv_forward(x, w, b, dst, a).node()->op;
  const Array fused = detail::make_array(detail::make_op<WithEpilogue>(op, true, false), dst, dtype, inputs);
  EXPECT_TRUE(same_bytes(fused, relu(came.y + dy)));
}

TEST_P(WinogradTest, arrays_of_16_bits_are_widened_and_rounded_once) {
  for (const Dtype dtype : {f16, bf16}) {
    expect_rounded_once(dtype, {2, 7, 5, 16}, {3, 3, 16, 48}, {2, 7, 5, 48}, attributes(1, 1));
    expect_rounded_once(dtype, {2, 23, 16}, {5, 16, 48}, {2, 23, 48}, line_attributes(2));
  }
}

TEST_P(WinogradTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients(
      [](auto x) {
        return detail::conv_forward(x[0], x[1], x[2], {1, 3, 5, 8}, attributes(1, 1));
      },
      {random_input("src", {1, 3, 5, 8}), random_input("weight", {3, 3, 8, 8}, 2), random_input("bias", {8}, 3)}));
}

TEST_P(WinogradTest, gradients_along_a_line_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  for (const std::int64_t taps : {3, 4, 5}) {
    EXPECT_TRUE(check_gradients(
        [taps](auto x) {
          return detail::conv_forward(x[0], x[1], x[2], {2, 10 - taps, 8}, line_attributes(1));
        },
        {random_input("src", {2, 7, 8}), random_input("weight", {taps, 8, 8}, 2), random_input("bias", {8}, 3)}));
  }
}

TEST_P(WinogradTest, the_same_bytes_come_twice) {
  const Shape src{5, 9, 9, 32}, weight{3, 3, 32, 48}, dst{5, 9, 9, 48};
  const Array x = real_array(random_values(src.size(), 1), src, f32),
              w = real_array(random_values(weight.size(), 2), weight, f32),
              dy = real_array(random_values(dst.size(), 3), dst, f32);
  const Passes first = passes(x, w, {}, dy, attributes(1, 1)), second = passes(x, w, {}, dy, attributes(1, 1));
  EXPECT_TRUE(same_bytes(first.y, second.y));
  EXPECT_TRUE(same_bytes(first.d_src, second.d_src));
  EXPECT_TRUE(same_bytes(first.d_weight, second.d_weight));
}

TEST_P(WinogradTest, is_taken_by_itself_on_cpu_devices_where_sums_are_single_precision) {
  std::vector<Dtype> dtypes = real_dtypes();
  dtypes.push_back(f16);
  const std::pair<Shape, Shape> both[] = {
      {{8, 8, 8, 16}, {3, 3, 16, 16}}, {{8, 8, 8, 24}, {3, 3, 24, 24}}, {{2, 64, 16}, {5, 16, 16}}};
  for (const auto& [src, weight] : both) {
    const auto values = random_values(src.size(), 1), weights = random_values(weight.size(), 2);
    for (const Dtype dtype : dtypes) {
      const Array x = astype(real_array(values, src, f32), dtype), w = astype(real_array(weights, weight, f32), dtype);
      const auto by = [&, is_line = src.rank() == 3](ConvAlgorithm algorithm) {
        return passes(x, w, {}, x, is_line ? line_attributes(2, algorithm) : attributes(1, 1, algorithm));
      };
      const Passes automatic = by(ConvAlgorithm::automatic), direct = by(ConvAlgorithm::direct),
                   winograd = by(ConvAlgorithm::winograd);
      EXPECT_FALSE(same_bytes(direct.y, winograd.y));
      const Passes& same = dtype != f64 && GetParam().personality == Personality::cpu ? winograd : direct;
      EXPECT_TRUE(same_bytes(automatic.y, same.y));
      EXPECT_TRUE(same_bytes(automatic.d_src, same.d_src));
      EXPECT_TRUE(same_bytes(automatic.d_weight, same.d_weight));
    }
  }
}

TEST_P(WinogradTest, what_its_kernels_cannot_goes_the_direct_way) {
  const Shape src{2, 5, 5, 6}, weight{5, 5, 6, 7}, dst{2, 5, 5, 7};
  const auto x = random_values(src.size(), 1), w = random_values(weight.size(), 2);
  const auto want = reference_conv2d(x, src, w, weight, {.pad_h = 2, .pad_w = 2});
  EXPECT_TRUE(
      all_close(detail::conv_forward(real_array(x, src, f32), real_array(w, weight, f32), {}, dst, attributes(2, 2)),
                want.y, sum_tolerance(f32, 150)));
}

TEST(Winograd, an_unknown_word_is_refused) {
  const char* before = std::getenv("SAMEBYTES_CONV");
  const std::string kept = before ? before : "";
  ::setenv("SAMEBYTES_CONV", "fft", 1);
  try {
    detail::conv_algorithm_asked_for();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "SAMEBYTES_CONV: expected automatic, direct or winograd, got \"fft\"");
  }
  ::setenv("SAMEBYTES_CONV", kept.c_str(), 1);
}

class SmallShapesWinogradTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesWinogradTest);

TEST_P(SmallShapesWinogradTest, overhanging_tiles) {
  run(
      [](auto x) {
        return detail::conv_forward(x[0], x[1], x[2], {1, 3, 5, 16}, attributes(1, 1));
      },
      {{1, 3, 5, 16}, {3, 3, 16, 16}, {16}});
  run(
      [](auto x) {
        return detail::conv_forward(x[0], x[1], x[2], {1, 3, 3, 17}, attributes(1, 1));
      },
      {{1, 3, 3, 20}, {3, 3, 20, 17}, {17}});
  run(
      [](auto x) {
        return detail::conv_forward(x[0], x[1], x[2], {1, 7, 16}, line_attributes(2));
      },
      {{1, 7, 16}, {5, 16, 16}, {16}});
}

}  // namespace
}  // namespace samebytes::testing
