#include "reference/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

class Reduce : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Reduce);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Array sum_over(const Array& a, const std::vector<int>& axes, bool keep = false) {
  return sum(a, std::span<const int>(axes), keep);
}

TEST_P(Reduce, sums_agree_with_the_reference_over_every_set_of_axes) {
  const Shape shape{3, 5, 1, 7};
  const auto values = random_values(shape.size());
  for (Dtype dtype : real_dtypes()) {
    const Array a = real_array(values, shape, dtype);
    for (int mask = 1; mask < 16; ++mask) {
      std::vector<int> axes;
      for (int i = 0; i < 4; ++i)
        if (mask >> i & 1) axes.push_back(i % 2 == 0 ? i : i - 4);
      EXPECT_TRUE(all_close(sum_over(a, axes), reference::reduce(values, shape, axes, reference::Reduce::sum),
                            sum_tolerance(dtype, shape.size())))
          << "mask " << mask;
    }
  }
}

TEST_P(Reduce, rows_and_columns_of_odd_sizes_agree_with_the_reference) {
  SAMEBYTES_SKIP_QUIRK(private_arrays_lose_lanes);
  const std::vector<Shape> shapes{{1, 1},   {1, 17},   {7, 10},   {64, 10},  {13, 64},   {101, 31},  {37, 128},
                                  {5, 257}, {3, 2053}, {2053, 3}, {300, 65}, {17, 1031}, {2, 40009}, {40009, 2}};
  for (const Shape& shape : shapes) {
    const auto values = random_values(shape.size(), 3);
    for (Dtype dtype : real_dtypes()) {
      const Array a = real_array(values, shape, dtype);
      for (int axis : {0, 1}) {
        const double tolerance = sum_tolerance(dtype, shape[axis]);
        EXPECT_TRUE(
            all_close(sum(a, {axis}), reference::reduce(values, shape, {axis}, reference::Reduce::sum), tolerance))
            << shape.to_string() << " sum over " << axis;
        EXPECT_TRUE(
            all_close(mean(a, {axis}), reference::reduce(values, shape, {axis}, reference::Reduce::mean), tolerance))
            << shape.to_string() << " mean over " << axis;
        const double rounding = sum_tolerance(dtype, 0);  // of the values themselves
        EXPECT_TRUE(
            all_close(max(a, {axis}), reference::reduce(values, shape, {axis}, reference::Reduce::max), rounding))
            << shape.to_string() << " max over " << axis;
        EXPECT_TRUE(
            all_close(min(a, {axis}), reference::reduce(values, shape, {axis}, reference::Reduce::min), rounding))
            << shape.to_string() << " min over " << axis;
      }
    }
  }
}

TEST_P(Reduce, middle_axes_agree_with_the_reference) {
  SAMEBYTES_SKIP_QUIRK(private_arrays_lose_lanes);
  for (const Shape& shape : {Shape{4, 49, 33}, Shape{70, 5, 3}, Shape{2, 700, 16}, Shape{3, 2, 1500}}) {
    const auto values = random_values(shape.size(), 5);
    const Array a = real_array(values, shape, f32);
    EXPECT_TRUE(all_close(sum(a, {1}), reference::reduce(values, shape, {1}, reference::Reduce::sum),
                          sum_tolerance(f32, shape[1])))
        << shape.to_string();
    EXPECT_TRUE(
        all_close(min(a, {1}), reference::reduce(values, shape, {1}, reference::Reduce::min), sum_tolerance(f32, 0)))
        << shape.to_string();
    EXPECT_TRUE(all_close(sum(a, {0, 2}), reference::reduce(values, shape, {0, 2}, reference::Reduce::sum),
                          sum_tolerance(f32, shape[0] * shape[2])))
        << shape.to_string();
  }
}

TEST_P(Reduce, long_sums_keep_their_digits) {
  const std::int64_t n = 3000017;
  const Array a = full({n}, 0.1);
  const double want = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(sum(a).value(), want, want * sum_tolerance(f32, 64));
  EXPECT_NEAR(mean(a).value(), 0.1, sum_tolerance(f32, 64));
  EXPECT_NEAR(sum(reshape(a, {n, 1}), {0}).value(), want, want * sum_tolerance(f32, 64));
  const std::vector<double> columns = sum(full({200003, 3}, 0.1), {0}).to_vector<double>();
  for (double column : columns) EXPECT_NEAR(column, 20000.3, 20000.3 * sum_tolerance(f32, 64));
}

TEST_P(Reduce, whole_numbers_are_summed_exactly) {
  const std::vector<std::int32_t> values{7, -3, 2000000000, 5, 11, -13};
  const Array a = array(std::span<const std::int32_t>(values), {2, 3});
  EXPECT_EQ(sum(a).to_vector<std::int32_t>(), (std::vector<std::int32_t>{2000000007}));
  EXPECT_EQ(sum(a, {0}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{12, 8, 1999999987}));
  EXPECT_EQ(max(a, {1}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{2000000000, 11}));
  EXPECT_EQ(min(a, {1}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{-3, -13}));
  EXPECT_EQ(sum(a).dtype(), i32);
  EXPECT_EQ(mean(a).dtype(), f32);
  const std::vector<std::uint8_t> bytes{200, 100, 250};
  const Array b = array(std::span<const std::uint8_t>(bytes), {3});
  EXPECT_EQ(sum(b).to_vector<std::int32_t>(), (std::vector<std::int32_t>{550}));
  EXPECT_EQ(max(b).dtype(), u8);
  EXPECT_EQ(max(b).value(), 250);
  EXPECT_EQ(sum(equal(b, b)).value(), 3);
}

TEST_P(Reduce, keep_leaves_axes_of_size_one) {
  const Array a = ones({2, 3, 4});
  EXPECT_EQ(sum(a, {1}, true).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(sum(a, {-1, 0}).shape(), (Shape{3}));
  EXPECT_EQ(sum(a, {}, true).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(sum(a).shape(), (Shape{}));
}

TEST_P(Reduce, empty_arrays_reduce_as_in_numpy) {
  const Array a = empty({0, 3});
  EXPECT_EQ(sum(a).value(), 0);
  EXPECT_EQ(sum(a, {0}).to_vector<double>(), (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(std::isnan(mean(a).value()));
  EXPECT_EQ(max(a, {1}).shape(), (Shape{0}));
  EXPECT_ERROR((max(a)), ArgumentError, "max: an empty array has none, src is f32 [0, 3]");
  EXPECT_ERROR((min(a, {0})), ArgumentError, "min: an empty array has none, src is f32 [0, 3]");
  EXPECT_ERROR((argmax(a, 0)), ArgumentError, "argmax: an empty axis has none, src is f32 [0, 3]");
}

TEST_P(Reduce, nan_wins_in_max_min_and_argmax) {
  for (std::int64_t n : {3, 40, 70}) {
    auto values = random_values(n);
    values[static_cast<std::size_t>(n - 1)] = kNan;
    const Array row = real_array(values, {1, n}, f32), column = real_array(values, {n, 1}, f32);
    EXPECT_TRUE(std::isnan(max(row, {1}).value()));
    EXPECT_TRUE(std::isnan(min(row, {1}).value()));
    EXPECT_TRUE(std::isnan(max(broadcast_to(column, {n, 5}), {0}).to_vector<double>()[4]));
    EXPECT_EQ(argmax(row).value(), static_cast<double>(n - 1));
  }
}

TEST_P(Reduce, all_and_any_give_truths_of_every_dtype) {
  using Truths = std::vector<std::uint8_t>;
  for (Dtype dtype : {f32, f16, i32, u8, bool_}) {
    const Array a = astype(array({1, 0, 1, 1, 1, 1, 0, 0, 0}, {3, 3}), dtype);
    EXPECT_EQ(all(a).dtype(), bool_);
    EXPECT_EQ(any(a, {1}).dtype(), bool_);
    EXPECT_EQ(all(a, {1}).to_vector<std::uint8_t>(), (Truths{0, 1, 0})) << name_of(dtype);
    EXPECT_EQ(any(a, {-1}).to_vector<std::uint8_t>(), (Truths{1, 1, 0})) << name_of(dtype);
    EXPECT_EQ(all(a, {0}).to_vector<std::uint8_t>(), (Truths{0, 0, 0})) << name_of(dtype);
    EXPECT_EQ(all(a).value(), 0);
    EXPECT_EQ(any(a).value(), 1);
  }
  EXPECT_EQ(all(array({0.5f, -2.0f, static_cast<float>(kNan)})).value(), 1);
  EXPECT_EQ(all(ones({2, 3, 4}), {0, 2}, true).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(any(zeros({70000})).value(), 0);
  EXPECT_EQ(all(empty({0, 3})).value(), 1);
  EXPECT_EQ(any(empty({0, 3}), {0}).to_vector<std::uint8_t>(), (Truths{0, 0, 0}));
  EXPECT_ERROR((all(ones({2}), {1})), ArgumentError, "all: axis 1 is out of range for src f32 [2]");
  EXPECT_ERROR((any(Array())), ArgumentError, "any: needs an array, src is an empty handle");
}

TEST_P(Reduce, all_of_equal_is_how_a_condition_asks) {
  const Array a = arange(0, 6), b = a * 1.0, c = where(equal(a, array({3})), a + 1.0, a);
  EXPECT_TRUE(all(equal(a, b)).value());
  EXPECT_FALSE(all(equal(a, c)).value());
  EXPECT_TRUE(any(not_equal(a, c)).value());
}

TEST_P(Reduce, argmax_gives_the_first_of_equal_values) {
  for (const Shape& shape : {Shape{7, 10}, Shape{1, 1}, Shape{3, 257}, Shape{5, 64, 3}, Shape{4, 3, 33}}) {
    auto values = random_values(shape.size(), 9);
    for (double& value : values) value = std::floor(value * 4);
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (Dtype dtype : real_dtypes())
        EXPECT_TRUE(
            all_close(argmax(real_array(values, shape, dtype), axis), reference::argmax(values, shape, axis), 0))
            << shape.to_string() << " axis " << axis;
    EXPECT_TRUE(all_close(argmax(astype(real_array(values, shape, f32), i32)),
                          reference::argmax(values, shape, shape.rank() - 1), 0));
  }
  EXPECT_EQ(argmax(ones({2, 3})).dtype(), i32);
}

TEST_P(Reduce, sixteen_bit_arrays_are_summed_in_f32) {
  const Array a = astype(full({4096}, 1.0), f16);
  EXPECT_EQ(sum(a).dtype(), f16);
  EXPECT_EQ(sum(a).value(), 4096);
}

TEST_P(Reduce, sum_to_undoes_broadcasting) {
  const auto values = random_values(60);
  const Array a = real_array(values, {3, 4, 5}, f32);
  EXPECT_EQ(sum_to(a, {4, 1}).shape(), (Shape{4, 1}));
  EXPECT_TRUE(all_close(sum_to(a, {4, 1}), reference::reduce(values, {3, 4, 5}, {0, 2}, reference::Reduce::sum),
                        sum_tolerance(f32, 15)));
  EXPECT_TRUE(all_close(sum_to(a, {}), reference::reduce(values, {3, 4, 5}, {}, reference::Reduce::sum),
                        sum_tolerance(f32, 60)));
  EXPECT_ERROR((sum_to(a, {4, 3})), ArgumentError, "sum_to: shape [4, 3] does not broadcast to src f32 [3, 4, 5]");
}

TEST_P(Reduce, sums_of_squares_agree_with_the_reference) {
  for (const std::int64_t n : {0, 1, 2, 17, 1031, 40009, 100003}) {
    const auto values = random_values(n, 5);
    double want = 0;
    for (const double v : values) want += v * v;
    for (const Dtype dtype : real_dtypes())
      EXPECT_TRUE(all_close(sum_of_squares(real_array(values, {n}, dtype)), std::vector<double>{want},
                            sum_tolerance(dtype, n + 1)))
          << n;
  }
  EXPECT_TRUE(all_close(sum_of_squares(astype(array({3.0f, -4.0f}), f16)), std::vector<double>{25}, 1e-6));
  EXPECT_EQ(sum_of_squares(ones({3, 4})).shape(), (Shape{}));
  EXPECT_ERROR((sum_of_squares(array(std::vector<std::int32_t>{1}, {1}))), ArgumentError,
               "sum_of_squares: needs a floating array, src is i32 [1]");
}

TEST_P(Reduce, gradients_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput src = random_input("src", {3, 4, 5});
  EXPECT_TRUE(check_gradients([](auto x) { return sum(x[0], {0, 2}); }, {src}));
  EXPECT_TRUE(check_gradients([](auto x) { return mean(x[0], {1}, true); }, {src}));
  EXPECT_TRUE(check_gradients([](auto x) { return mean(square(x[0])); }, {src}));
  EXPECT_TRUE(check_gradients([](auto x) { return sum_of_squares(x[0]); }, {src}));
  EXPECT_TRUE(check_gradients([](auto x) { return max(x[0], {0, 2}); }, {src}));
  EXPECT_TRUE(check_gradients([](auto x) { return min(x[0], {1}); }, {src}));
  EXPECT_TRUE(check_gradients([](auto x) { return sum_to(x[0], {4, 1}); }, {src}));
}

TEST_P(Reduce, ties_share_the_gradient_of_max_equally) {
  const Array a = array({1.0f, 3.0f, 3.0f, 2.0f, 3.0f, 0.0f}, {2, 3});
  const std::vector<Array> wrt{a};
  EXPECT_TRUE(all_close(gradients(max(a), wrt)[0], std::vector<double>{0, 1.0 / 3, 1.0 / 3, 0, 1.0 / 3, 0},
                        sum_tolerance(f32, 3)));
}

TEST_P(Reduce, views_are_reduced_as_what_they_show) {
  const auto values = random_values(35);
  const Array a = transpose(real_array(values, {5, 7}, f32));
  EXPECT_TRUE(
      all_close(sum(a, {0}), reference::reduce(values, {5, 7}, {1}, reference::Reduce::sum), sum_tolerance(f32, 7)));
  EXPECT_NEAR(sum(broadcast_to(array({2.0f}), {1000})).value(), 2000, 0);
}

TEST_P(Reduce, the_same_sum_gives_the_same_bytes) {
  const Array a = uniform({1000003}, -1, 1, f32, {.seed = 1, .counter = 2});
  const Array b = reshape(slice(a, 0, 0, 1000000), {1000, 1000});
  EXPECT_TRUE(same_bytes(sum(a), sum(a)));
  EXPECT_TRUE(same_bytes(sum(b, {0}), sum(b, {0})));
}

TEST_P(Reduce, wrong_axes_are_refused) {
  const Array a = ones({2, 3});
  EXPECT_ERROR((sum(a, {2})), ArgumentError, "sum: axis 2 is out of range for src f32 [2, 3]");
  EXPECT_ERROR((mean(a, {0, -2})), ArgumentError, "mean: axis -2 is named twice, src is f32 [2, 3]");
  EXPECT_ERROR((argmax(a, -3)), ArgumentError, "argmax: axis -3 is out of range for src f32 [2, 3]");
}

}  // namespace
}  // namespace samebytes::testing
