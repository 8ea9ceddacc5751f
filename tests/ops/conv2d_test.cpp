// conv2d and its gradients against double, in both personalities: strides, padding, dilation, groups, odd shapes, wrong
// arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/launch.h"
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

class Conv2dTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Conv2dTest);

struct Case {
  const char* what;
  Shape src, weight;
  Conv2dOptions options;
};

std::vector<Case> cases() {
  return {
      {"prime sizes", {2, 7, 5, 3}, {3, 3, 3, 5}, {.pad_h = 1, .pad_w = 1}},
      {"one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {"32 channels", {3, 8, 8, 32}, {3, 3, 32, 32}, {.pad_h = 1, .pad_w = 1}},
      {"stride 2", {2, 9, 11, 16}, {3, 3, 16, 48}, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}},
      {"stride 2, long lines", {2, 5, 35, 3}, {3, 3, 3, 19}, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}},
      {"all options at once",
       {2, 13, 7, 6},
       {3, 5, 2, 9},
       {.stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 2, .dilation_w = 2, .groups = 3}},
      {"5x5, channels that fill no vector", {2, 10, 10, 20}, {5, 5, 20, 33}, {.pad_h = 2, .pad_w = 2}},
      {"dilation 2", {1, 12, 12, 17}, {3, 3, 17, 17}, {.pad_h = 2, .pad_w = 2, .dilation_h = 2, .dilation_w = 2}},
      {"depthwise", {2, 9, 9, 8}, {3, 3, 1, 8}, {.pad_h = 1, .pad_w = 1, .groups = 8}},
      {"depthwise, all options at once",
       {2, 12, 23, 37},
       {3, 5, 1, 37},
       {.stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 4, .dilation_h = 2, .dilation_w = 2, .groups = 37}},
      {"depthwise with steps that share a factor",
       {1, 9, 11, 5},
       {3, 4, 1, 5},
       {.stride_h = 4, .stride_w = 2, .pad_h = 2, .pad_w = 3, .dilation_h = 2, .dilation_w = 4, .groups = 5}},
      {"depthwise, small image", {3, 2, 3, 16}, {5, 7, 1, 16}, {.pad_h = 2, .pad_w = 3, .groups = 16}},
      {"depthwise with two outputs each", {2, 6, 5, 7}, {3, 3, 1, 14}, {.pad_h = 1, .pad_w = 1, .groups = 7}},
      {"many narrow groups", {2, 7, 6, 24}, {3, 3, 2, 36}, {.stride_w = 2, .pad_h = 1, .pad_w = 1, .groups = 12}},
      {"1x1", {2, 6, 6, 64}, {1, 1, 64, 40}, {}},
      {"1x1, columns that fill no vector", {3, 5, 7, 21}, {1, 1, 21, 77}, {}},
      {"1x1, a long sum for few columns", {1, 9, 7, 131}, {1, 1, 131, 16}, {}},
      {"1x1, narrow", {2, 17, 16, 37}, {1, 1, 37, 7}, {}},
      {"1x1, one pixel an image", {5, 1, 1, 43}, {1, 1, 43, 19}, {}},
      {"a kernel as large as the image", {3, 5, 4, 13}, {5, 4, 13, 35}, {.stride_h = 2}},
      {"1x1 stride 2 in groups", {2, 6, 6, 12}, {1, 1, 6, 40}, {.stride_h = 2, .stride_w = 2, .groups = 2}},
      {"first layer", {1, 28, 28, 1}, {3, 3, 1, 32}, {.pad_h = 1, .pad_w = 1}},
      {"one result channel", {2, 5, 6, 7}, {3, 3, 7, 1}, {.pad_h = 1, .pad_w = 1}},
      {"one channel, many columns", {2, 5, 6, 1}, {3, 3, 1, 48}, {.pad_h = 1, .pad_w = 2}},
      {"one channel, taps along a line", {2, 3, 9, 1}, {1, 5, 1, 16}, {.pad_w = 2}},
      {"one channel, a line of several pieces", {1, 1, 1031, 1}, {1, 7, 1, 32}, {.pad_w = 3}},
      {"1x1 with strides, columns that fill no vector", {2, 5, 7, 20}, {1, 1, 20, 37}, {.stride_h = 3, .stride_w = 2}},
      {"1x1 with strides over many lines", {3, 17, 16, 16}, {1, 1, 16, 32}, {.stride_h = 2, .stride_w = 2}},
      {"a wide image", {1, 5, 301, 4}, {3, 3, 4, 18}, {.pad_h = 1, .pad_w = 1}},
      {"padding beyond the image", {1, 3, 3, 2}, {3, 3, 2, 3}, {.stride_h = 3, .stride_w = 3, .pad_h = 2, .pad_w = 2}},
      {"pixels that no tap meets", {2, 4, 4, 3}, {2, 2, 3, 3}, {.stride_h = 3, .stride_w = 3}},
      {"a kernel larger than the image", {1, 5, 5, 2}, {7, 7, 2, 2}, {.pad_h = 4, .pad_w = 4}},
      {"more channels than a chunk of the sum", {1, 3, 4, 250}, {3, 3, 250, 270}, {.pad_h = 1, .pad_w = 1}},
      {"more lines of taps than a chunk", {1, 37, 2, 3}, {35, 1, 3, 18}, {}},
      {"lines of every phase", {1, 3, 37, 9}, {2, 4, 9, 20}, {.stride_h = 2, .stride_w = 5, .pad_w = 3}},
      {"few channels, far taps",
       {2, 9, 40, 2},
       {3, 5, 2, 34},
       {.stride_w = 2, .pad_h = 2, .pad_w = 3, .dilation_w = 3}},
      {"few channels, images of strided lines that share taps",
       {3, 9, 8, 3},
       {5, 3, 3, 7},
       {.stride_h = 2, .pad_h = 2, .pad_w = 1}},
      {"few channels, lines of taps apart", {2, 9, 7, 2}, {3, 3, 2, 4}, {.pad_h = 2, .pad_w = 1, .dilation_h = 2}},
      {"many taps of few channels", {1, 11, 12, 3}, {7, 7, 3, 20}, {.pad_h = 3, .pad_w = 3}},
      {"many images of one pixel", {37, 1, 1, 3}, {3, 3, 3, 2}, {.pad_h = 1, .pad_w = 1}},
  };
}

TEST_P(Conv2dTest, equals_the_definition_with_its_gradients) {
  for (const Dtype dtype : real_dtypes()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.what);
      const auto src = random_values(c.src.size(), 1), weight = random_values(c.weight.size(), 2),
                 bias = random_values(c.weight[3], 3);
      const auto shape = reference_conv2d(src, c.src, weight, c.weight, c.options).shape;
      const auto dy = random_values(shape.size(), 4);
      const auto want = reference_conv2d(src, c.src, weight, c.weight, c.options, dy);
      std::vector<double> with_bias = want.y, d_bias(bias.size(), 0.0);
      for (std::size_t i = 0; i < with_bias.size(); ++i) {
        with_bias[i] += bias[i % bias.size()];
        d_bias[i % bias.size()] += dy[i];
      }
      const std::vector<Array> inputs = {real_array(src, c.src, dtype), real_array(weight, c.weight, dtype),
                                         real_array(bias, {c.weight[3]}, dtype)};
      const Array y = conv2d(inputs[0], inputs[1], inputs[2], c.options);
      ASSERT_EQ(y.shape(), shape);
      const auto d = gradients(sum(y * real_array(dy, shape, dtype)), inputs);
      const std::int64_t taps = c.weight[0] * c.weight[1], pixels = shape[0] * shape[1] * shape[2];
      EXPECT_TRUE(all_close(y, with_bias, sum_tolerance(dtype, taps * c.weight[2])));
      EXPECT_TRUE(all_close(d[0], want.d_src, sum_tolerance(dtype, taps * c.weight[3] / c.options.groups)));
      EXPECT_TRUE(all_close(d[1], want.d_weight, sum_tolerance(dtype, pixels)));
      EXPECT_TRUE(all_close(d[2], d_bias, sum_tolerance(dtype, pixels)));
      EXPECT_TRUE(
          all_close(conv2d(inputs[0], inputs[1], {}, c.options), want.y, sum_tolerance(dtype, taps * c.weight[2])));
    }
  }
}

TEST_P(Conv2dTest, adds_a_residual_and_cuts_at_zero_or_by_a_gate_as_it_stores) {
  const Shape src{2, 5, 17, 3}, weight{3, 3, 3, 37};
  const auto x = random_values(src.size(), 1), w = random_values(weight.size(), 2), b = random_values(37, 3);
  const auto want = reference_conv2d(x, src, w, weight, {.pad_h = 1, .pad_w = 1});
  const auto residual = random_values(want.shape.size(), 4);
  const std::vector<Array> inputs = {real_array(x, src, f32), real_array(w, weight, f32), real_array(b, {37}, f32),
                                     real_array(residual, want.shape, f32)};
  const Array plain = conv2d(inputs[0], inputs[1], inputs[2], {.pad_h = 1, .pad_w = 1});
  const detail::OpPtr op = plain.node()->op;
  ASSERT_TRUE(op->traits().takes_epilogue);
  ASSERT_TRUE(op->traits().takes_gate);
  const auto gate = random_values(want.shape.size(), 5);
  for (const bool has_residual : {true, false}) {
    std::vector<Array> with_gate(inputs.begin(), inputs.begin() + (has_residual ? 4 : 3));
    with_gate.push_back(real_array(gate, want.shape, f32));
    std::vector<double> kept = want.y;
    for (std::size_t i = 0; i < kept.size(); ++i)
      kept[i] = gate[i] > 0 ? kept[i] + b[i % 37] + (has_residual ? residual[i] : 0.0) : 0;
    EXPECT_TRUE(
        all_close(detail::make_array(detail::make_op<WithEpilogue>(op, has_residual, true), want.shape, f32, with_gate),
                  kept, sum_tolerance(f32, 27)));
    std::vector<double> y = want.y;
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = std::max(0.0, y[i] + b[i % 37] + (has_residual ? residual[i] : 0.0));
    const Array got = detail::make_array(detail::make_op<WithEpilogue>(op, has_residual, false), want.shape, f32,
                                         std::span(inputs).first(has_residual ? 4 : 3));
    EXPECT_TRUE(all_close(got, y, sum_tolerance(f32, 27)));
  }
}

// The convolution, and its sum with a residual, cut: as in launches of their own, by every kernel there is.
TEST_P(Conv2dTest, what_follows_it_is_part_of_its_launch) {
  struct Followed {
    const char* what;
    Shape src, weight;
    int pad, stride, groups;
  };
  const Followed cases[] = {{"tiles", {2, 5, 17, 3}, {3, 3, 3, 37}, 1, 1, 1},
                            {"tiles, several chunks", {1, 6, 6, 600}, {3, 3, 600, 20}, 1, 2, 1},
                            {"tiles of groups", {1, 5, 7, 24}, {3, 3, 4, 36}, 1, 1, 6},
                            {"one tap, strided", {1, 7, 9, 20}, {1, 1, 20, 33}, 0, 2, 1},
                            {"one tap, a product", {2, 7, 9, 20}, {1, 1, 20, 101}, 0, 1, 1},
                            {"one tap, a product in two blocks", {1, 6, 7, 700}, {1, 1, 700, 37}, 0, 1, 1},
                            {"one tap, a split product", {1, 3, 3, 3000}, {1, 1, 3000, 33}, 0, 1, 1},
                            {"one tap, a pixel an image", {3, 1, 1, 45}, {1, 1, 45, 19}, 0, 1, 1},
                            {"one pixel", {1, 1, 1, 600}, {1, 1, 600, 520}, 0, 1, 1},
                            {"a kernel as large as the image", {3, 4, 5, 9}, {4, 5, 9, 39}, 0, 1, 1},
                            {"minimal filtering", {2, 16, 16, 24}, {3, 3, 24, 40}, 1, 1, 1},
                            {"one channel", {2, 9, 24, 1}, {3, 3, 1, 32}, 1, 1, 1},
                            {"depthwise", {2, 9, 13, 37}, {3, 3, 1, 37}, 1, 1, 37},
                            {"depthwise, strided", {1, 9, 24, 16}, {5, 5, 1, 16}, 2, 2, 16}};
  for (const Followed& c : cases)
    for (const Dtype dtype : {f32, f16}) {
      SCOPED_TRACE(std::string(c.what) + ", " + std::string(name_of(dtype)));
      const auto values = [dtype](const Shape& shape, std::uint64_t seed) {
        const Array made = astype(real_array(random_values(shape.size(), seed), shape, f32) * 3.0, dtype);
        made.eval();
        return made;
      };
      const Array x = values(c.src, 1), w = values(c.weight, 2), b = values({c.weight[3]}, 3);
      Conv2dOptions options;
      options.stride_h = options.stride_w = c.stride;
      options.pad_h = options.pad_w = c.pad;
      options.groups = c.groups;
      const auto conv = [&] { return conv2d(x, w, b, options); };
      const Array plain = conv();
      plain.eval();
      const Array residual = values(plain.shape(), 4), sum = plain + residual;
      sum.eval();
      const Array want[] = {hard_swish(plain), relu(plain), relu6(plain), clip(plain, 0, 6),
                            hard_swish(sum),   relu(sum),   relu6(sum)};
      eval(want);
      const auto before = engine().plans().launches;
      plain.eval();
      conv().eval();
      const auto alone = engine().plans().launches - before;
      const Array got[] = {hard_swish(conv()),
                           relu(conv()),
                           relu6(conv()),
                           clip(conv(), 0, 6),
                           hard_swish(conv() + residual),
                           relu(conv() + residual),
                           relu6(conv() + residual)};
      for (int i = 0; i < 7; ++i) {
        const auto so_far = engine().plans().launches;
        got[i].eval();
        // Groups of 16 bits widen their operands, and what follows widens with them.
        if (dtype == f32) {
          EXPECT_EQ(engine().plans().launches - so_far, alone) << i;
        }
        // A residual may join the sum before its last chunk.
        if (i < 4 || dtype == f16) {
          EXPECT_TRUE(same_bytes(got[i], want[i])) << i;
        } else {
          EXPECT_TRUE(all_close(got[i], want[i].to_vector<double>(),
                                sum_tolerance(f32, 9 * 9 * c.weight.size() / c.weight[3])));
        }
      }
    }
}

TEST_P(Conv2dTest, kernels_for_single_pixels_and_single_channels_have_the_same_epilogue) {
  const auto check = [](const Array& plain, std::vector<Array> inputs) {
    const detail::OpPtr op = plain.node()->op;
    const std::size_t values = static_cast<std::size_t>(plain.size());
    const auto y = plain.to_vector<double>(), more = random_values(plain.size(), 4),
               gate = random_values(plain.size(), 5);
    inputs.push_back(real_array(more, plain.shape(), f32));
    std::vector<double> cut(values), kept(values);
    for (std::size_t i = 0; i < values; ++i) {
      cut[i] = std::max(0.0, y[i] + more[i]);
      kept[i] = gate[i] > 0 ? y[i] + more[i] : 0;
    }
    EXPECT_TRUE(all_close(
        detail::make_array(detail::make_op<WithEpilogue>(op, true, false), plain.shape(), f32, inputs), cut, 1e-5));
    inputs.push_back(real_array(gate, plain.shape(), f32));
    EXPECT_TRUE(all_close(detail::make_array(detail::make_op<WithEpilogue>(op, true, true), plain.shape(), f32, inputs),
                          kept, 1e-5));
  };
  const auto input = [](const Shape& shape, std::uint64_t seed) {
    return real_array(random_values(shape.size(), seed), shape, f32);
  };
  const Array one = input({2, 5, 6, 1}, 1), taps = input({3, 3, 1, 48}, 2), bias = input({48}, 3);
  check(conv2d(one, taps, bias, {.pad_h = 1, .pad_w = 1}), {one, taps, bias});
  const Array x = input({2, 5, 7, 20}, 1), point = input({1, 1, 20, 37}, 2), b = input({37}, 3);
  check(conv2d(x, point, b, {.stride_h = 3, .stride_w = 2}), {x, point, b});
  const Array dy = input({2, 3, 4, 37}, 1), back = input({20}, 3);  // pixels that no source meets, too
  check(conv_transpose2d(dy, point, back, {.stride_h = 2, .stride_w = 3, .output_pad_w = 2}), {dy, point, back});
  // Without a bias, whole lines of them at once.
  const auto unmet = [&] { return conv_transpose2d(dy, point, {}, {.stride_h = 2, .stride_w = 3, .output_pad_w = 2}); };
  const Array apart = unmet(), more = input(apart.shape(), 6);
  const auto y = apart.to_vector<double>(), added = more.to_vector<double>();
  std::vector<double> cut(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) cut[i] = std::max(0.0, y[i] + added[i]);
  EXPECT_TRUE(all_close(relu(unmet() + more), cut, 1e-5));
}

TEST_P(Conv2dTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  const auto check = [](const Shape& src, const Shape& weight, const Conv2dOptions& options) {
    EXPECT_TRUE(check_gradients(
        [options](auto x) { return conv2d(x[0], x[1], x[2], options); },
        {random_input("src", src), random_input("weight", weight, 2), random_input("bias", {weight[3]}, 3)}));
  };
  check({2, 4, 5, 2}, {3, 3, 2, 3}, {.pad_h = 1, .pad_w = 1});
  check({1, 5, 4, 4}, {2, 3, 2, 4}, {.stride_h = 2, .pad_w = 2, .dilation_w = 2, .groups = 2});
}

TEST_P(Conv2dTest, second_gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  // The gradient of a gradient goes through the input and weight passes as ops of their own.
  EXPECT_TRUE(check_gradients(
      [](auto x) {
        const auto d = gradients(sum(square(conv2d(x[0], x[1], x[2], {.stride_h = 2, .pad_h = 1, .pad_w = 1}))), x);
        return sum(square(d[0])) + sum(square(d[1])) + sum(square(d[2]));
      },
      {random_input("src", {1, 4, 3, 2}), random_input("weight", {3, 3, 2, 2}, 2), random_input("bias", {2}, 3)},
      {.tolerance = 1e-5}));
}

TEST_P(Conv2dTest, reads_views_and_widens_sixteen_bits) {
  const auto src = random_values(2 * 3 * 5 * 4, 1), weight = random_values(9 * 3 * 6, 2);
  std::vector<double> moved(src.size());  // [N, C, H, W] -> [N, H, W, C]
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t p = 0; p < 20; ++p) moved[(n * 20 + p) * 3 + c] = src[(n * 3 + c) * 20 + p];
  const auto want = reference_conv2d(moved, {2, 5, 4, 3}, weight, {3, 3, 3, 6}, {});
  const Array view = transpose(real_array(src, {2, 3, 5, 4}, f32), {0, 2, 3, 1}),
              w = real_array(weight, {3, 3, 3, 6}, f32);
  EXPECT_TRUE(all_close(conv2d(view, w), want.y, sum_tolerance(f32, 27)));
  const Array half = conv2d(astype(view, f16), astype(w, f16));
  EXPECT_EQ(half.dtype(), f16);
  EXPECT_TRUE(all_close(astype(half, f32), want.y, 54 * 0x1p-11));
}

TEST_P(Conv2dTest, sides_of_their_own_are_zeros_around_the_image) {
  struct Sides {
    Shape src, weight;
    Conv2dOptions options;
  };
  const Sides cases[] = {
      {{2, 7, 9, 5}, {3, 3, 5, 6}, {.pad_h = 1, .pad_w = 1, .pad_end_h = 0, .pad_end_w = 3}},
      {{1, 9, 8, 32}, {3, 3, 32, 32}, {.pad_h = 1, .pad_w = 1, .pad_end_h = 0, .pad_end_w = 0}},
      {{2, 8, 11, 6}, {3, 2, 3, 4}, {.stride_h = 2, .stride_w = 3, .pad_w = 1, .groups = 2, .pad_end_h = 1}},
      {{1, 6, 6, 1}, {2, 2, 1, 16}, {.pad_h = 1, .pad_w = 1, .pad_end_h = 0, .pad_end_w = 0}},
      {{1, 9, 9, 7},
       {3, 3, 1, 7},
       {.pad_h = 2, .pad_w = 2, .dilation_h = 2, .groups = 7, .pad_end_h = 1, .pad_end_w = 0}}};
  for (const Dtype dtype : real_dtypes())
    for (const Sides& c : cases) {
      SCOPED_TRACE(c.src.to_string());
      const Conv2dOptions& o = c.options;
      const Array src = real_array(random_values(c.src.size(), 1), c.src, dtype),
                  weight = real_array(random_values(c.weight.size(), 2), c.weight, dtype);
      const std::vector<Array> inputs{src, weight};
      const Array got = conv2d(src, weight, {}, o);
      Conv2dOptions bare = o;
      bare.pad_h = bare.pad_w = 0;
      bare.pad_end_h = bare.pad_end_w = {};
      const Array padded = pad(
          src, {{0, 0}, {o.pad_h, o.pad_end_h.value_or(o.pad_h)}, {o.pad_w, o.pad_end_w.value_or(o.pad_w)}, {0, 0}});
      const Array want = conv2d(padded, weight, {}, bare);
      ASSERT_EQ(got.shape(), want.shape());
      const Array dy = real_array(random_values(want.size(), 3), want.shape(), dtype);
      const double tolerance = sum_tolerance(dtype, c.weight.size()), many = sum_tolerance(dtype, want.size());
      EXPECT_TRUE(all_close(got, want.to_vector<double>(), tolerance));
      const auto d = gradients(sum(got * dy), inputs), d_want = gradients(sum(want * dy), inputs);
      EXPECT_TRUE(all_close(d[0], d_want[0].to_vector<double>(), tolerance));
      EXPECT_TRUE(all_close(d[1], d_want[1].to_vector<double>(), many));
    }
}

TEST_P(Conv2dTest, an_empty_batch_gives_an_empty_result) {
  EXPECT_EQ(conv2d(zeros({0, 8, 8, 3}), zeros({3, 3, 3, 4})).shape(), (Shape{0, 6, 6, 4}));
}

TEST_P(Conv2dTest, the_same_bytes_come_twice) {
  const std::vector<Array> x = {real_array(random_values(5 * 9 * 9 * 33, 1), {5, 9, 9, 33}, f32),
                                real_array(random_values(9 * 33 * 35, 2), {3, 3, 33, 35}, f32)};
  const auto run = [&] { return gradients(sum(square(conv2d(x[0], x[1], {}, {.pad_h = 1, .pad_w = 1}))), x); };
  const auto first = run(), second = run();
  EXPECT_TRUE(same_bytes(first[0], second[0]));
  EXPECT_TRUE(same_bytes(first[1], second[1]));
}

TEST_P(Conv2dTest, wrong_arguments_are_named) {
  const auto message = [](const Shape& src, const Shape& weight, const Conv2dOptions& options,
                          const Array& bias = {}) -> std::string {
    try {
      conv2d(zeros(src), zeros(weight), bias, options);
    } catch (const ArgumentError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message({8, 8, 3}, {3, 3, 3, 4}, {}), "conv2d: src must be floating [N, H, W, C], src is f32 [8, 8, 3]");
  EXPECT_EQ(message({1, 8, 8, 3}, {3, 3, 4}, {}),
            "conv2d: weight must be floating [kh, kw, C / groups, K], weight is f32 [3, 3, 4]");
  EXPECT_EQ(message({1, 8, 8, 3}, {3, 3, 2, 4}, {}),
            "conv2d: weight must have 3 input channels per group, src is f32 [1, 8, 8, 3], weight is f32 [3, 3, 2, 4]");
  EXPECT_EQ(message({1, 8, 8, 4}, {3, 3, 2, 5}, {.groups = 2}),
            "conv2d: the channels must divide into 2 groups, src is f32 [1, 8, 8, 4], weight is f32 [3, 3, 2, 5]");
  EXPECT_EQ(message({1, 2, 8, 3}, {3, 3, 3, 4}, {}),
            "conv2d: the kernel must fit into the padded image, src is f32 [1, 2, 8, 3], weight is f32 [3, 3, 3, 4]");
  EXPECT_EQ(message({1, 8, 8, 3}, {3, 3, 3, 4}, {.stride_w = 0}), "conv2d: stride_w must be 1 or more, got 0");
  EXPECT_EQ(message({1, 8, 8, 3}, {3, 3, 3, 4}, {.pad_h = -1}), "conv2d: pad_h must be 0 or more, got -1");
  EXPECT_EQ(message({1, 8, 8, 3}, {3, 3, 3, 4}, {}, zeros({5})), "conv2d: bias must be floating [K], bias is f32 [5]");
}

class SmallShapesConv2dTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesConv2dTest);

TEST_P(SmallShapesConv2dTest, narrow_groups) {
  run([](auto x) { return conv2d(x[0], x[1], x[2], {.stride_w = 2, .pad_h = 1, .pad_w = 1, .groups = 19}); },
      {{2, 4, 11, 19}, {3, 3, 1, 19}, {19}});
  run([](auto x) { return conv2d(x[0], x[1], {}, {.pad_h = 1, .pad_w = 1, .groups = 4}); },
      {{1, 4, 5, 8}, {3, 3, 2, 12}});
}

TEST_P(SmallShapesConv2dTest, strided_lines_shorter_and_longer_than_a_vector) {
  for (const std::int64_t width : {9, 41})
    run([](auto x) { return conv2d(x[0], x[1], {}, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}); },
        {{1, 3, width, 3}, {3, 3, 3, 17}});
}

TEST_P(SmallShapesConv2dTest, single_pixels_and_single_channels) {
  run([](auto x) { return conv2d(x[0], x[1], x[2], {.stride_h = 2, .stride_w = 3}); },
      {{2, 4, 5, 19}, {1, 1, 19, 21}, {21}});
  run([](auto x) { return conv2d(x[0], x[1], x[2], {.pad_h = 1, .pad_w = 1}); }, {{2, 4, 5, 1}, {3, 3, 1, 48}, {48}});
  run([](auto x) { return conv1d(x[0], x[1], {}, {.pad = 2}); }, {{2, 11, 1}, {5, 1, 16}});
  run([](auto x) { return relu(conv2d(x[0], x[1], x[2]) + x[3]); },
      {{2, 4, 5, 19}, {1, 1, 19, 37}, {37}, {2, 4, 5, 37}});
}

}  // namespace
}  // namespace samebytes::testing
