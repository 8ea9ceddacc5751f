// resample_axis against its sum in double, interpolate against PyTorch's values, unfold and fold against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class InterpolateTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(InterpolateTest);

using Mode = InterpolateMode;

// The values that the expected numbers below were made from.
std::vector<double> steps(std::int64_t n) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<double>(i * 37 % 101) / 50 - 1);
  return x;
}

// Two places of five, one of them twice, and one that nobody reads.
AxisTaps some_taps() {
  return {.in = 5, .taps = 3, .places = {0, 3, -1, 4, 4, 1}, .weights = {0.5, -2, 7, 1.5, 0.25, -1}};
}

TEST_P(InterpolateTest, an_axis_becomes_the_weighted_sums_that_the_table_names) {
  const AxisTaps taps = some_taps();
  for (const Dtype dtype : real_dtypes())
    for (const Shape& shape : {Shape{5}, Shape{3, 5, 1}, Shape{2, 5, 19}, Shape{0, 5, 2}}) {
      SCOPED_TRACE(shape.to_string());
      const int axis = shape.rank() == 1 ? 0 : 1;
      const std::int64_t outer = axis == 0 ? 1 : shape[0], inner = axis == 0 ? 1 : shape[2];
      const auto x = random_values(shape.size(), 1), dy = random_values(outer * 2 * inner, 2);
      std::vector<double> y(dy.size()), dx(x.size());
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t j = 0; j < 2; ++j)
          for (std::int64_t t = 0; t < 3; ++t)
            for (std::int64_t i = 0; i < inner; ++i) {
              const auto at = static_cast<std::size_t>(j * 3 + t);
              if (taps.places[at] < 0) continue;
              const auto from = static_cast<std::size_t>((o * 5 + taps.places[at]) * inner + i),
                         to = static_cast<std::size_t>((o * 2 + j) * inner + i);
              y[to] += taps.weights[at] * x[from];
              dx[from] += taps.weights[at] * dy[to];
            }
      const Array src = real_array(x, shape, dtype), got = resample_axis(src, axis - shape.rank(), taps);
      const Array wrt[] = {src};
      EXPECT_TRUE(all_close(got, y, sum_tolerance(dtype, 3)));
      EXPECT_TRUE(
          all_close(gradients(sum(got * real_array(dy, got.shape(), dtype)), wrt)[0], dx, sum_tolerance(dtype, 3)));
    }
}

struct Golden {
  const char* what;
  InterpolateOptions options;
  std::vector<double> values;
};

// F.interpolate of steps(35) as [1, 1, 7, 5].
std::vector<Golden> goldens() {
  return {
      {"cubic",
       {.size = {4, 8}, .mode = Mode::cubic},
       {-0.3733196, -0.4267556, -0.3213278, 0.225316,   0.299852,   -0.1432336, -0.2098847,  -0.1589851,
        0.3827878,  -0.2185903, -0.8051635, -0.5468822, 0.07231836, 0.4922807,  -0.06618192, -0.6846043,
        -0.3541751, 0.1601468,  0.4342416,  -0.6056147, -0.9082688, -0.1628345, 0.4216591,   0.7477786,
        0.4234502,  0.06439698, -0.155376,  0.5667353,  0.3395792,  -0.6777722, -0.4120632,  0.08880493}},
      {"cubic, aligned corners",
       {.size = {4, 8}, .mode = Mode::cubic, .align_corners = true},
       {-1,    -0.6483382, -0.09542274, 0.4570554,  0.1908163,  -0.6936735, -0.6236735, -0.06,
        0.34,  -0.4802915, -0.9609329,  -0.5321283, 0.1321283,  0.5609329,  0.08029155, -0.74,
        -0.34, 0.2236735,  0.2936735,   -0.5908163, -0.8570554, -0.3045773, 0.2483382,  0.6,
        1,     0.1797085,  -0.2744315,  0.3487172,  0.1708163,  -0.7136735, -0.6436735, -0.08}},
      {"cubic, scales that leave a rest",
       {.scale = {0.6, 1.3}, .mode = Mode::cubic},
       {-0.4592701, -0.464494,  0.01885648, 0.3506785,  -0.2349331, -0.1993929, 0.4266818,   -0.6013402,
        -0.8263669, 0.02292757, 0.5527808,  -0.3950441, -0.2717867, 0.5374183,  -0.01533933, -0.9873015,
        -0.0673905, 0.6663653,  -0.1959368, -0.2260716, 0.4416752,  0.7004318,  -0.5984979,  -0.1270143}},
      {"linear, antialiased",
       {.size = {3, 4}, .mode = Mode::linear, .antialias = true},
       {-0.1325, -0.2430952, 0.1994048, -0.2117857, 0.03647059, -0.09039216, -0.05882353, 0.3094118, -0.0025, 0.1394048,
        -0.1755952, 0.02642857}},
      {"cubic, antialiased",
       {.size = {3, 4}, .mode = Mode::cubic, .antialias = true},
       {-0.1489424, -0.2829254, 0.2774862, -0.2693642, 0.06330803, -0.1436465, -0.07852728, 0.3758596, -0.01073495,
        0.2114691, -0.2275577, 0.03607459}},
      {"cubic, antialiased, one axis larger",
       {.size = {9, 4}, .mode = Mode::cubic, .antialias = true},
       {-0.9603442, 0.1491412,  -0.3310882,  -0.2729559,  0.006892991, -0.2056307, 0.3924302,  -0.1427545, 0.3347824,
        -0.6328766, 0.6260326,  -0.3278565,  0.0692363,   -0.5862755,  0.2304671,  -0.2501655, 0.206049,   0.2254905,
        -0.1844225, 0.8388533,  -0.04201281, -0.07434783, -0.5127877,  0.6129358,  -0.4949718, 0.2127785,  -0.2015737,
        0.2502464,  -0.1930981, 0.3542566,   -0.03485251, -0.08711348, 0.7816321,  0.02054088, -0.3215852, -0.3021437}},
      {"nearest, exact",
       {.size = {4, 8}, .mode = Mode::nearest_exact},
       {-1,    -1,    -0.26, 0.48,  0.48,  -0.8,  -0.06, -0.06, 0.34, 0.34, -0.94, -0.2, -0.2, 0.54,  -0.74, -0.74,
        -0.34, -0.34, 0.4,   -0.88, -0.88, -0.14, 0.6,   0.6,   1,    1,    -0.28, 0.46, 0.46, -0.82, -0.08, -0.08}},
      {"area",
       {.size = {3, 2}, .mode = Mode::area},
       {-0.1511111, -0.01777778, -0.1577778, -0.02444444, 0.06, -0.03111111}},
  };
}

TEST_P(InterpolateTest, gives_the_values_of_pytorch) {
  for (const Dtype dtype : real_dtypes())
    for (const Golden& g : goldens()) {
      SCOPED_TRACE(g.what);
      EXPECT_TRUE(all_close(interpolate(real_array(steps(35), {1, 7, 5, 1}, dtype), g.options), g.values, 2e-6));
    }
}

TEST_P(InterpolateTest, two_axes_of_nearest_and_linear_are_those_of_resize) {
  const Array x = real_array(random_values(2 * 5 * 7 * 3, 1), {2, 5, 7, 3}, f32);
  EXPECT_TRUE(same_bytes(interpolate(x, {.size = {8, 3}}), resize(x, {.out_h = 8, .out_w = 3})));
  EXPECT_TRUE(same_bytes(interpolate(x, {.scale = {1.7}, .mode = Mode::linear}),
                         resize(x, {.scale_h = 1.7, .scale_w = 1.7, .mode = ResizeMode::bilinear})));
}

TEST_P(InterpolateTest, one_and_three_axes_are_interpolated_axis_by_axis) {
  const auto x = random_values(3 * 4 * 5, 3);
  const Array volume = real_array(x, {1, 3, 4, 5, 1}, f32);
  const Array images =
      reshape(interpolate(reshape(volume, {3, 4, 5, 1}), {.size = {7, 4}, .mode = Mode::linear}), {1, 3, 28, 1});
  const Array want = interpolate(images, {.size = {2, 28}, .mode = Mode::linear});
  const Array got = interpolate(volume, {.size = {2, 7, 4}, .mode = Mode::linear});
  ASSERT_EQ(got.shape(), (Shape{1, 2, 7, 4, 1}));
  EXPECT_TRUE(all_close(got, want.to_vector<double>(), 1e-5));
  EXPECT_TRUE(all_close(interpolate(array({0, 1, 2, 3}, {1, 4, 1}), {.size = {8}, .mode = Mode::linear}),
                        std::vector<double>{0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3}, 1e-6));
}

TEST_P(InterpolateTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  for (const Golden& g : goldens())
    EXPECT_TRUE(
        check_gradients([&](auto x) { return interpolate(x[0], g.options); }, {random_input("src", {1, 7, 5, 2})}))
        << g.what;
}

TEST_P(InterpolateTest, sixteen_bits_are_rounded_once) {
  const Array x = astype(real_array(random_values(60, 1), {1, 5, 6, 2}, f32), bf16);
  const InterpolateOptions options{.size = {3, 8}, .mode = Mode::cubic};
  EXPECT_TRUE(same_bytes(interpolate(x, options), astype(interpolate(astype(x, f32), options), bf16)));
}

TEST_P(InterpolateTest, unfold_lays_windows_side_by_side_and_fold_adds_them_up_again) {
  const Shape shape{2, 5, 4, 3};
  const FoldOptions options{.kernel = {3, 2}, .stride = {2, 1}, .dilation = {1, 2}, .pad = {1, 0}, .pad_end = {0, 1}};
  const std::int64_t oh = 2, ow = 3;
  const auto x = random_values(shape.size(), 1), g = random_values(2 * oh * ow * 6 * 3, 2);
  std::vector<double> columns(g.size()), sums(x.size());
  std::size_t to = 0;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t window = 0; window < oh * ow; ++window)
      for (std::int64_t tap = 0; tap < 6; ++tap)
        for (std::int64_t c = 0; c < 3; ++c, ++to) {
          const std::int64_t row = window / ow * 2 - 1 + tap / 2, column = window % ow + tap % 2 * 2;
          if (row < 0 || row >= 5 || column >= 4) continue;
          const auto from = static_cast<std::size_t>(((n * 5 + row) * 4 + column) * 3 + c);
          columns[to] = x[from];
          sums[from] += g[to];
        }
  for (const Dtype dtype : real_dtypes()) {
    const Array got = unfold(real_array(x, shape, dtype), options);
    ASSERT_EQ(got.shape(), (Shape{2, oh * ow, 6, 3}));
    EXPECT_TRUE(all_close(got, columns, dtype == f32 ? 1e-7 : 0));
    EXPECT_TRUE(all_close(fold(real_array(g, got.shape(), dtype), {5, 4}, options), sums, sum_tolerance(dtype, 6)));
  }
}

TEST_P(InterpolateTest, fold_and_unfold_have_each_others_gradient) {
  SAMEBYTES_NEEDS_F64();
  const FoldOptions options{.kernel = {2, 3}, .stride = {1, 2}, .pad = {1, 1}};
  EXPECT_TRUE(check_gradients([&](auto x) { return unfold(x[0], options); }, {random_input("src", {1, 3, 4, 2})}));
  EXPECT_TRUE(check_gradients(
      [&](auto x) {
        return fold(x[0], {3, 4}, options);
      },
      {random_input("columns", {1, 8, 6, 2})}));
}

TEST_P(InterpolateTest, wrong_arguments_are_named) {
  const Array x = zeros({1, 4, 4, 3});
  EXPECT_ERROR(interpolate(zeros({4, 4}), {.size = {2}}), ArgumentError,
               "interpolate: src must be floating [N, one to three axes, C], src is f32 [4, 4]");
  EXPECT_ERROR(interpolate(x, {}), ArgumentError,
               "interpolate: expected either sizes or scales, got 0 and 0, src is f32 [1, 4, 4, 3]");
  EXPECT_ERROR((interpolate(x, {.size = {2, 2, 2}})), ArgumentError,
               "interpolate: expected one size or scale for each of 2 axes, got 3, src is f32 [1, 4, 4, 3]");
  EXPECT_ERROR(
      interpolate(x, {.scale = {0.1}}), ArgumentError,
      "interpolate: expected axes of at least one place and results of 1 to 2^30 places, axis 1 has 4, src is f32 "
      "[1, 4, 4, 3]");
  EXPECT_ERROR((interpolate(x, {.size = {2, 2}, .mode = Mode::area, .align_corners = true})), ArgumentError,
               "interpolate: align_corners needs mode linear or cubic, got area");
  EXPECT_ERROR((interpolate(x, {.size = {2, 2}, .antialias = true})), ArgumentError,
               "interpolate: antialias needs images and mode linear or cubic, got nearest and f32 [1, 4, 4, 3]");
  EXPECT_ERROR(resample_axis(x, 1, some_taps()), ArgumentError,
               "resample_axis: expected a table for an axis of 4 places, got one for 5, src is f32 [1, 4, 4, 3]");
  EXPECT_ERROR((resample_axis(x, 1, {.in = 4, .taps = 1, .places = {4}, .weights = {1}})), ArgumentError,
               "resample_axis: place 4 is outside an axis of 4 places, src is f32 [1, 4, 4, 3]");
  EXPECT_ERROR((unfold(x, {.kernel = {5, 1}})), ArgumentError,
               "unfold: the kernel of 5 must fit into the padded axis of 4 places");
  EXPECT_ERROR((unfold(x, {.kernel = {2}})), ArgumentError, "unfold: expected 2 numbers in kernel, got 1");
  EXPECT_ERROR((fold(zeros({1, 4, 4, 3}), {4, 4}, {.kernel = {2, 2}})), ArgumentError,
               "fold: expected 9 windows of 4 places, columns is f32 [1, 4, 4, 3]");
}

class SmallShapesResampleTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesResampleTest);

TEST_P(SmallShapesResampleTest, runs_forward_and_backward) {
  run([](auto x) { return interpolate(x[0], {.size = {3, 4}, .mode = Mode::cubic}); }, {{1, 5, 7, 5}});
}

}  // namespace
}  // namespace samebytes::testing
