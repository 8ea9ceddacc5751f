#include <cmath>
#include <limits>

#include "reference/norms.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class BatchNorm : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(BatchNorm);

struct Case {
  Shape shape;
  double mean;
};

// Powers of two, primes, one channel, rows that end inside a vector, more channels than one block, more rows than one
// part.
const Case kCases[] = {{{2, 1}, 0},    {{64, 16}, 1},  {{3, 5, 7, 3}, 0},  {{97, 1}, 0.5},
                       {{2, 131}, 0},  {{257, 10}, 3}, {{4, 8, 8, 32}, 0}, {{2311, 17}, -2},
                       {{3, 1023}, 0}, {{9000, 5}, 1}, {{70000, 1}, 0}};

constexpr std::int64_t kMostSimulated = 4096;  // elements

std::vector<double> values_around(const Shape& shape, double mean, std::uint64_t seed) {
  return random_values(shape.size(), seed, mean - 2, mean + 2);
}

// f32 rounds its inputs; the reference gets the rounded ones.
std::vector<double> rounded(std::vector<double> values, Dtype dtype) {
  if (dtype == f32)
    for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  return values;
}

TEST_P(BatchNorm, training_gives_the_reference) {
  for (Dtype dtype : real_dtypes())
    for (const Case& c : kCases) {
      if (is_simulated() && c.shape.size() > kMostSimulated) continue;
      SCOPED_TRACE(c.shape.to_string());
      const std::int64_t channels = c.shape.back(), rows = c.shape.rows();
      const auto x = rounded(values_around(c.shape, c.mean, 1), dtype);
      const auto scale = rounded(random_values(channels, 2, 0.5, 2), dtype),
                 shift = rounded(random_values(channels, 3), dtype);
      const Array running_mean = cell(real_array(std::vector<double>(channels, 0.5), {channels}, dtype), "mean");
      const Array running_var = cell(real_array(std::vector<double>(channels, 2.0), {channels}, dtype), "var");
      const BatchNormOptions options{.eps = 0x1p-10f, .momentum = 0.25f};
      const Array y = batch_norm_train(real_array(x, c.shape, dtype), real_array(scale, {channels}, dtype),
                                       real_array(shift, {channels}, dtype), running_mean, running_var, options);
      const auto moments = reference::column_moments(x, rows, channels);
      const double tolerance = sum_tolerance(dtype, rows);
      EXPECT_TRUE(
          all_close(y, reference::batch_norm(x, rows, channels, moments, scale, shift, 0x1p-10), 4 * tolerance));
      std::vector<double> want_mean(channels), want_var(channels);
      for (std::int64_t j = 0; j < channels; ++j) {
        want_mean[j] = 0.75 * 0.5 + 0.25 * moments.mean[j];
        want_var[j] = 0.75 * 2.0 + 0.25 * moments.variance[j] * rows / (rows - 1);
      }
      EXPECT_TRUE(all_close(running_mean, want_mean, tolerance));
      EXPECT_TRUE(all_close(running_var, want_var, tolerance));
    }
}

TEST_P(BatchNorm, gradients_give_the_reference) {
  for (Dtype dtype : real_dtypes())
    for (const Case& c : kCases) {
      if (is_simulated() && c.shape.size() > kMostSimulated) continue;
      SCOPED_TRACE(c.shape.to_string());
      const std::int64_t channels = c.shape.back(), rows = c.shape.rows();
      const auto x = rounded(values_around(c.shape, c.mean, 1), dtype);
      const auto dy = rounded(random_values(c.shape.size(), 5), dtype);
      const auto scale = rounded(random_values(channels, 2, 0.5, 2), dtype);
      const Array inputs[] = {real_array(x, c.shape, dtype), real_array(scale, {channels}, dtype),
                              real_array(std::vector<double>(channels, 0.0), {channels}, dtype)};
      const Array running_mean = cell(zeros({channels}, dtype), "mean"),
                  running_var = cell(ones({channels}, dtype), "var");
      const Array y = batch_norm_train(inputs[0], inputs[1], inputs[2], running_mean, running_var, {.eps = 0x1p-10f});
      const auto d = gradients(sum(y * real_array(dy, c.shape, dtype)), inputs);
      const auto want = reference::batch_norm_gradients(x, dy, rows, channels, scale, 0x1p-10);
      // With two values per channel dx is the small difference of numbers of size 1/sqrt(eps).
      const double tolerance = sum_tolerance(dtype, rows) * (rows < 8 ? 4096 : 8);
      EXPECT_TRUE(all_close(d[0], want.dx, tolerance));
      EXPECT_TRUE(all_close(d[1], want.dscale, 8 * sum_tolerance(dtype, rows) * std::sqrt(static_cast<double>(rows))));
      EXPECT_TRUE(all_close(d[2], want.dshift, 8 * sum_tolerance(dtype, rows) * std::sqrt(static_cast<double>(rows))));
    }
}

// Behind a ReLU the sums find the mask themselves; behind a residual and a ReLU they are given the masked gradient.
TEST_P(BatchNorm, gradients_through_relu_and_residual_give_the_reference) {
  for (Dtype dtype : real_dtypes())
    for (const Shape& shape : {Shape{257, 10}, Shape{3, 37}}) {
      const std::int64_t channels = shape.back(), rows = shape.rows();
      const auto x = rounded(values_around(shape, 1, 1), dtype), r = rounded(random_values(shape.size(), 8), dtype);
      const auto dy = rounded(random_values(shape.size(), 5), dtype);
      const auto scale = rounded(random_values(channels, 2, 0.5, 2), dtype),
                 shift = rounded(random_values(channels, 3), dtype);
      const Array inputs[] = {real_array(x, shape, dtype), real_array(scale, {channels}, dtype),
                              real_array(shift, {channels}, dtype), real_array(r, shape, dtype)};
      for (const bool with_residual : {false, true}) {
        SCOPED_TRACE(shape.to_string() + (with_residual ? " with a residual" : ""));
        const Array y = batch_norm_train(inputs[0], inputs[1], inputs[2], cell(zeros({channels}, dtype), "mean"),
                                         cell(ones({channels}, dtype), "var"), {.eps = 0x1p-10f});
        const Array end = relu(with_residual ? y + inputs[3] : y);
        const auto d = gradients(sum(end * real_array(dy, shape, dtype)), inputs, {.allow_unused = true});
        auto open = reference::batch_norm(x, rows, channels, reference::column_moments(x, rows, channels), scale, shift,
                                          0x1p-10);
        auto masked = dy;
        for (std::size_t i = 0; i < masked.size(); ++i)
          if (open[i] + (with_residual ? r[i] : 0) <= 0) masked[i] = 0;
        const auto want = reference::batch_norm_gradients(x, masked, rows, channels, scale, 0x1p-10);
        const double tolerance = sum_tolerance(dtype, rows) * (rows < 8 ? 4096 : 8);
        EXPECT_TRUE(all_close(d[0], want.dx, tolerance));
        EXPECT_TRUE(all_close(d[1], want.dscale, 8 * sum_tolerance(dtype, rows) * std::sqrt(double(rows))));
        EXPECT_TRUE(all_close(d[2], want.dshift, 8 * sum_tolerance(dtype, rows) * std::sqrt(double(rows))));
        if (with_residual) {
          EXPECT_TRUE(all_close(d[3], masked, 0));
        }
      }
    }
}

TEST_P(BatchNorm, one_launch_passes_over_the_elements_with_residual_and_relu) {
  const Array x = real_array(random_values(320, 1), {64, 5}, f32), r = real_array(random_values(320, 2), {64, 5}, f32);
  const Array scale = ones({5}), shift = zeros({5}), mean = cell(zeros({5}), "mean"), var = cell(ones({5}), "var");
  eval({x, r, scale, shift, mean, var});
  const auto before = engine().plans().launches;
  relu(batch_norm_train(x, scale, shift, mean, var) + r).eval();
  EXPECT_EQ(engine().plans().launches - before, 3u) << "statistics by parts, their merge, the elements";
}

TEST_P(BatchNorm, gradients_agree_with_central_differences) {
  SAMEBYTES_NEEDS_F64();
  for (const Shape& shape : {Shape{7, 3}, Shape{2, 3, 2, 5}, Shape{4, 1}}) {
    const std::int64_t c = shape.back();
    EXPECT_TRUE(check_gradients(
        [c](std::span<const Array> x) {
          return batch_norm_train(x[0], x[1], x[2], cell(zeros({c}, f64), "mean"), cell(ones({c}, f64), "var"));
        },
        {random_input("src", shape), random_input("scale", {c}, 2, 0.5, 2), random_input("shift", {c})}));
    const std::vector<double> mean = random_values(c, 9), var = random_values(c, 10, 0.5, 2);
    EXPECT_TRUE(check_gradients(
        [&](std::span<const Array> x) {
          return batch_norm_eval(x[0], x[1], x[2], real_array(mean, {c}, f64), real_array(var, {c}, f64));
        },
        {random_input("src", shape), random_input("scale", {c}, 2, 0.5, 2), random_input("shift", {c})}));
  }
}

TEST_P(BatchNorm, a_large_mean_costs_no_accuracy_of_the_variance) {
  for (const Case& c : {Case{{40000, 3}, 1e4}, Case{{4096, 16}, -1e4}, Case{{100, 37}, 1e4}}) {
    if (is_simulated() && c.shape.size() > kMostSimulated) continue;
    const std::int64_t channels = c.shape.back(), rows = c.shape.rows();
    const auto x = rounded(values_around(c.shape, c.mean, 7), f32);
    const Array running_mean = cell(zeros({channels}), "mean"), running_var = cell(zeros({channels}), "var");
    batch_norm_train(real_array(x, c.shape, f32), ones({channels}), zeros({channels}), running_mean, running_var,
                     {.momentum = 1.0f})
        .wait();
    auto moments = reference::column_moments(x, rows, channels);
    for (double& v : moments.variance) v *= static_cast<double>(rows) / (rows - 1);
    EXPECT_TRUE(all_close(running_mean, moments.mean, 1e-7));  // half a unit in the last place, and a little
    EXPECT_TRUE(all_close(running_var, moments.variance, sum_tolerance(f32, rows)));
  }
}

TEST_P(BatchNorm, an_outlier_in_the_first_row_does_not_spoil_the_statistics) {
  auto x = rounded(random_values(2000 * 2, 3), f32);
  x[0] = 1e4;
  const Array running_mean = cell(zeros({2}), "mean"), running_var = cell(zeros({2}), "var");
  batch_norm_train(real_array(x, {2000, 2}, f32), ones({2}), zeros({2}), running_mean, running_var, {.momentum = 1.0f})
      .wait();
  auto moments = reference::column_moments(x, 2000, 2);
  for (double& v : moments.variance) v *= 2000.0 / 1999.0;
  // Against the standard deviation, which the outlier makes large.
  EXPECT_TRUE(all_close(running_mean, moments.mean, sum_tolerance(f32, 2000) * std::sqrt(moments.variance[0])));
  EXPECT_TRUE(all_close(running_var, moments.variance, sum_tolerance(f32, 2000)));
}

TEST_P(BatchNorm, the_running_statistics_stay_without_gradients) {
  const Array running_mean = cell(zeros({3}), "mean"), running_var = cell(ones({3}), "var");
  const Array x = real_array(random_values(12, 1), {4, 3}, f32);
  Array y;
  {
    const NoGrad no_grad;
    y = batch_norm_train(x, ones({3}), zeros({3}), running_mean, running_var);
    y.wait();
  }
  EXPECT_TRUE(all_close(running_mean, std::vector<double>{0, 0, 0}, 0));
  EXPECT_TRUE(all_close(running_var, std::vector<double>{1, 1, 1}, 0));
  EXPECT_TRUE(same_bytes(y, batch_norm_train(x, ones({3}), zeros({3}), running_mean, running_var)));
}

TEST_P(BatchNorm, evaluation_uses_the_running_statistics) {
  for (Dtype dtype : real_dtypes()) {
    const Shape shape{3, 5, 7};
    const auto x = rounded(random_values(shape.size(), 1), dtype);
    const auto scale = rounded(random_values(7, 2), dtype), shift = rounded(random_values(7, 3), dtype);
    const auto mean = rounded(random_values(7, 4), dtype), var = rounded(random_values(7, 5, 0.1, 3), dtype);
    const Array y =
        batch_norm_eval(real_array(x, shape, dtype), real_array(scale, {7}, dtype), real_array(shift, {7}, dtype),
                        real_array(mean, {7}, dtype), real_array(var, {7}, dtype), {.eps = 0x1p-10f});
    EXPECT_TRUE(
        all_close(y, reference::batch_norm(x, 15, 7, {mean, var}, scale, shift, 0x1p-10), sum_tolerance(dtype, 1)));
  }
}

TEST_P(BatchNorm, without_gradients_the_norm_of_a_convolution_is_a_convolution) {
  for (const bool has_bias : {false, true}) {
    const Array x = real_array(random_values(2 * 7 * 5 * 4, 1), {2, 7, 5, 4}, f32);
    const Array weight = real_array(random_values(3 * 3 * 4 * 6, 2), {3, 3, 4, 6}, f32);
    const auto six = [](std::uint64_t seed, double low, double high) {
      return real_array(random_values(6, seed, low, high), {6}, f32);
    };
    const Array bias = has_bias ? six(3, -2, 2) : Array();
    const Array scale = six(4, -2, 2), shift = six(5, -1, 1), mean = six(6, -9, 9), var = six(7, 0.01, 4);
    const auto convolved = [&] {
      return conv2d(x, weight, bias, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1});
    };
    const auto norm = [&](const Array& y) { return batch_norm_eval(y, scale, shift, mean, var); };
    const auto plain = norm(convolved()).to_vector<double>();  // gradients are on
    const NoGrad no_grad;
    const Array held = convolved(), second = held;
    EXPECT_EQ(norm(held).to_vector<double>(), plain) << "somebody else reads the convolution itself";
    const auto folded = norm(convolved()).to_vector<double>();
    double different = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      // Sums of up to 36 in size and a mean of up to 9, times up to 20; a few roundings of that.
      EXPECT_NEAR(folded[i], plain[i], 400 * std::numeric_limits<float>::epsilon());
      different += folded[i] != plain[i];
    }
    EXPECT_GT(different, 0) << "not folded";
  }
}

TEST_P(BatchNorm, no_channels_and_no_gradient_of_src_are_fine) {
  const Array none = zeros({0});
  EXPECT_EQ(
      batch_norm_train(zeros({4, 0}), none, none, cell(zeros({0}), "mean"), cell(zeros({0}), "var")).wait().size(), 0);
  const Array x = real_array(random_values(20, 1), {4, 5}, f32), scale = ones({5}), shift = zeros({5});
  const Array y = batch_norm_train(x, scale, shift, cell(zeros({5}), "mean"), cell(ones({5}), "var"));
  const Array wrt[] = {shift};
  EXPECT_TRUE(all_close(gradients(sum(y), wrt)[0], std::vector<double>(5, 4.0), 0));
}

TEST_P(BatchNorm, wrong_arguments_are_named) {
  const Array x = zeros({4, 3}), c = zeros({3}), wrong = zeros({2});
  const Array running_mean = cell(zeros({3}), "mean"), running_var = cell(ones({3}), "var");
  EXPECT_THROW(batch_norm_train(x, wrong, c, running_mean, running_var), ArgumentError);
  EXPECT_THROW(batch_norm_train(x, c, zeros({3}, i32), running_mean, running_var), ArgumentError);
  EXPECT_THROW(batch_norm_train(x, c, c, c, running_var), ArgumentError) << "not a cell";
  EXPECT_THROW(batch_norm_train(zeros({1, 3}), c, c, running_mean, running_var), ArgumentError)
      << "one value per channel";
  EXPECT_THROW(batch_norm_train(zeros({4, 3}, i32), c, c, running_mean, running_var), ArgumentError);
  EXPECT_THROW(batch_norm_eval(x, c, c, wrong, running_var), ArgumentError);
  try {
    batch_norm_eval(x, c, wrong, running_mean, running_var);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(),
                 "batch_norm_eval: each channel of src f32 [4, 3] needs one value, of f32, shift is f32 [2]");
  }
}

}  // namespace
}  // namespace samebytes::testing
