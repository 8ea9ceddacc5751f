// Pooling with gaps, uneven sides, three axes and indices, against plain loops in double, in both personalities.
#include <gtest/gtest.h>

#include <array>
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

class PoolNdTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(PoolNdTest);

struct Case {
  Shape shape;
  Pool3dOptions o;
};

std::vector<Case> cases() {
  return {
      {{2, 4, 6, 5, 3}, {}},
      {{1, 5, 7, 6, 17},
       {.kernel_d = 3,
        .kernel_h = 2,
        .kernel_w = 3,
        .stride_d = 1,
        .stride_h = 2,
        .stride_w = 3,
        .pad_d = 1,
        .pad_w = 2,
        .pad_end_d = 0,
        .pad_end_h = 1}},
      {{1, 5, 9, 8, 2},
       {.kernel_d = 2,
        .kernel_h = 3,
        .kernel_w = 2,
        .stride_d = 1,
        .stride_h = 2,
        .stride_w = 1,
        .pad_h = 1,
        .dilation_d = 3,
        .dilation_h = 2,
        .dilation_w = 5}},
      {{1, 6, 7, 5, 1},
       {.kernel_d = 3,
        .kernel_h = 3,
        .kernel_w = 2,
        .stride_d = 2,
        .stride_h = 3,
        .stride_w = 2,
        .pad_d = 1,
        .pad_w = 1,
        .ceil_mode = true,
        .count_include_pad = false}},
      {{1, 3, 3, 3, 2},
       {.kernel_d = 2, .kernel_h = 2, .kernel_w = 2, .stride_d = 1, .stride_h = 1, .stride_w = 1, .divisor = 5}},
  };
}

// Calls f(window of dst, place in src, place in a channel's volume) for all places of src in windows, and gives the
// shape.
template <class F>
Shape for_each_place(const Case& c, F f) {
  const Pool3dOptions& o = c.o;
  const std::array<std::int64_t, 3> kernel{o.kernel_d, o.kernel_h, o.kernel_w},
      dilation{o.dilation_d, o.dilation_h, o.dilation_w}, pad{o.pad_d, o.pad_h, o.pad_w},
      end{o.pad_end_d.value_or(o.pad_d), o.pad_end_h.value_or(o.pad_h), o.pad_end_w.value_or(o.pad_w)};
  std::array<std::int64_t, 3> stride{o.stride_d, o.stride_h, o.stride_w}, out{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (stride[i] == 0) stride[i] = kernel[i];
    const std::int64_t in = c.shape[static_cast<int>(i) + 1],
                       room = in + pad[i] + end[i] - dilation[i] * (kernel[i] - 1) - 1;
    out[i] = room / stride[i] + 1;
    if (o.ceil_mode && room % stride[i] != 0 && out[i] * stride[i] < in + pad[i]) ++out[i];
  }
  const Shape result{c.shape[0], out[0], out[1], out[2], c.shape[4]};
  for (std::int64_t w = 0; w < result.size(); ++w) {
    const std::int64_t k = w % result[4], ox = w / result[4] % out[2], oy = w / result[4] / out[2] % out[1],
                       oz = w / result[4] / out[2] / out[1] % out[0], n = w / result[4] / out[2] / out[1] / out[0];
    for (std::int64_t i = 0; i < kernel[0]; ++i)
      for (std::int64_t j = 0; j < kernel[1]; ++j)
        for (std::int64_t t = 0; t < kernel[2]; ++t) {
          const std::int64_t z = oz * stride[0] - pad[0] + i * dilation[0],
                             y = oy * stride[1] - pad[1] + j * dilation[1],
                             x = ox * stride[2] - pad[2] + t * dilation[2];
          const auto inside = [&](std::int64_t at, int axis) { return at >= 0 && at < c.shape[axis]; };
          const auto padded = [&](std::int64_t at, int axis) {
            return at < c.shape[axis] + end[static_cast<std::size_t>(axis) - 1];
          };
          const bool is_there = inside(z, 1) && inside(y, 2) && inside(x, 3);
          const std::int64_t place = (z * c.shape[2] + y) * c.shape[3] + x;
          f(static_cast<std::size_t>(w),
            is_there ? (n * c.shape[1] * c.shape[2] * c.shape[3] + place) * c.shape[4] + k : -1, place,
            padded(z, 1) && padded(y, 2) && padded(x, 3));
        }
  }
  return result;
}

TEST_P(PoolNdTest, largest_values_means_and_indices_are_those_of_plain_loops) {
  for (const Dtype dtype : real_dtypes())
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.shape.to_string());
      const Array src = real_array(random_values(c.shape.size(), 1), c.shape, dtype);
      const std::vector<double> x = src.to_vector<double>();
      const Shape out = for_each_place(c, [](auto, auto, auto, auto) {});
      const auto n = static_cast<std::size_t>(out.size());
      std::vector<double> most(n, -10), sums(n), counts(n);
      std::vector<std::int32_t> index(n);
      for_each_place(c, [&](std::size_t w, std::int64_t from, std::int64_t place, bool is_padded) {
        counts[w] += from >= 0 || (c.o.count_include_pad && is_padded);
        if (from < 0) return;
        const double v = x[static_cast<std::size_t>(from)];
        sums[w] += v;
        if (v <= most[w]) return;
        most[w] = v;
        index[w] = static_cast<std::int32_t>(place);
      });
      for (std::size_t i = 0; i < n; ++i) sums[i] /= c.o.divisor > 0 ? c.o.divisor : counts[i];
      const PoolResult pooled = max_pool3d_with_indices(src, c.o);
      ASSERT_EQ(pooled.values.shape(), out);
      EXPECT_TRUE(all_close(pooled.values, most, 0));
      EXPECT_EQ(pooled.indices.to_vector<std::int32_t>(), index);
      EXPECT_TRUE(all_close(max_pool3d(src, c.o), most, 0));
      EXPECT_TRUE(all_close(avg_pool3d(src, c.o), sums, sum_tolerance(dtype, 27)));
    }
}

TEST_P(PoolNdTest, fewer_axes_are_volumes_of_one_place) {
  const auto x = random_values(2 * 9 * 11 * 3, 1);
  const Array image = real_array(x, {2, 9, 11, 3}, f32), volume = real_array(x, {2, 1, 9, 11, 3}, f32);
  const Pool2dOptions flat{
      .kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad_h = 1, .dilation_w = 3, .pad_end_h = 2};
  const Pool3dOptions deep{.kernel_d = 1,
                           .kernel_h = 3,
                           .kernel_w = 2,
                           .stride_d = 1,
                           .stride_h = 2,
                           .stride_w = 1,
                           .pad_h = 1,
                           .dilation_w = 3,
                           .pad_end_h = 2};
  const auto values = [](const Array& a) { return a.to_vector<double>(); };
  EXPECT_TRUE(all_close(max_pool2d(image, flat), values(max_pool3d(volume, deep)), 0));
  EXPECT_TRUE(all_close(avg_pool2d(image, flat), values(avg_pool3d(volume, deep)), 0));
  EXPECT_TRUE(all_close(lp_pool2d(image, 3, flat), values(lp_pool3d(volume, 3, deep)), 0));
  const Array line = real_array(x, {2, 99, 3}, f32), row = real_array(x, {2, 1, 1, 99, 3}, f32);
  const Pool1dOptions along{.kernel = 4, .stride = 3, .pad = 1, .dilation = 2};
  const Pool3dOptions thin{.kernel_d = 1, .kernel_h = 1, .kernel_w = 4, .stride_w = 3, .pad_w = 1, .dilation_w = 2};
  EXPECT_TRUE(all_close(max_pool1d(line, along), values(max_pool3d(row, thin)), 0));
  EXPECT_TRUE(all_close(avg_pool1d(line, along), values(avg_pool3d(row, thin)), 0));
  // Both ways to pool an image without gaps agree.
  const Pool2dOptions plain{
      .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1, .ceil_mode = true};
  EXPECT_TRUE(all_close(max_pool2d(image, plain), values(max_pool2d_with_indices(image, plain).values), 0));
}

TEST_P(PoolNdTest, uneven_sides_without_gaps_agree_with_the_lists_of_places) {
  const Shape flat{2, 9, 11, 19}, deep{2, 1, 9, 11, 19};
  const auto x = random_values(flat.size(), 1);
  for (const bool counts_pad : {true, false}) {
    const Pool2dOptions a{.kernel_h = 3,
                          .kernel_w = 4,
                          .stride_h = 2,
                          .stride_w = 3,
                          .pad_w = 2,
                          .count_include_pad = counts_pad,
                          .pad_end_h = 2,
                          .pad_end_w = 0};
    const Pool3dOptions b{.kernel_d = 1,
                          .kernel_h = 3,
                          .kernel_w = 4,
                          .stride_d = 1,
                          .stride_h = 2,
                          .stride_w = 3,
                          .pad_w = 2,
                          .count_include_pad = counts_pad,
                          .pad_end_h = 2,
                          .pad_end_w = 0};
    const Array image = real_array(x, flat, f32), volume = real_array(x, deep, f32);
    const Array wrt[] = {image, volume};
    const double tolerance = sum_tolerance(f32, 12);
    const auto compare = [&](const Array& got, const Array& want, double close) {
      EXPECT_TRUE(all_close(got, want.to_vector<double>(), close));
      const auto d = gradients(sum(square(got)) + sum(square(want)), wrt);
      EXPECT_TRUE(all_close(d[0], d[1].to_vector<double>(), tolerance));
    };
    compare(max_pool2d(image, a), max_pool3d(volume, b), 0);
    compare(avg_pool2d(image, a), avg_pool3d(volume, b), tolerance);
  }
}

TEST_P(PoolNdTest, paddings_beyond_half_the_kernel_are_padding_all_the_same) {
  const auto x = random_values(2 * 6 * 7 * 3, 1);
  const Array src = real_array(x, {2, 6, 7, 3}, f32);
  const Array padded = pad(src, {{0, 0}, {2, 2}, {2, 2}, {0, 0}});
  const Pool2dOptions wide{.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 2, .pad_h = 2, .pad_w = 2};
  EXPECT_TRUE(
      all_close(avg_pool2d(src, wide),
                avg_pool2d(padded, {.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 2}).to_vector<double>(),
                sum_tolerance(f32, 9)));
}

TEST_P(PoolNdTest, the_first_of_equal_values_and_the_first_nan_win) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const Array x = array({3, 3, 1, kNan, kNan, 5, -kInf, -kInf}, {1, 8, 1});
  const PoolResult pooled = max_pool1d_with_indices(x, {.kernel = 2});
  EXPECT_EQ(pooled.indices.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 3, 4, 6}));
  EXPECT_TRUE(all_close(pooled.values, std::vector<double>{3, kNan, kNan, -kInf}, 0));
}

TEST_P(PoolNdTest, unpooling_puts_values_back_where_they_came_from) {
  const Array x = real_array(random_values(2 * 4 * 6 * 3, 1), {2, 4, 6, 3}, f32);
  const PoolResult pooled = max_pool2d_with_indices(x);
  const Array back = max_unpool2d(pooled.values, pooled.indices, 4, 6);
  const std::vector<double> from = x.to_vector<double>(), got = back.to_vector<double>();
  double sum_of_places = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == 0 || got[i] == from[i]) << i;
    sum_of_places += got[i] != 0;
  }
  EXPECT_EQ(sum_of_places, 2 * 2 * 3 * 3);
  const Array line = array({4, 5}, {1, 2, 1}), places = array(std::vector<std::int32_t>{2, 0}, {1, 2, 1});
  EXPECT_TRUE(all_close(max_unpool1d(line, places, 4), std::vector<double>{5, 0, 4, 0}, 0));
  EXPECT_TRUE(all_close(max_unpool3d(reshape(line, {1, 1, 1, 2, 1}), reshape(places, {1, 1, 1, 2, 1}), 1, 2, 2),
                        std::vector<double>{5, 0, 4, 0}, 0));
}

TEST_P(PoolNdTest, lp_pools_are_roots_of_sums_of_powers) {
  const Array x = array({3, -4, 0, 0, 1, 2}, {1, 6, 1});
  EXPECT_TRUE(all_close(lp_pool1d(x, 2, {}), std::vector<double>{5, 0, std::sqrt(5)}, 1e-6));
  EXPECT_TRUE(all_close(lp_pool1d(x, 1, {}), std::vector<double>{7, 0, 3}, 1e-6));
  EXPECT_TRUE(all_close(lp_pool1d(x, 3, {}), std::vector<double>{std::cbrt(91), 0, std::cbrt(9)}, 1e-6));
  const Array wrt[] = {x};
  EXPECT_TRUE(all_close(gradients(sum(lp_pool1d(x, 2, {})), wrt)[0],
                        std::vector<double>{0.6, -0.8, 0, 0, 1 / std::sqrt(5), 2 / std::sqrt(5)}, 1e-6));
}

TEST_P(PoolNdTest, adaptive_volumes_pool_plane_by_plane) {
  const auto x = random_values(2 * 5 * 7 * 6 * 3, 1);
  const Array volume = real_array(x, {2, 5, 7, 6, 3}, f32);
  const Array images = reshape(volume, {10, 7, 6, 3});
  const Array rows = reshape(adaptive_avg_pool2d(images, 3, 2), {2, 5, 18}),
              tops = reshape(adaptive_max_pool2d(images, 3, 2), {2, 5, 18});
  EXPECT_TRUE(all_close(adaptive_avg_pool3d(volume, 2, 3, 2), adaptive_avg_pool1d(rows, 2).to_vector<double>(), 1e-6));
  EXPECT_TRUE(all_close(adaptive_max_pool3d(volume, 2, 3, 2), adaptive_max_pool1d(tops, 2).to_vector<double>(), 0));
}

TEST_P(PoolNdTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  for (const Case& c : {cases()[1], cases()[2], cases()[3]}) {
    Shape shape = c.shape;
    shape[4] = 1;
    const std::vector<GradientInput> inputs{random_input("src", shape)};
    EXPECT_TRUE(check_gradients([&](auto x) { return max_pool3d(x[0], c.o); }, inputs));
    EXPECT_TRUE(check_gradients([&](auto x) { return avg_pool3d(x[0], c.o); }, inputs));
    EXPECT_TRUE(check_gradients([&](auto x) { return lp_pool3d(x[0], 3, c.o); }, inputs));
  }
  const Array places = array(std::vector<std::int32_t>{2, 0, 5, 1}, {1, 2, 2});
  EXPECT_TRUE(check_gradients([&](auto x) { return max_unpool1d(x[0], places, 6); }, {random_input("src", {1, 2, 2})}));
}

// Windows that overlap, so that places are the largest of several; channels of less than a vector, of one, and with a
// rest.
TEST_P(PoolNdTest, gradients_are_added_up_where_the_largest_values_were) {
  for (const std::int64_t channels : {1, 5, 16, 37})
    for (const Dtype dtype : {f32, f16}) {
      const Shape shape{2, 7, 6, channels};
      const std::vector<Array> x{astype(real_array(random_values(shape.size(), 3), shape, f32), dtype)};
      const PoolResult y =
          max_pool2d_with_indices(x[0], {.kernel_h = 3, .kernel_w = 2, .stride_h = 1, .stride_w = 1, .dilation_h = 2});
      const Array dy = astype(real_array(random_values(y.values.size(), 4), y.values.shape(), f32), dtype);
      const std::vector<double> added = dy.to_vector<double>();
      const std::vector<std::int32_t> places = y.indices.to_vector<std::int32_t>();
      std::vector<double> want(static_cast<std::size_t>(shape.size()));
      const std::size_t of_image = added.size() / 2;
      for (std::size_t i = 0; i < added.size(); ++i)
        want[(i / of_image * 42 + static_cast<std::size_t>(places[i])) * static_cast<std::size_t>(channels) +
             i % static_cast<std::size_t>(channels)] += added[i];
      EXPECT_TRUE(all_close(gradients(y.values, x, dy)[0], want, dtype == f32 ? 1e-6 : 2e-3)) << channels;
    }
}

TEST_P(PoolNdTest, empty_batches_and_sixteen_bits) {
  EXPECT_EQ(max_pool3d(zeros({0, 4, 4, 4, 3})).wait().shape(), (Shape{0, 2, 2, 2, 3}));
  EXPECT_EQ(avg_pool3d(zeros({2, 4, 4, 4, 0})).wait().size(), 0);
  const Array x = astype(real_array(random_values(64, 1), {1, 4, 4, 4, 1}, f32), f16);
  EXPECT_EQ(avg_pool3d(x).dtype(), f16);
  EXPECT_TRUE(all_close(max_pool3d(x), max_pool3d(astype(x, f32)).to_vector<double>(), 0));
}

TEST_P(PoolNdTest, wrong_arguments_are_named) {
  const Array x = zeros({1, 4, 4, 4, 3});
  EXPECT_ERROR(max_pool3d(zeros({4, 4, 3})), ArgumentError,
               "max_pool3d: src must be floating [N, D, H, W, C], src is f32 [4, 4, 3]");
  EXPECT_ERROR((avg_pool3d(x, {.kernel_d = 0})), ArgumentError,
               "avg_pool3d: kernel, stride and dilation must be at least 1, src is f32 [1, 4, 4, 4, 3]");
  EXPECT_ERROR((avg_pool3d(x, {.divisor = -1})), ArgumentError,
               "avg_pool3d: pad and divisor must be at least 0, src is f32 [1, 4, 4, 4, 3]");
  EXPECT_ERROR((max_pool3d(x, {.kernel_d = 5})), ArgumentError,
               "max_pool3d: kernel 5 x 2 x 2 must fit in the volume with pad 0 x 0 x 0, src is f32 [1, 4, 4, 4, 3]");
  EXPECT_ERROR(
      (max_pool1d(zeros({1, 1, 1}), {.kernel = 2, .pad = 2, .dilation = 3})), ArgumentError,
      "max_pool1d: every window must have a place of src, with kernel 2 and pad 2 window 0 of axis 1 has none, src is "
      "f32 [1, 1, 1]");
  EXPECT_ERROR(lp_pool2d(zeros({1, 4, 4, 3}), 0), ArgumentError,
               "lp_pool2d: expected a finite p above 0, got 0.000000");
  EXPECT_ERROR(max_unpool2d(zeros({1, 2, 2, 1}), zeros({1, 2, 2, 1}), 4, 4), ArgumentError,
               "max_unpool2d: expected i32 or i64 indices of src's shape, indices is f32 [1, 2, 2, 1]");
  EXPECT_ERROR(max_unpool1d(zeros({1, 2, 1}), zeros({1, 2, 1}, i32), 0), ArgumentError,
               "max_unpool1d: the result must have at least one place along each axis, src is f32 [1, 2, 1]");
}

class SmallShapesPoolNdTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesPoolNdTest);

TEST_P(SmallShapesPoolNdTest, runs_forward_and_backward) {
  run([](auto x) { return max_pool3d(x[0], {.pad_end_w = 1}); }, {{1, 3, 5, 4, 5}});
  run([](auto x) { return avg_pool2d(x[0], {.kernel_h = 3, .stride_h = 1, .dilation_w = 2}); }, {{1, 5, 7, 5}});
}

}  // namespace
}  // namespace samebytes::testing
