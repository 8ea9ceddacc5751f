// conv1d and its gradients against double, in both personalities: options, odd shapes, long sequences, wrong arguments.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reference/matmul.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class Conv1dTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Conv1dTest);

struct Case {
  const char* what;
  Shape src, weight;
  Conv1dOptions options;
};

std::vector<Case> cases() {
  return {
      {"prime sizes", {2, 13, 3}, {5, 3, 7}, {.pad = 2}},
      {"one of everything", {1, 1, 1}, {1, 1, 1}, {}},
      {"all options at once", {3, 29, 6}, {4, 3, 10}, {.stride = 3, .pad = 4, .dilation = 2, .groups = 2}},
      {"one long sequence", {1, 1031, 5}, {7, 5, 19}, {.stride = 2, .pad = 3}},
      {"more taps than a chunk of the sum", {2, 90, 3}, {70, 3, 5}, {}},
      {"taps far apart", {1, 1250, 20}, {3, 20, 5}, {.dilation = 600}},
      {"pixels whose channels fall into one set of a cache", {1, 9, 1024}, {3, 1024, 5}, {.pad = 1}},
      {"runs far apart", {1, 4001, 5}, {3, 5, 7}, {.stride = 1000, .pad = 1}},
      {"a kernel longer than the sequence", {2, 5, 2}, {9, 2, 3}, {.pad = 4}},
  };
}

TEST_P(Conv1dTest, equals_the_definition_with_its_gradients) {
  for (const Dtype dtype : real_dtypes()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.what);
      const Shape image{c.src[0], 1, c.src[1], c.src[2]}, filter{1, c.weight[0], c.weight[1], c.weight[2]};
      const Conv2dOptions options{.stride_w = c.options.stride,
                                  .pad_w = c.options.pad,
                                  .dilation_w = c.options.dilation,
                                  .groups = c.options.groups};
      const auto src = random_values(c.src.size(), 1), weight = random_values(c.weight.size(), 2),
                 bias = random_values(c.weight[2], 3);
      const Shape shape = reference_conv2d(src, image, weight, filter, options).shape;
      const auto dy = random_values(shape.size(), 4);
      const auto want = reference_conv2d(src, image, weight, filter, options, dy);
      std::vector<double> with_bias = want.y, d_bias(bias.size(), 0.0);
      for (std::size_t i = 0; i < with_bias.size(); ++i) {
        with_bias[i] += bias[i % bias.size()];
        d_bias[i % bias.size()] += dy[i];
      }
      const std::vector<Array> inputs = {real_array(src, c.src, dtype), real_array(weight, c.weight, dtype),
                                         real_array(bias, {c.weight[2]}, dtype)};
      const Array y = conv1d(inputs[0], inputs[1], inputs[2], c.options);
      ASSERT_EQ(y.shape(), (Shape{shape[0], shape[2], shape[3]}));
      const auto d = gradients(sum(y * real_array(dy, y.shape(), dtype)), inputs);
      const std::int64_t taps = c.weight[0], places = shape[0] * shape[2];
      EXPECT_TRUE(all_close(y, with_bias, sum_tolerance(dtype, taps * c.weight[1])));
      EXPECT_TRUE(all_close(d[0], want.d_src, sum_tolerance(dtype, taps * c.weight[2] / c.options.groups)));
      EXPECT_TRUE(all_close(d[1], want.d_weight, sum_tolerance(dtype, places)));
      EXPECT_TRUE(all_close(d[2], d_bias, sum_tolerance(dtype, places)));
    }
  }
}

TEST_P(Conv1dTest, gradients_are_the_numerical_ones_to_the_second_order) {
  SAMEBYTES_NEEDS_F64();
  const Conv1dOptions options{.stride = 2, .pad = 2, .dilation = 2, .groups = 2};
  EXPECT_TRUE(check_gradients(
      [=](auto x) { return conv1d(x[0], x[1], x[2], options); },
      {random_input("src", {2, 7, 4}), random_input("weight", {3, 2, 6}, 2), random_input("bias", {6}, 3)}));
  EXPECT_TRUE(check_gradients(
      [=](auto x) {
        const auto d = gradients(sum(square(conv1d(x[0], x[1], {}, options))), x);
        return sum(square(d[0])) + sum(square(d[1]));
      },
      {random_input("src", {1, 5, 2}), random_input("weight", {3, 1, 2}, 2)}, {.tolerance = 1e-5}));
}

TEST_P(Conv1dTest, reads_views_and_widens_sixteen_bits) {
  const auto src = random_values(3 * 11, 1), weight = random_values(2 * 3 * 4, 2);
  std::vector<double> moved(src.size());  // [N, C, L] -> [N, L, C]
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t l = 0; l < 11; ++l) moved[l * 3 + c] = src[c * 11 + l];
  const auto want = reference_conv2d(moved, {1, 1, 11, 3}, weight, {1, 2, 3, 4}, {});
  const Array view = transpose(real_array(src, {1, 3, 11}, f32), {0, 2, 1}), w = real_array(weight, {2, 3, 4}, f32);
  EXPECT_TRUE(all_close(conv1d(view, w), want.y, sum_tolerance(f32, 6)));
  const Array half = conv1d(astype(view, bf16), astype(w, bf16));
  EXPECT_EQ(half.dtype(), bf16);
  EXPECT_TRUE(all_close(astype(half, f32), want.y, 12 * 0x1p-8));
}

TEST_P(Conv1dTest, an_empty_batch_gives_an_empty_result) {
  EXPECT_EQ(conv1d(zeros({0, 8, 3}), zeros({3, 3, 4})).shape(), (Shape{0, 6, 4}));
}

TEST_P(Conv1dTest, wrong_arguments_are_named) {
  const Array src = zeros({1, 8, 3}), weight = zeros({3, 3, 4});
  EXPECT_ERROR(conv1d(zeros({8, 3}), weight), ArgumentError,
               "conv1d: src must be floating [N, L, C], src is f32 [8, 3]");
  EXPECT_ERROR(conv1d(src, zeros({3, 3})), ArgumentError,
               "conv1d: weight must be floating [kw, C / groups, K], weight is f32 [3, 3]");
  EXPECT_ERROR(conv1d(src, zeros({3, 2, 4})), ArgumentError,
               "conv1d: weight must have 3 input channels per group, src is f32 [1, 8, 3], weight is f32 [3, 2, 4]");
  EXPECT_ERROR((conv1d(src, weight, {}, {.groups = 2})), ArgumentError,
               "conv1d: the channels must divide into 2 groups, src is f32 [1, 8, 3], weight is f32 [3, 3, 4]");
  EXPECT_ERROR(conv1d(zeros({1, 2, 3}), weight), ArgumentError,
               "conv1d: the kernel must fit into the padded sequence, src is f32 [1, 2, 3], weight is f32 [3, 3, 4]");
  EXPECT_ERROR((conv1d(src, weight, {}, {.stride = 0})), ArgumentError, "conv1d: stride must be 1 or more, got 0");
  EXPECT_ERROR((conv1d(src, weight, {}, {.pad = -1})), ArgumentError, "conv1d: pad must be 0 or more, got -1");
  EXPECT_ERROR(conv1d(src, weight, zeros({5})), ArgumentError, "conv1d: bias must be floating [K], bias is f32 [5]");
}

}  // namespace
}  // namespace samebytes::testing
