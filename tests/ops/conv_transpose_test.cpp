// Transposed convolutions against a scatter in double, in both personalities: every option, odd shapes, output padding
// under a stride and under a dilation, wrong arguments.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class ConvTransposeTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ConvTransposeTest);

using Values = std::vector<double>;

// Calls f(index in src, index in weight, index in dst) for every product.
template <class F>
void for_each_product(const Shape& src, const Shape& weight, const Shape& dst, const ConvTranspose2dOptions& o, F f) {
  const std::int64_t c = src[3], k = dst[3], k_group = weight[2], c_group = c / o.groups;
  for (std::int64_t n = 0; n < src[0]; ++n)
    for (std::int64_t y = 0; y < src[1]; ++y)
      for (std::int64_t x = 0; x < src[2]; ++x)
        for (std::int64_t i = 0; i < weight[0]; ++i)
          for (std::int64_t j = 0; j < weight[1]; ++j) {
            const std::int64_t to_y = y * o.stride_h - o.pad_h + i * o.dilation_h,
                               to_x = x * o.stride_w - o.pad_w + j * o.dilation_w;
            if (to_y < 0 || to_y >= dst[1] || to_x < 0 || to_x >= dst[2]) continue;
            for (std::int64_t in = 0; in < c; ++in)
              for (std::int64_t out = 0; out < k_group; ++out)
                f(static_cast<std::size_t>(((n * src[1] + y) * src[2] + x) * c + in),
                  static_cast<std::size_t>(((i * weight[1] + j) * k_group + out) * c + in),
                  static_cast<std::size_t>(((n * dst[1] + to_y) * dst[2] + to_x) * k + in / c_group * k_group + out));
          }
}

struct Case {
  const char* what;
  Shape src, weight, dst;
  ConvTranspose2dOptions options;
};

std::vector<Case> cases() {
  return {
      {"twice as large",
       {2, 5, 7, 6},
       {4, 4, 3, 6},
       {2, 10, 14, 3},
       {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}},
      {"one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {"all options at once",
       {2, 4, 5, 6},
       {3, 2, 5, 6},
       {2, 11, 13, 10},
       {.stride_h = 3, .stride_w = 2, .pad_h = 1, .output_pad_h = 1, .output_pad_w = 1, .dilation_w = 3, .groups = 2}},
      {"output padding under a dilation",
       {1, 3, 3, 2},
       {2, 2, 3, 2},
       {1, 7, 5, 3},
       {.output_pad_h = 1, .output_pad_w = 0, .dilation_h = 3, .dilation_w = 2}},
      {"depthwise",
       {2, 5, 6, 19},
       {3, 3, 1, 19},
       {2, 10, 12, 19},
       {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1, .output_pad_h = 1, .output_pad_w = 1, .groups = 19}},
      {"32 channels", {1, 6, 6, 32}, {3, 3, 32, 32}, {1, 6, 6, 32}, {.pad_h = 1, .pad_w = 1}},
  };
}

TEST_P(ConvTransposeTest, equals_the_definition_with_its_gradients) {
  for (const Dtype dtype : real_dtypes()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.what);
      const auto src = random_values(c.src.size(), 1), weight = random_values(c.weight.size(), 2),
                 bias = random_values(c.dst[3], 3), dy = random_values(c.dst.size(), 4);
      Values y(dy.size()), d_src(src.size()), d_weight(weight.size()), d_bias(bias.size());
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = bias[i % bias.size()];
        d_bias[i % bias.size()] += dy[i];
      }
      for_each_product(c.src, c.weight, c.dst, c.options, [&](std::size_t from, std::size_t tap, std::size_t to) {
        y[to] += src[from] * weight[tap];
        d_src[from] += dy[to] * weight[tap];
        d_weight[tap] += dy[to] * src[from];
      });
      const std::vector<Array> inputs = {real_array(src, c.src, dtype), real_array(weight, c.weight, dtype),
                                         real_array(bias, {c.dst[3]}, dtype)};
      const Array came = conv_transpose2d(inputs[0], inputs[1], inputs[2], c.options);
      ASSERT_EQ(came.shape(), c.dst);
      const auto d = gradients(sum(came * real_array(dy, c.dst, dtype)), inputs);
      const double tolerance = sum_tolerance(dtype, c.weight.size()), many = sum_tolerance(dtype, c.dst.size());
      EXPECT_TRUE(all_close(came, y, tolerance));
      EXPECT_TRUE(all_close(d[0], d_src, tolerance));
      EXPECT_TRUE(all_close(d[1], d_weight, many));
      EXPECT_TRUE(all_close(d[2], d_bias, many));
    }
  }
}

TEST_P(ConvTransposeTest, one_axis_is_an_image_of_one_row) {
  const Array src = real_array(random_values(2 * 7 * 4, 1), {2, 7, 4}, f32),
              weight = real_array(random_values(3 * 3 * 4, 2), {3, 3, 4}, f32),
              bias = real_array(random_values(6, 3), {6}, f32);
  const Array y =
      conv_transpose1d(src, weight, bias, {.stride = 3, .pad = 1, .output_pad = 2, .dilation = 2, .groups = 2});
  ASSERT_EQ(y.shape(), (Shape{2, 23, 6}));
  const Array image = conv_transpose2d(reshape(src, {2, 1, 7, 4}), reshape(weight, {1, 3, 3, 4}), bias,
                                       {.stride_w = 3, .pad_w = 1, .output_pad_w = 2, .dilation_w = 2, .groups = 2});
  EXPECT_TRUE(same_bytes(y, reshape(image, y.shape())));
}

TEST_P(ConvTransposeTest, three_axes_are_the_input_gradient_of_a_convolution) {
  const Shape src{2, 3, 4, 2, 6}, weight{2, 3, 2, 5, 6};
  const ConvTranspose3dOptions up{
      .stride_d = 2, .stride_w = 3, .pad_h = 1, .output_pad_d = 1, .dilation_h = 2, .groups = 2};
  const Conv3dOptions down{.stride_d = 2, .stride_w = 3, .pad_h = 1, .dilation_h = 2, .groups = 2};
  for (const Dtype dtype : real_dtypes()) {
    const Array x = real_array(random_values(src.size(), 1), src, dtype),
                w = real_array(random_values(weight.size(), 2), weight, dtype),
                bias = real_array(random_values(10, 3), {10}, dtype);
    const Array got = conv_transpose3d(x, w, bias, up);
    ASSERT_EQ(got.shape(), (Shape{2, 7, 6, 5, 10}));
    const Array big = zeros(got.shape(), dtype);
    const Array wrt[] = {big};
    const Array small = conv3d(big, w, {}, down);
    ASSERT_EQ(small.shape(), src);
    const Array want = gradients(sum(small * x), wrt)[0] + bias;
    EXPECT_TRUE(all_close(got, want.to_vector<double>(), sum_tolerance(dtype, 36)));
  }
}

TEST_P(ConvTransposeTest, three_axes_have_the_numerical_gradients) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients(
      [](auto x) { return conv_transpose3d(x[0], x[1], x[2], {.stride_d = 2, .pad_w = 1, .output_pad_d = 1}); },
      {random_input("src", {1, 2, 3, 3, 2}, 1), random_input("weight", {2, 2, 3, 3, 2}, 2),
       random_input("bias", {3}, 3)}));
}

TEST_P(ConvTransposeTest, gradients_are_the_numerical_ones_to_the_second_order) {
  SAMEBYTES_NEEDS_F64();
  const ConvTranspose1dOptions options{.stride = 2, .pad = 1, .output_pad = 2, .dilation = 3};
  EXPECT_TRUE(check_gradients(
      [=](auto x) { return conv_transpose1d(x[0], x[1], x[2], options); },
      {random_input("src", {2, 3, 2}), random_input("weight", {2, 3, 2}, 2), random_input("bias", {3}, 3)}));
  EXPECT_TRUE(check_gradients(
      [=](auto x) {
        const auto d = gradients(sum(square(conv_transpose1d(x[0], x[1], {}, options))), x);
        return sum(square(d[0])) + sum(square(d[1]));
      },
      {random_input("src", {1, 3, 2}), random_input("weight", {2, 2, 2}, 2)}, {.tolerance = 1e-5}));
}

TEST_P(ConvTransposeTest, sixteen_bits_and_empty_batches) {
  EXPECT_EQ(conv_transpose1d(zeros({1, 3, 2}, f16), zeros({2, 3, 2}, f16)).dtype(), f16);
  EXPECT_EQ(conv_transpose2d(zeros({0, 3, 3, 2}), zeros({2, 2, 3, 2}), {}, {.stride_w = 2}).shape(),
            (Shape{0, 4, 6, 3}));
}

TEST_P(ConvTransposeTest, wrong_arguments_are_named) {
  const Array src = zeros({1, 8, 4}), weight = zeros({3, 3, 4});
  EXPECT_ERROR(conv_transpose1d(zeros({8, 4}), weight), ArgumentError,
               "conv_transpose1d: src must be floating [N, L, C], src is f32 [8, 4]");
  EXPECT_ERROR(conv_transpose2d(zeros({1, 8, 8, 4}), weight), ArgumentError,
               "conv_transpose2d: weight must be floating [kh, kw, K / groups, C], weight is f32 [3, 3, 4]");
  EXPECT_ERROR(conv_transpose1d(src, zeros({3, 4, 3})), ArgumentError,
               "conv_transpose1d: weight must have 4 input channels, src is f32 [1, 8, 4], weight is f32 [3, 4, 3]");
  EXPECT_ERROR((conv_transpose1d(src, weight, {}, {.groups = 3})), ArgumentError,
               "conv_transpose1d: the channels must divide into 3 groups, src is f32 [1, 8, 4], weight is f32 [3, 3, "
               "4]");
  EXPECT_ERROR((conv_transpose1d(src, weight, {}, {.stride = 2, .output_pad = 2})), ArgumentError,
               "conv_transpose1d: output_pad must be 0 or more and below stride or dilation, got 2 with stride 2, "
               "dilation 1");
  EXPECT_ERROR(
      (conv_transpose1d(src, weight, {}, {.pad = 5})), ArgumentError,
      "conv_transpose1d: the padding must leave at least one place, src is f32 [1, 8, 4], weight is f32 [3, 3, "
      "4]");
  EXPECT_ERROR((conv_transpose1d(src, weight, zeros({4}))), ArgumentError,
               "conv_transpose1d: bias must be floating [K], bias is f32 [4]");
  EXPECT_ERROR((conv_transpose1d(src, weight, {}, {.stride = 0})), ArgumentError,
               "conv_transpose1d: stride must be 1 or more, got 0");
}

}  // namespace
}  // namespace samebytes::testing
