// Adaptive pooling and pooling of sequences against windows listed in double, in both personalities.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class AdaptivePoolTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(AdaptivePoolTest);

// Calls f(place in dst, places of its window in src) for each value of dst [N, out_h, out_w, C].
template <class F>
void for_each_window(const Shape& s, int out_h, int out_w, F f) {
  const auto begin = [](double i, double in, double out) {
    return static_cast<std::int64_t>(std::floor(i * in / out));
  };
  const auto end = [](double i, double in, double out) {
    return static_cast<std::int64_t>(std::ceil((i + 1) * in / out));
  };
  const auto h = static_cast<double>(s[1]), w = static_cast<double>(s[2]);
  std::size_t at = 0;
  for (std::int64_t n = 0; n < s[0]; ++n)
    for (int y = 0; y < out_h; ++y)
      for (int x = 0; x < out_w; ++x)
        for (std::int64_t c = 0; c < s[3]; ++c) {
          std::vector<std::size_t> places;
          for (std::int64_t i = begin(y, h, out_h); i < end(y, h, out_h); ++i)
            for (std::int64_t j = begin(x, w, out_w); j < end(x, w, out_w); ++j)
              places.push_back(static_cast<std::size_t>(((n * s[1] + i) * s[2] + j) * s[3] + c));
          f(at++, places);
        }
}

struct Case {
  const char* what;
  Shape src;
  int out_h, out_w;
};

std::vector<Case> cases() {
  return {
      {"overlapping windows", {2, 7, 11, 5}, 3, 4},       {"more places than there are", {1, 3, 5, 17}, 7, 5},
      {"windows that divide", {2, 6, 8, 3}, 3, 2},        {"one place", {3, 5, 4, 19}, 1, 1},
      {"windows above 256 places", {1, 35, 37, 2}, 2, 2},
  };
}

TEST_P(AdaptivePoolTest, equals_the_windows_with_its_gradients) {
  for (const Dtype dtype : real_dtypes()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.what);
      const Shape dst{c.src[0], c.out_h, c.out_w, c.src[3]};
      const Array src = real_array(random_values(c.src.size(), 1), c.src, dtype),
                  weights = real_array(random_values(dst.size(), 2), dst, dtype);
      const auto x = src.to_vector<double>(), dy = weights.to_vector<double>();
      std::vector<double> mean(dy.size()), most(dy.size()), d_mean(x.size()), d_most(x.size());
      for_each_window(c.src, c.out_h, c.out_w, [&](std::size_t to, const std::vector<std::size_t>& places) {
        std::size_t best = places[0];
        const auto count = static_cast<double>(places.size());
        for (const std::size_t place : places) {
          mean[to] += x[place] / count;
          d_mean[place] += dy[to] / count;
          if (x[place] > x[best]) best = place;
        }
        most[to] = x[best];
        d_most[best] += dy[to];
      });
      const Array average = adaptive_avg_pool2d(src, c.out_h, c.out_w),
                  largest = adaptive_max_pool2d(src, c.out_h, c.out_w);
      ASSERT_EQ(average.shape(), dst);
      ASSERT_EQ(largest.shape(), dst);
      const Array wrt[] = {src};
      const double tolerance = sum_tolerance(dtype, c.src[1] * c.src[2]);
      const Array d_average = gradients(sum(average * weights), wrt)[0],
                  d_largest = gradients(sum(largest * weights), wrt)[0];
      EXPECT_TRUE(all_close(average, mean, tolerance));
      EXPECT_TRUE(all_close(largest, most, 0));
      EXPECT_TRUE(all_close(d_average, d_mean, tolerance));
      EXPECT_TRUE(all_close(d_largest, d_most, tolerance));
    }
  }
}

TEST_P(AdaptivePoolTest, sequences_are_images_of_one_row) {
  const Array src = real_array(random_values(2 * 13 * 5, 1), {2, 13, 5}, f32), image = reshape(src, {2, 1, 13, 5});
  const auto same = [](const Array& y, const Array& of_image) {
    EXPECT_EQ(y.shape(), (Shape{of_image.shape()[0], of_image.shape()[2], of_image.shape()[3]}));
    EXPECT_TRUE(same_bytes(y, reshape(of_image, y.shape())));
  };
  same(adaptive_avg_pool1d(src, 4), adaptive_avg_pool2d(image, 1, 4));
  same(adaptive_max_pool1d(src, 4), adaptive_max_pool2d(image, 1, 4));
  same(max_pool1d(src, {.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true}),
       max_pool2d(image, {.kernel_h = 1, .kernel_w = 3, .stride_w = 2, .pad_w = 1, .ceil_mode = true}));
  same(avg_pool1d(src, {.kernel = 4, .pad = 2, .count_include_pad = false}),
       avg_pool2d(image, {.kernel_h = 1, .kernel_w = 4, .pad_w = 2, .count_include_pad = false}));
  EXPECT_TRUE(all_close(global_avg_pool1d(src), global_avg_pool2d(image).to_vector<double>(), sum_tolerance(f32, 13)));
}

TEST_P(AdaptivePoolTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput line = random_input("src", {2, 7, 3});
  EXPECT_TRUE(check_gradients([](auto x) { return max_pool1d(x[0], {.kernel = 3, .stride = 2, .pad = 1}); }, {line}));
  EXPECT_TRUE(check_gradients([](auto x) { return avg_pool1d(x[0], {.kernel = 3, .stride = 1, .pad = 1}); }, {line}));
  EXPECT_TRUE(check_gradients([](auto x) { return global_avg_pool1d(x[0]); }, {line}));
  EXPECT_TRUE(check_gradients([](auto x) { return adaptive_avg_pool1d(x[0], 3); }, {line}));
  EXPECT_TRUE(check_gradients([](auto x) { return adaptive_max_pool1d(x[0], 5); }, {line}));
}

TEST_P(AdaptivePoolTest, nan_wins_and_half_precision_and_empty_batches_work) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Array x = real_array(std::vector<double>{1, kNan, 3, 4, 5}, {1, 5, 1}, f32);
  EXPECT_TRUE(all_close(adaptive_max_pool1d(x, 2), std::vector<double>{kNan, 5}, 0));
  EXPECT_EQ(adaptive_avg_pool1d(astype(x, f16), 2).dtype(), f16);
  EXPECT_EQ(adaptive_max_pool2d(zeros({0, 5, 5, 3}), 2, 2).wait().shape(), (Shape{0, 2, 2, 3}));
}

TEST_P(AdaptivePoolTest, wrong_arguments_are_named) {
  EXPECT_ERROR(adaptive_avg_pool2d(zeros({4, 4, 3}), 1, 1), ArgumentError,
               "adaptive_avg_pool2d: src must be floating [N, H, W, C], src is f32 [4, 4, 3]");
  EXPECT_ERROR(adaptive_max_pool2d(zeros({1, 4, 4, 3}), 0, 2), ArgumentError,
               "adaptive_max_pool2d: the result must have at least one place, got 0 x 2, src is f32 [1, 4, 4, 3]");
  EXPECT_ERROR(adaptive_max_pool1d(zeros({1, 0, 3}), 2), ArgumentError,
               "adaptive_max_pool1d: src must have at least one place, src is f32 [1, 0, 3]");
  EXPECT_ERROR(max_pool1d(zeros({1, 4, 4, 3})), ArgumentError,
               "max_pool1d: src must be floating [N, L, C], src is f32 [1, 4, 4, 3]");
  EXPECT_ERROR(
      (avg_pool1d(zeros({1, 4, 3}), {.kernel = 3, .pad = 3})), ArgumentError,
      "avg_pool1d: every window must have a place of src, with kernel 3 and pad 3 window 0 of axis 1 has none, src "
      "is f32 [1, 4, 3]");
  EXPECT_ERROR((max_pool1d(zeros({1, 4, 3}), {.kernel = 5})), ArgumentError,
               "max_pool1d: kernel 5 must fit in the sequence with pad 0, src is f32 [1, 4, 3]");
  EXPECT_ERROR(global_avg_pool1d(zeros({1, 0, 3})), ArgumentError,
               "global_avg_pool1d: the mean needs at least one place, src is f32 [1, 0, 3]");
}

class SmallShapesAdaptivePoolTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesAdaptivePoolTest);

TEST_P(SmallShapesAdaptivePoolTest, runs_forward_and_backward) {
  run([](auto x) { return adaptive_max_pool2d(x[0], 3, 2) + adaptive_avg_pool2d(x[0], 3, 2); }, {{2, 7, 5, 19}});
}

}  // namespace
}  // namespace samebytes::testing
