// group_norm and instance_norm against their formulas in double, their gradients against the formulas and numerically,
// running statistics.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class GroupNormTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(GroupNormTest);

struct Case {
  Shape shape;  // [N, ..., C]
  std::int64_t groups;
};
// One value, one channel, one position, vectors and their ends, several parts of an image, more channels than a tile.
const Case kCases[] = {{{1, 1}, 1},     {{2, 5, 6}, 3},    {{3, 7, 5, 4}, 2}, {{2, 131, 1}, 1},
                       {{2, 1, 10}, 5}, {{3, 67, 37}, 37}, {{2, 40, 70}, 7},  {{2, 20011, 6}, 2},
                       {{5, 64}, 32},   {{2, 3, 257}, 1},  {{4, 9, 96}, 48}};
constexpr float kEps = 0x1p-10f;

struct Expected {
  std::vector<double> y, dx, dscale, dshift, mean, variance;  // the last two per image and group
};
Expected reference(const std::vector<double>& x, const std::vector<double>& scale, const std::vector<double>& shift,
                   const std::vector<double>& dy, const Case& at, double eps) {
  const std::int64_t images = at.shape[0], channels = at.shape.back(), width = channels / at.groups;
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / images / channels;
  Expected e{std::vector<double>(x.size()),
             std::vector<double>(x.size()),
             std::vector<double>(scale.size()),
             std::vector<double>(scale.size()),
             {},
             {}};
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t g = 0; g < at.groups; ++g) {
      const auto each = [&](const auto& f) {
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = g * width; c < (g + 1) * width; ++c)
            f(static_cast<std::size_t>((n * rows + r) * channels + c), static_cast<std::size_t>(c));
      };
      const long double count = rows * width;
      long double sum = 0, square = 0, of_g = 0, of_dots = 0;
      each([&](std::size_t i, std::size_t) { sum += x[i]; });
      const double mean = static_cast<double>(sum / count);
      each([&](std::size_t i, std::size_t) { square += (x[i] - mean) * (x[i] - mean); });
      const double variance = static_cast<double>(square / count), rstd = 1 / std::sqrt(variance + eps);
      e.mean.push_back(mean);
      e.variance.push_back(variance);
      each([&](std::size_t i, std::size_t c) {
        const double hat = (x[i] - mean) * rstd;
        e.y[i] = hat * scale[c] + shift[c];
        e.dscale[c] += dy[i] * hat;
        e.dshift[c] += dy[i];
        of_g += dy[i] * scale[c];
        of_dots += dy[i] * scale[c] * hat;
      });
      each([&](std::size_t i, std::size_t c) {
        const double hat = (x[i] - mean) * rstd;
        e.dx[i] = static_cast<double>(rstd * (dy[i] * scale[c] - of_g / count - hat * of_dots / count));
      });
    }
  return e;
}

std::vector<double> rounded(std::vector<double> values, Dtype dtype) {
  if (dtype == f32)
    for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  return values;
}

TEST_P(GroupNormTest, values_and_gradients_are_the_formulas) {
  for (const Dtype dtype : real_dtypes())
    for (const Case& at : kCases) {
      SCOPED_TRACE(at.shape.to_string());
      const std::int64_t channels = at.shape.back(), count = at.shape.size() / at.shape[0] / at.groups;
      const auto x = rounded(random_values(at.shape.size(), 1), dtype),
                 dy = rounded(random_values(at.shape.size(), 4), dtype);
      const auto scale = rounded(random_values(channels, 2), dtype), shift = rounded(random_values(channels, 3), dtype);
      const Array inputs[] = {real_array(x, at.shape, dtype), real_array(scale, {channels}, dtype),
                              real_array(shift, {channels}, dtype)};
      const Expected want = reference(x, scale, shift, dy, at, kEps);
      const Array y = group_norm(inputs[0], at.groups, inputs[1], inputs[2], kEps);
      const auto d = gradients(sum(y * real_array(dy, at.shape, dtype)), inputs);
      // The mean is rounded once; divided by a standard deviation of at least 1/32.
      EXPECT_TRUE(all_close(y, want.y, 32 * sum_tolerance(dtype, count)));
      EXPECT_TRUE(all_close(d[0], want.dx, 1024 * sum_tolerance(dtype, count)));
      const double tolerance = 32 * sum_tolerance(dtype, at.shape.size() / channels);
      EXPECT_TRUE(all_close(d[1], want.dscale, tolerance));
      EXPECT_TRUE(all_close(d[2], want.dshift, tolerance));
    }
}

TEST_P(GroupNormTest, scale_and_shift_may_be_left_out) {
  const Case at{{2, 7, 6}, 2};
  const auto x = random_values(84, 1), dy = random_values(84, 4), some = random_values(6, 2);
  const std::vector<double> one(6, 1.0), zero(6, 0.0);
  const Array src = real_array(x, at.shape, f32), each = real_array(some, {6}, f32), up = real_array(dy, at.shape, f32);
  const Expected bare = reference(x, one, zero, dy, at, 1e-5), shifted = reference(x, one, some, dy, at, 1e-5);
  EXPECT_TRUE(all_close(group_norm(src, 2), bare.y, 1e-5));
  EXPECT_TRUE(all_close(gradients(sum(group_norm(src, 2) * up), {&src, 1})[0], bare.dx, 1e-5));
  const Array inputs[] = {src, each};
  const Array y = group_norm(src, 2, {}, each);
  const auto d = gradients(sum(y * up), inputs);
  EXPECT_TRUE(all_close(y, shifted.y, 1e-5));
  EXPECT_TRUE(all_close(d[0], shifted.dx, 1e-5));
  EXPECT_TRUE(all_close(d[1], shifted.dshift, 1e-5));
  EXPECT_TRUE(all_close(gradients(sum(group_norm(src, 2, each) * up), {&each, 1})[0], bare.dscale, 1e-5));
}

TEST_P(GroupNormTest, gradients_agree_with_central_differences) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(
      check_gradients([](auto x) { return group_norm(x[0], 2, x[1], x[2], 0.01f); },
                      {random_input("src", {2, 5, 6}), random_input("scale", {6}), random_input("shift", {6})}));
  EXPECT_TRUE(check_gradients([](auto x) { return instance_norm(x[0], x[1]); },
                              {random_input("src", {2, 3, 2, 5}), random_input("scale", {5})}));
}

TEST_P(GroupNormTest, a_large_mean_costs_no_accuracy) {
  const Case at{{2, 500, 4}, 2};
  const auto x = rounded(random_values(at.shape.size(), 1, 1e4 - 2, 1e4 + 2), f32);
  const std::vector<double> one(4, 1.0), zero(4, 0.0);
  const Expected want = reference(x, one, zero, x, at, 1e-5);
  // What rounding the mean of 1e4 to f32 alone may cost.
  EXPECT_TRUE(all_close(group_norm(real_array(x, at.shape, f32), 2), want.y, 1e-3));
}

TEST_P(GroupNormTest, instance_norm_is_one_channel_to_a_group_and_keeps_running_statistics) {
  const Case at{{3, 20, 5}, 5};
  const auto x = random_values(at.shape.size(), 1);
  const std::vector<double> one(5, 1.0), zero(5, 0.0);
  const Expected want = reference(x, one, zero, x, at, 1e-5);
  const Array src = real_array(x, at.shape, f32);
  EXPECT_TRUE(all_close(instance_norm(src), want.y, 1e-5));
  const Array mean = cell(full({5}, 0.5), "mean"), var = cell(ones({5}), "var");
  const auto result = [&] { return instance_norm(src, {}, {}, mean, var, {.momentum = 0.25f}); };
  EXPECT_TRUE(all_close(result(), want.y, 1e-5));
  std::vector<double> new_mean(5, 0.75 * 0.5), new_var(5, 0.75);
  for (std::size_t i = 0; i < want.mean.size(); ++i) {
    new_mean[i % 5] += 0.25 / 3 * want.mean[i];
    new_var[i % 5] += 0.25 / 3 * want.variance[i] * 20 / 19;
  }
  EXPECT_TRUE(all_close(mean, new_mean, 1e-5));
  EXPECT_TRUE(all_close(var, new_var, 1e-5));
  {
    const NoGrad off;
    result().wait();
  }
  EXPECT_TRUE(all_close(mean, new_mean, 1e-5));
}

TEST_P(GroupNormTest, half_precision_is_computed_in_single) {
  const Array narrow = astype(real_array(random_values(2 * 9 * 4), {2, 9, 4}, f32), bf16);
  const Array y = group_norm(narrow, 2, ones({4}));
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_TRUE(all_close(y, group_norm(astype(narrow, f32), 2).to_vector<double>(), 0x1p-8));
}

TEST_P(GroupNormTest, empty_arrays_have_zero_gradients) {
  const Array inputs[] = {zeros({0, 5, 4}), ones({4}), zeros({4})};
  const auto d = gradients(sum(group_norm(inputs[0], 2, inputs[1], inputs[2])), inputs);
  EXPECT_EQ(d[0].shape(), Shape({0, 5, 4}));
  EXPECT_TRUE(all_close(d[1], std::vector<double>(4, 0.0), 0));
  EXPECT_EQ(group_norm(zeros({3, 0, 2}), 1).wait().size(), 0);
  EXPECT_EQ(instance_norm(zeros({3, 4, 0})).wait().size(), 0);
}

TEST_P(GroupNormTest, wrong_arguments_are_named) {
  const Array src = zeros({2, 4, 6});
  EXPECT_ERROR(group_norm(src, 4), ArgumentError,
               "group_norm: groups must divide the channels, got 4, src is f32 [2, 4, 6]");
  EXPECT_ERROR(group_norm(src, 0), ArgumentError,
               "group_norm: groups must divide the channels, got 0, src is f32 [2, 4, 6]");
  EXPECT_ERROR(group_norm(src, 2, zeros({4})), ArgumentError,
               "group_norm: each channel of src f32 [2, 4, 6] needs one value, of f32, scale is f32 [4]");
  EXPECT_ERROR(group_norm(zeros({6}), 2), ArgumentError,
               "group_norm: src must be floating [N, ..., C] with channels in its last axis, src is f32 [6]");
  EXPECT_ERROR(instance_norm(zeros({2, 6})), ArgumentError,
               "instance_norm: the variance needs at least two values per sample and channel, src is f32 [2, 6]");
  EXPECT_ERROR(instance_norm(src, {}, {}, cell(zeros({6}), "mean")), ArgumentError,
               "instance_norm: running_mean and running_var come together, running_mean is f32 [6], running_var is an "
               "empty handle");
  EXPECT_ERROR(instance_norm(src, {}, {}, zeros({6}), zeros({6})), ArgumentError,
               "instance_norm: running statistics are overwritten, so they must be cells, running_mean is f32 [6]");
}

class SmallShapesGroupNormTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesGroupNormTest);

TEST_P(SmallShapesGroupNormTest, forward_and_backward) {
  run([](std::span<const Array> x) { return group_norm(x[0], 2, x[1], x[2]); }, {{3, 7, 5, 6}, {6}, {6}});
  run([](std::span<const Array> x) { return group_norm(x[0], 1); }, {{2, 3, 19}});
  const Array mean = cell(zeros({7}), "mean"), variance = cell(ones({7}), "variance");
  run([&](std::span<const Array> x) { return instance_norm(x[0], x[1], {}, mean, variance); }, {{2, 11, 7}, {7}});
}

}  // namespace
}  // namespace samebytes::testing
