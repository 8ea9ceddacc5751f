#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/losses.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class Softmax : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Softmax);

const std::vector<Shape> kShapes{{1, 1},   {64, 10}, {7, 16},   {5, 17},   {3, 101},
                                 {1, 257}, {67, 2},  {2, 5003}, {2, 50257}};

TEST_P(Softmax, agrees_with_the_reference_on_rows_of_any_length) {
  for (const Shape& shape : kShapes) {
    const auto values = random_values(shape.size(), 3, -8, 8);
    for (Dtype dtype : real_dtypes()) {
      const Array a = real_array(values, shape, dtype);
      const double tolerance = 8 * sum_tolerance(dtype, shape[1]);  // the rounding of x grows with |x| <= 8
      EXPECT_TRUE(all_close(softmax(a), reference::softmax(values, shape[0], shape[1]), tolerance))
          << shape.to_string();
      EXPECT_TRUE(all_close(log_softmax(a), reference::log_softmax(values, shape[0], shape[1]), tolerance))
          << shape.to_string();
    }
  }
}

TEST_P(Softmax, rows_sum_to_one) {
  for (const Shape& shape : kShapes) {
    const Array a = real_array(random_values(shape.size(), 4, -20, 20), shape, f32);
    EXPECT_TRUE(all_close(sum(softmax(a), {1}), std::vector<double>(static_cast<std::size_t>(shape[0]), 1.0),
                          sum_tolerance(f32, shape[1])))
        << shape.to_string();
  }
}

TEST_P(Softmax, large_values_do_not_overflow) {
  const Array a = array({1e30f, -1e30f, 1e30f, -200.0f, 0.0f, 200.0f}, {2, 3});
  EXPECT_TRUE(all_close(softmax(a), std::vector<double>{0.5, 0, 0.5, 0, 0, 1}, sum_tolerance(f32, 3)));
  EXPECT_TRUE(all_close(slice(log_softmax(a), 0, 1, 2), std::vector<double>{-400, -200, 0}, sum_tolerance(f32, 3)));
}

TEST_P(Softmax, nan_and_rows_without_a_finite_value_give_nan) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<double> y =
      softmax(array({0.0f, NAN, 1.0f, -inf, -inf, -inf, 0.0f, -inf, 0.0f}, {3, 3})).to_vector<double>();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
  EXPECT_EQ(y[6], 0.5);
  EXPECT_EQ(y[7], 0);
}

TEST_P(Softmax, one_bad_row_of_many_short_ones_spoils_no_other) {
  const Shape shape{37, 10};
  std::vector<double> values = random_values(shape.size(), 5, -4, 4);
  const std::vector<double> want = reference::softmax(values, 37, 10);
  values[43] = NAN;
  const std::vector<double> y = softmax(real_array(values, shape, f32)).to_vector<double>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (i / 10 == 4)
      EXPECT_TRUE(std::isnan(y[i])) << i;
    else
      EXPECT_NEAR(y[i], want[i], 8 * sum_tolerance(f32, 10)) << i;
  }
}

TEST_P(Softmax, gradients_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  for (const Shape& shape : {Shape{3, 10}, Shape{2, 3, 5}, Shape{1, 37}, Shape{4, 1}}) {
    EXPECT_TRUE(check_gradients([](auto x) { return softmax(x[0]); }, {random_input("src", shape, 2, -2, 2)}));
    EXPECT_TRUE(check_gradients([](auto x) { return log_softmax(x[0]); }, {random_input("src", shape, 2, -2, 2)}));
  }
}

TEST_P(Softmax, gradients_of_long_rows_and_of_many_short_ones_agree_with_their_formulas) {
  for (const Shape& shape : {Shape{3, 2053}, Shape{37, 10}}) {
    const auto n = static_cast<std::size_t>(shape[1]);
    const auto values = random_values(shape.size(), 6, -4, 4), weights = random_values(shape.size(), 7);
    const std::vector<double> p = reference::softmax(values, shape[0], shape[1]);
    std::vector<double> want(p.size()), want_of_log(p.size());
    for (std::size_t r = 0; r < p.size(); r += n) {
      double dot = 0, total = 0;
      for (std::size_t c = r; c < r + n; ++c) {
        dot += p[c] * weights[c];
        total += weights[c];
      }
      for (std::size_t c = r; c < r + n; ++c) {
        want[c] = p[c] * (weights[c] - dot);
        want_of_log[c] = weights[c] - p[c] * total;
      }
    }
    const std::vector<Array> wrt{real_array(values, shape, f32)};
    const Array dy = real_array(weights, shape, f32);
    const double tolerance = sum_tolerance(f32, shape[1]);
    EXPECT_TRUE(all_close(gradients(sum(softmax(wrt[0]) * dy), wrt)[0], want, tolerance));
    EXPECT_TRUE(all_close(gradients(sum(log_softmax(wrt[0]) * dy), wrt)[0], want_of_log, 8 * tolerance));
  }
}

TEST_P(Softmax, sixteen_bit_arrays_stay_sixteen_bit) {
  const Array y = softmax(astype(array({0.0f, 0.0f}, {1, 2}), bf16));
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0.5f, 0.5f}));
}

TEST_P(Softmax, empty_arrays_stay_empty) {
  EXPECT_EQ(softmax(empty({0, 5})).to_vector<float>().size(), 0u);
  EXPECT_EQ(log_softmax(empty({5, 0})).shape(), (Shape{5, 0}));
}

TEST_P(Softmax, wrong_arguments_are_refused) {
  EXPECT_ERROR((softmax(full({2, 3}, 1, i32))), ArgumentError, "softmax: needs a floating array, src is i32 [2, 3]");
  EXPECT_ERROR((log_softmax(full({}, 1))), ArgumentError, "log_softmax: needs at least one axis, src is f32 []");
}

}  // namespace
}  // namespace samebytes::testing
