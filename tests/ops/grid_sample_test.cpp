// grid_sample, affine_grid and roi_align against the values of PyTorch and torchvision, with their gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class GridSampleTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(GridSampleTest);

using Mode = GridSampleMode;
using Padding = GridSamplePadding;

// The values that the expected numbers below were made from.
Array steps(const Shape& shape, Dtype dtype) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < shape.size(); ++i) x.push_back(static_cast<double>(i * 37 % 101) / 50 - 1);
  return real_array(x, shape, dtype);
}

Array places(Dtype dtype) {
  return real_array(std::vector<double>{-1.3, -0.2, 0.1, 0.35, 1.6, -0.9, -0.55, 2.7, 0.95, 0.8, 0.31, -1.05},
                    {1, 2, 3, 2}, dtype);
}

struct Golden {
  Mode mode;
  Padding padding;
  std::vector<double> edges, centres;  // without and with align_corners
};

// F.grid_sample of steps({1, 1, 4, 5}).
std::vector<Golden> goldens() {
  return {
      {Mode::bilinear, Padding::zeros, {0, -0.083, 0, 0, 0.52875, -0.2048}, {0.2448, -0.0605, 0, 0, 0.4226, -0.29008}},
      {Mode::bilinear,
       Padding::border,
       {0.646, -0.083, -0.06, 0.4625, 0.94, -0.512},
       {0.612, -0.0605, -0.111, 0.666, 0.4226, -0.3136}},
      {Mode::bilinear,
       Padding::reflection,
       {0.326, -0.083, -0.8, -0.49575, 0.94, -0.512},
       {-0.156, -0.0605, -0.3526, -0.3961, 0.4226, -0.24517}},
      {Mode::nearest, Padding::zeros, {0, -0.2, 0, 0, 0.94, 0}, {0, -0.2, 0, 0, 0.94, -0.8}},
      {Mode::nearest, Padding::border, {0.68, -0.2, -0.06, 0.74, 0.94, -0.8}, {0.68, -0.2, -0.06, 0.74, 0.94, -0.8}},
      {Mode::nearest,
       Padding::reflection,
       {0.68, -0.2, -0.8, -0.26, 0.94, -0.8},
       {-0.6, -0.2, -0.8, -0.26, 0.94, -0.8}},
      {Mode::bicubic,
       Padding::zeros,
       {-0.07978447, -0.0645725, 0, 0, 0.7053621, -0.3376805},
       {0.4159776, 0.01449977, 0.00992772, 0, 0.5771894, -0.3971358}},
      {Mode::bicubic,
       Padding::border,
       {0.756475, -0.05177188, -0.022515, 0.6139648, 1.136841, -0.7023823},
       {0.8992128, 0.01475132, -0.09853687, 0.75708, 0.4457436, -0.419014}},
      {Mode::bicubic,
       Padding::reflection,
       {0.4090882, -0.05177188, -1.0646, -0.5738554, 1.207446, -0.8620787},
       {-0.1176518, 0.01448514, -0.5526599, -0.3971521, 0.6369486, -0.3476523}},
  };
}

TEST_P(GridSampleTest, gives_the_values_of_pytorch) {
  for (const Dtype dtype : real_dtypes())
    for (const Golden& g : goldens())
      for (const bool is_aligned : {false, true}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(g.mode)) + " " + std::to_string(static_cast<int>(g.padding)));
        const Array y = grid_sample(steps({1, 4, 5, 1}, dtype), places(dtype), {g.mode, g.padding, is_aligned});
        ASSERT_EQ(y.shape(), (Shape{1, 2, 3, 1}));
        EXPECT_TRUE(all_close(y, is_aligned ? g.centres : g.edges, 4e-6));
      }
}

TEST_P(GridSampleTest, volumes_batches_and_channels_are_sampled_alike) {
  const Array grid = real_array(std::vector<double>{-1.3, -0.2, 0.4, 0.1, 0.35, -0.7, 1.6, -0.9, 0.2, -0.55, 2.7, -1.4},
                                {1, 1, 2, 2, 3}, f32);
  EXPECT_TRUE(all_close(grid_sample(steps({1, 3, 4, 5, 1}, f32), grid, {.padding = Padding::reflection}),
                        std::vector<double>{-0.0724, -0.083, 0.058, -0.437325}, 2e-6));
  const Array one = steps({1, 4, 5, 1}, f32), two = one * 2.0;
  const Array both = concat({concat({one, two}, 3), concat({two, one}, 3)}, 0);
  const Array y = grid_sample(both, concat({places(f32), places(f32)}, 0));
  const Array want = grid_sample(one, places(f32));
  EXPECT_TRUE(all_close(
      y, concat({concat({want, want * 2.0}, 3), concat({want * 2.0, want}, 3)}, 0).to_vector<double>(), 1e-6));
}

// The samples of images [n, h, w, c] by the definition, linear, with zeros outside.
std::vector<double> linear_samples(const std::vector<double>& src, const Shape& s, const std::vector<double>& grid,
                                   std::int64_t places) {
  std::vector<double> result;
  const auto h = s[1], w = s[2], c = s[3];
  for (std::int64_t p = 0; p < s[0] * places; ++p) {
    const double x = ((grid[static_cast<std::size_t>(2 * p)] + 1) * static_cast<double>(w) - 1) / 2;
    const double y = ((grid[static_cast<std::size_t>(2 * p + 1)] + 1) * static_cast<double>(h) - 1) / 2;
    for (std::int64_t i = 0; i < c; ++i) {
      double sum = 0;
      for (std::int64_t row = 0; row < h; ++row)
        for (std::int64_t column = 0; column < w; ++column) {
          const double share = std::max(0.0, 1 - std::abs(y - static_cast<double>(row))) *
                               std::max(0.0, 1 - std::abs(x - static_cast<double>(column)));
          sum += share * src[static_cast<std::size_t>(((p / places * h + row) * w + column) * c + i)];
        }
      result.push_back(sum);
    }
  }
  return result;
}

TEST_P(GridSampleTest, any_number_of_channels_takes_one_launch) {
  for (const std::int64_t channels : {1, 3, 17, 70, 131}) {
    const Shape shape{2, 5, 7, channels};
    const auto values = random_values(shape.size(), 3), grid = random_values(2 * 33 * 2, 4, -1.3, 1.3);
    const Array src = real_array(values, shape, f32).wait(), at = real_array(grid, {2, 3, 11, 2}, f32).wait();
    const Array y = grid_sample(src, at);
    std::uint64_t before = engine().plans().launches;
    y.wait();
    EXPECT_EQ(engine().plans().launches - before, 1u);
    EXPECT_TRUE(all_close(y, linear_samples(values, shape, grid, 33), 1e-5)) << channels;
    const std::vector<Array> wrt{src, at};
    const std::vector<Array> d = gradients(grid_sample(src, at), wrt, y);
    before = engine().plans().launches;
    eval(d);
    EXPECT_LE(engine().plans().launches - before, 4u);
    // Linear in src: <y, y> is <dsrc, src>.
    const auto product = [](const Array& a, const Array& b) { return sum(a * b).to_vector<double>()[0]; };
    EXPECT_NEAR(product(d[0], src), product(y, y), 1e-4 * product(y, y));
    EXPECT_TRUE(same_bytes(gradients(grid_sample(src, at), wrt, y)[0], d[0]));
  }
}

TEST_P(GridSampleTest, coordinates_far_away_or_nan_stay_where_they_are) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<Array> wrt{ones({1, 3, 4, 2})};
  const Array grid = array({nan, 0, 0, nan, 1e30f, 0, 0, -1e9f, infinity, 0, 0, 0}, {1, 1, 6, 2});
  for (const Mode mode : {Mode::bilinear, Mode::nearest, Mode::bicubic})
    for (const Padding padding : {Padding::zeros, Padding::border, Padding::reflection}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(mode)) + " " + std::to_string(static_cast<int>(padding)));
      const Array y = grid_sample(wrt[0], grid, {mode, padding, false});
      const std::vector<double> values = y.to_vector<double>();
      for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(values[i]));
      if (padding == Padding::zeros)
        EXPECT_TRUE(all_close(slice(y, 2, 2, 4), std::vector<double>{0, 0, 0, 0}, 0));
      else
        EXPECT_TRUE(all_close(slice(y, 2, 3, 4), std::vector<double>{1, 1}, 1e-5));
      EXPECT_TRUE(all_close(slice(y, 2, 5, 6), std::vector<double>{1, 1}, 1e-5));
      // Places that are NaN give nothing back.
      const Array d = gradients(sum(slice(y, 2, 0, 2)) + sum(slice(y, 2, 5, 6)), wrt)[0];
      EXPECT_NEAR(sum(d).to_vector<double>()[0], 2, 1e-5);
    }
  const Array outside = ones({1, 2, 2, 1}) / zeros({1, 2, 2, 1});  // infinite
  const Array corner = grid_sample(outside, array({-3, -3}, {1, 1, 1, 2}));
  EXPECT_TRUE(all_close(corner, std::vector<double>{0}, 0));
}

TEST_P(GridSampleTest, volumes_have_the_numerical_gradients_and_all_have_second_ones) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput volume = random_input("src", {1, 2, 3, 4, 2}), grid = random_input("grid", {1, 1, 1, 3, 3}, 7);
  EXPECT_TRUE(check_gradients([](auto x) { return grid_sample(x[0], x[1]); }, {volume, grid}));
  const GradientInput src = random_input("src", {1, 4, 5, 2}), places = random_input("grid", {1, 2, 2, 2}, 7);
  for (const Mode mode : {Mode::bilinear, Mode::bicubic})
    EXPECT_TRUE(check_gradients(
        [&](auto x) {
          const Array inner[] = {x[0], x[1]};
          const auto d = gradients(sum(square(grid_sample(x[0], x[1], {.mode = mode}))), inner);
          return sum(square(d[0])) + sum(square(d[1]) * 0.1);
        },
        {src, places}))
        << static_cast<int>(mode);
}

TEST_P(GridSampleTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput src = random_input("src", {1, 4, 5, 2}), grid = random_input("grid", {1, 2, 3, 2}, 7, -1.4, 1.4);
  for (const Golden& g : goldens()) {
    const GridSampleOptions options{g.mode, g.padding, g.padding == Padding::border};
    EXPECT_TRUE(check_gradients([&](auto x) { return grid_sample(x[0], x[1], options); }, {src, grid}))
        << static_cast<int>(g.mode) << " " << static_cast<int>(g.padding);
  }
  EXPECT_TRUE(check_gradients([](auto x) { return affine_grid(x[0], {2, 3}); }, {random_input("theta", {2, 2, 3})}));
}

TEST_P(GridSampleTest, an_affine_grid_is_the_regular_one_times_theta) {
  const Array theta = array({0.8f, 0.3f, -0.1f, -0.2f, 1.1f, 0.4f}, {1, 2, 3});
  EXPECT_TRUE(all_close(affine_grid(theta, {2, 3}),
                        std::vector<double>{-0.7833333, -0.01666667, -0.25, -0.15, 0.2833333, -0.2833333, -0.4833333,
                                            1.083333, 0.05, 0.95, 0.5833333, 0.8166667},
                        1e-6));
  const Array same = array({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {1, 3, 4}), x = steps({1, 2, 3, 4, 1}, f32);
  for (const bool is_aligned : {false, true})
    EXPECT_TRUE(all_close(
        grid_sample(x, affine_grid(same, {2, 3, 4}, {.align_corners = is_aligned}), {.align_corners = is_aligned}),
        x.to_vector<double>(), 1e-5));
}

TEST_P(GridSampleTest, roi_align_gives_the_values_of_torchvision) {
  const Array boxes = array({0.5f, 1.2f, 5.1f, 4.9f, 2, 2, 3.5f, 3.1f}, {2, 4}),
              batch = array(std::vector<std::int32_t>{0, 1}, {2});
  const Array x = steps({2, 6, 7, 1}, f32);
  EXPECT_TRUE(all_close(
      roi_align(x, boxes, batch, {.out_h = 2, .out_w = 2}),
      std::vector<double>{0.05579583, -0.01798056, 0.1561583, -0.03685417, -0.1173125, 0.0905, 0.0930625, -0.3935},
      4e-6));
  EXPECT_TRUE(all_close(
      roi_align(x, boxes, batch, {.out_h = 2, .out_w = 2, .spatial_scale = 0.8, .sampling_ratio = 2, .aligned = true}),
      std::vector<double>{0.220936, -0.036696, -0.273868, 0.155704, 0.04224, 0.04386, 0.18832, -0.21002}, 4e-6));
  EXPECT_TRUE(all_close(roi_align(ones({1, 4, 4, 2}), array({0, 0, 3, 3}, {1, 4}), zeros({1}, i32),
                                  {.sampling_ratio = 1, .mode = RoiAlignMode::max}),
                        std::vector<double>{0.25, 0.25}, 1e-6));
}

// So many samples that they are taken in parts, beside eight boxes at a time, which are not.
TEST_P(GridSampleTest, roi_align_takes_many_samples_in_parts) {
  constexpr std::int64_t count = 64, few = 8;
  std::vector<float> corners;
  for (std::int64_t r = 0; r < count; ++r) {
    const float at = 0.1f * static_cast<float>(r);
    corners.insert(corners.end(), {at * 0.5f, 6 - at, at * 0.5f + 2, 7.5f - at * 0.5f});
  }
  const Array x = steps({2, 8, 8, 256}, f32), boxes = array(corners, {count, 4});
  const Array batch = astype(astype(greater(uniform({count}), 0.5), f32), i32).wait();
  for (const RoiAlignMode mode : {RoiAlignMode::mean, RoiAlignMode::max}) {
    const RoiAlignOptions options{.out_h = 8, .out_w = 8, .sampling_ratio = 2, .mode = mode};
    const Array whole = roi_align(x, boxes, batch, options);
    for (std::int64_t r = 0; r < count; r += few)
      EXPECT_TRUE(all_close(
          slice(whole, 0, r, r + few),
          roi_align(x, contiguous(slice(boxes, 0, r, r + few)), contiguous(slice(batch, 0, r, r + few)), options)
              .to_vector<double>(),
          2e-6));
  }
}

TEST_P(GridSampleTest, roi_align_of_boxes_that_are_none_is_zero) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), far = 1e30f;
  const Array boxes = array({nan, 0, 3, 3, 0, 0, nan, nan, far, far, far, far}, {3, 4}), batch = zeros({3}, i32);
  for (const int ratio : {0, 2})
    EXPECT_EQ(roi_align(ones({1, 4, 4, 1}), boxes, batch, {.out_h = 1, .out_w = 1, .sampling_ratio = ratio})
                  .to_vector<float>(),
              (std::vector<float>{0, 0, 0}));
}

TEST_P(GridSampleTest, roi_align_has_the_numerical_gradient_for_the_image) {
  SAMEBYTES_NEEDS_F64();
  const Array boxes = array({0.5f, 1.2f, 4.1f, 3.9f}, {1, 4}), batch = zeros({1}, i32);
  EXPECT_TRUE(check_gradients([&](auto x) { return roi_align(x[0], boxes, batch, {.out_h = 2, .out_w = 3}); },
                              {random_input("src", {1, 5, 6, 2})}));
}

TEST_P(GridSampleTest, wrong_arguments_are_named) {
  const Array x = zeros({1, 4, 5, 3});
  EXPECT_ERROR(grid_sample(zeros({4, 5, 3}), zeros({1, 2, 2, 2})), ArgumentError,
               "grid_sample: src must be floating [N, H, W, C] or [N, D, H, W, C], src is f32 [4, 5, 3]");
  EXPECT_ERROR(grid_sample(x, zeros({1, 2, 2, 3})), ArgumentError,
               "grid_sample: grid must be floating [N, OH, OW, 2], grid is f32 [1, 2, 2, 3]");
  EXPECT_ERROR((grid_sample(zeros({1, 2, 2, 2, 1}), zeros({1, 2, 2, 2, 3}), {.mode = Mode::bicubic})), ArgumentError,
               "grid_sample: bicubic needs images, src is f32 [1, 2, 2, 2, 1]");
  EXPECT_ERROR(affine_grid(zeros({1, 2, 3}), {2}), ArgumentError,
               "affine_grid: expected two or three sizes of at least 1, got 1");
  EXPECT_ERROR(affine_grid(zeros({1, 3, 4}), {2, 2}), ArgumentError,
               "affine_grid: theta must be floating [N, 2, 3], theta is f32 [1, 3, 4]");
  EXPECT_ERROR(roi_align(x, zeros({2, 3}), zeros({2}, i32)), ArgumentError,
               "roi_align: boxes must be floating [R, 4], boxes is f32 [2, 3]");
  EXPECT_ERROR(roi_align(x, zeros({1, 4}), full({1}, 3, i32)), ArgumentError,
               "roi_align: batch must name images below 1, got 3");
  EXPECT_ERROR((roi_align(x, zeros({1, 4}), zeros({1}, i32), {.out_h = 0})), ArgumentError,
               "roi_align: expected out_h, out_w and spatial_scale above 0 and sampling_ratio 0 or more, got 0, 1, "
               "1.000000 and 0");
}

}  // namespace
}  // namespace samebytes::testing
