// conv3d and its gradients against double, in both personalities: options, odd shapes, groups, wrong arguments.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class Conv3dTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Conv3dTest);

// Calls f(index in src, index in weight, index in dst) for every product.
template <class F>
void for_each_product(const Shape& src, const Shape& weight, const Shape& dst, const Conv3dOptions& o, F f) {
  const int stride[] = {o.stride_d, o.stride_h, o.stride_w}, pad[] = {o.pad_d, o.pad_h, o.pad_w},
            dilation[] = {o.dilation_d, o.dilation_h, o.dilation_w};
  const std::int64_t k = weight[4], c_group = weight[3], k_group = k / o.groups;
  const std::int64_t places = dst[1] * dst[2] * dst[3], taps = weight[0] * weight[1] * weight[2];
  for (std::int64_t n = 0; n < src[0]; ++n)
    for (std::int64_t place = 0; place < places; ++place)
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        std::int64_t at = 0, place_left = place, tap_left = tap, place_span = places, tap_span = taps;
        bool inside = true;
        for (int axis = 0; axis < 3; ++axis) {
          place_span /= dst[axis + 1];
          tap_span /= weight[axis];
          const std::int64_t a = place_left / place_span, t = tap_left / tap_span;
          place_left -= a * place_span;
          tap_left -= t * tap_span;
          const std::int64_t position = a * stride[axis] - pad[axis] + t * dilation[axis];
          inside = inside && position >= 0 && position < src[axis + 1];
          at = at * src[axis + 1] + position;
        }
        if (!inside) continue;
        const std::int64_t pixel = n * src[1] * src[2] * src[3] + at;
        for (std::int64_t out = 0; out < k; ++out)
          for (std::int64_t in = 0; in < c_group; ++in)
            f(static_cast<std::size_t>(pixel * src[4] + out / k_group * c_group + in),
              static_cast<std::size_t>((tap * c_group + in) * k + out),
              static_cast<std::size_t>((n * places + place) * k + out));
      }
}

struct Case {
  const char* what;
  Shape src, weight, dst;
  Conv3dOptions options;
};

std::vector<Case> cases() {
  return {
      {"prime sizes", {2, 3, 5, 7, 3}, {3, 3, 3, 3, 5}, {2, 3, 5, 7, 5}, {.pad_d = 1, .pad_h = 1, .pad_w = 1}},
      {"all options at once",
       {2, 7, 6, 9, 4},
       {2, 3, 2, 2, 6},
       {2, 3, 6, 6, 6},
       {.stride_d = 3,
        .stride_w = 2,
        .pad_d = 1,
        .pad_h = 2,
        .pad_w = 2,
        .dilation_h = 2,
        .dilation_w = 2,
        .groups = 2}},
      {"20 channels and a strided depth",
       {1, 5, 4, 6, 20},
       {3, 1, 3, 20, 33},
       {1, 2, 4, 6, 33},
       {.stride_d = 2, .pad_w = 1}},
      {"depthwise",
       {1, 4, 5, 12, 17},
       {3, 2, 3, 1, 17},
       {1, 2, 4, 12, 17},
       {.stride_d = 2, .pad_d = 1, .pad_w = 1, .groups = 17}},
      {"one of everything", {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {}},
  };
}

TEST_P(Conv3dTest, equals_the_definition_with_its_gradients) {
  for (const Dtype dtype : real_dtypes()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.what);
      const auto src = random_values(c.src.size(), 1), weight = random_values(c.weight.size(), 2),
                 bias = random_values(c.dst[4], 3), dy = random_values(c.dst.size(), 4);
      std::vector<double> y(dy.size()), d_src(src.size()), d_weight(weight.size()), d_bias(bias.size());
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
                                         real_array(bias, {c.dst[4]}, dtype)};
      const Array came = conv3d(inputs[0], inputs[1], inputs[2], c.options);
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

TEST_P(Conv3dTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients(
      [](auto x) { return conv3d(x[0], x[1], x[2], {.stride_h = 2, .pad_d = 1, .pad_w = 1, .dilation_w = 2}); },
      {random_input("src", {1, 3, 4, 3, 2}), random_input("weight", {2, 2, 2, 2, 3}, 2),
       random_input("bias", {3}, 3)}));
}

TEST_P(Conv3dTest, an_empty_batch_gives_an_empty_result) {
  EXPECT_EQ(conv3d(zeros({0, 4, 4, 4, 2}), zeros({3, 3, 3, 2, 5})).shape(), (Shape{0, 2, 2, 2, 5}));
}

TEST_P(Conv3dTest, wrong_arguments_are_named) {
  const Array src = zeros({1, 4, 4, 4, 3}), weight = zeros({3, 3, 3, 3, 2});
  EXPECT_ERROR(conv3d(zeros({4, 4, 4, 3}), weight), ArgumentError,
               "conv3d: src must be floating [N, D, H, W, C], src is f32 [4, 4, 4, 3]");
  EXPECT_ERROR(conv3d(src, zeros({3, 3, 3, 2})), ArgumentError,
               "conv3d: weight must be floating [kd, kh, kw, C / groups, K], weight is f32 [3, 3, 3, 2]");
  EXPECT_ERROR(
      conv3d(zeros({1, 2, 4, 4, 3}), weight), ArgumentError,
      "conv3d: the kernel must fit into the padded volume, src is f32 [1, 2, 4, 4, 3], weight is f32 [3, 3, 3, "
      "3, 2]");
  EXPECT_ERROR((conv3d(src, weight, {}, {.dilation_d = 0})), ArgumentError,
               "conv3d: dilation_d must be 1 or more, got 0");
}

}  // namespace
}  // namespace samebytes::testing
