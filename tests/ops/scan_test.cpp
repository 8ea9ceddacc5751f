// cumsum and cumprod against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "samebytes/ops/sorting.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class ScanTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ScanTest);

// The running sum (or product) of a dense array along an axis.
std::vector<double> running(std::vector<double> values, const Shape& shape, int axis, bool product = false) {
  std::int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  for (std::int64_t i = 0; i < shape.size(); ++i)
    if (i / inner % shape[axis] > 0) {
      const double before = values[static_cast<std::size_t>(i - inner)];
      double& value = values[static_cast<std::size_t>(i)];
      value = product ? before * value : before + value;
    }
  return values;
}

// Each addition rounds a partial sum, so the error goes with the largest of them.
double running_tolerance(Dtype dtype, std::int64_t n, const std::vector<double>& sums) {
  double largest = 1;
  for (const double sum : sums) largest = std::max(largest, std::abs(sum));
  return largest * sum_tolerance(dtype, n);
}

TEST_P(ScanTest, cumsum_adds_along_every_axis) {
  std::vector<Shape> shapes{{3, 5, 7}, {1}, {2, 1, 67}};
  if (!is_simulated()) shapes.insert(shapes.end(), {{2, 9001}, {5003, 3}, {1, 1 << 20}, {4100, 1025}});
  for (const Shape& shape : shapes)
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const Dtype dtype : real_dtypes()) {
        const auto values = random_values(shape.size());
        const Array y = cumsum(real_array(values, shape, dtype), axis - shape.rank());
        const std::vector<double> want = running(values, shape, axis);
        EXPECT_TRUE(all_close(y, want, running_tolerance(dtype, shape[axis], want)))
            << shape.to_string() << " " << axis << " " << name_of(dtype);
      }
}

TEST_P(ScanTest, gradient_of_a_long_cumsum_runs_from_the_end) {
  const std::int64_t n = is_simulated() ? 37 : 9001;
  const auto weights = random_values(2 * n, 4);
  for (const Shape& shape : {Shape{n, 2}, Shape{2, n}}) {
    const int axis = shape[0] == n ? 0 : 1;
    std::vector<double> want = weights;
    const std::int64_t inner = axis == 0 ? 2 : 1;
    for (std::int64_t i = 2 * n - 1; i >= 0; --i)
      if (i / inner % n < n - 1) want[static_cast<std::size_t>(i)] += want[static_cast<std::size_t>(i + inner)];
    const std::vector<Array> wrt{zeros(shape)};
    const Array dy = real_array(weights, shape, f32);
    EXPECT_TRUE(all_close(gradients(sum(cumsum(wrt[0], axis) * dy), wrt)[0], want, running_tolerance(f32, n, want)))
        << axis;
  }
}

TEST_P(ScanTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  for (const int axis : {0, 1}) {
    EXPECT_TRUE(check_gradients([&](auto x) { return cumsum(x[0], axis); }, {random_input("src", {4, 3})}));
    GradientInput input = random_input("src", {4, 3});
    input.values[4] = 0;
    EXPECT_TRUE(check_gradients([&](auto x) { return cumprod(x[0], axis); }, {input}));
    input.values[5] = input.values[7] = input.values[8] = 0;
    EXPECT_TRUE(check_gradients([&](auto x) { return cumprod(x[0], axis); }, {input}));
  }
}

TEST_P(ScanTest, cumprod_multiplies_along_every_axis) {
  const Shape shape{3, 5, 7};
  const auto values = random_values(105, 1, 0.5, 1.5);
  for (int axis = 0; axis < 3; ++axis)
    EXPECT_TRUE(all_close(cumprod(real_array(values, shape, f32), axis), running(values, shape, axis, true), 1e-5));
  EXPECT_EQ(cumprod(zeros({0, 3}), 0).shape(), (Shape{0, 3}));
}

// More lines than a vector and a group hold, with a rest; lines of several vectors, with a rest.
TEST_P(ScanTest, products_of_many_lines_and_their_gradients_agree_with_plain_loops) {
  std::vector<Shape> shapes{{37, 35}, {16, 16}, {2, 18, 19}, {33, 1}};
  if (!is_simulated()) shapes.insert(shapes.end(), {{20, 301}, {2, 3, 300}, {40, 2, 17}});
  for (const Shape& shape : shapes)
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const Dtype dtype = has_f64() ? f64 : f32;
      for (const Dtype type : {f32, dtype}) {
        std::vector<double> values = random_values(shape.size(), 2, 0.9, 1.1), dy = random_values(shape.size(), 5);
        for (std::size_t i = 7; i < values.size(); i += 61) values[i] = 0;
        for (double& v : values) v = static_cast<float>(v);
        const std::vector<double> products = running(values, shape, axis, true);
        std::int64_t inner = 1;
        for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
        std::vector<double> dx(values.size());
        for (std::int64_t i = 0; i < shape.size();
             ++i) {  // dx[d] = the sum over e >= d of dy[e] and all others up to e
          const std::int64_t d = i / inner % shape[axis];
          double product = d > 0 ? products[static_cast<std::size_t>(i - inner)] : 1;
          for (std::int64_t e = d; e < shape[axis]; ++e) {
            const auto at = static_cast<std::size_t>(i + (e - d) * inner);
            if (e > d) product *= values[at];
            dx[static_cast<std::size_t>(i)] += dy[at] * product;
          }
        }
        const std::vector<Array> a{real_array(values, shape, type)};
        const Array y = cumprod(a[0], axis);
        EXPECT_TRUE(all_close(y, products, 2e-5)) << shape.to_string() << " " << axis;
        EXPECT_TRUE(all_close(gradients(y, a, real_array(dy, shape, type))[0], dx, 1e-4))
            << shape.to_string() << " " << axis;
      }
    }
}

TEST_P(ScanTest, whole_numbers_and_sixteen_bits_are_summed) {
  const Array counts = array({2, 0, 1, 255}, {4});
  EXPECT_EQ(cumsum(astype(counts, u8), 0).dtype(), i32);
  EXPECT_EQ(cumsum(astype(counts, u8), 0).to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 2, 3, 258}));
  EXPECT_EQ(cumsum(greater(counts, counts * 0.5), 0).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 1, 2, 3}));
  EXPECT_EQ(cumsum(astype(counts, i32), 0).to_vector<std::int32_t>()[3], 258);
  EXPECT_TRUE(all_close(cumsum(astype(counts, f16), 0), std::vector<double>{2, 2, 3, 258}, 0));
  EXPECT_TRUE(all_close(cumprod(astype(counts, bf16), 0), std::vector<double>{2, 0, 0, 0}, 0));
  EXPECT_EQ(cumsum(zeros({3, 0}), 1).shape(), (Shape{3, 0}));
}

TEST_P(ScanTest, wrong_arguments_are_refused) {
  EXPECT_ERROR((cumsum(zeros({2, 3}), 2)), ArgumentError, "cumsum: axis 2 is out of range for src f32 [2, 3]");
  EXPECT_ERROR((cumprod(zeros({2}, i32), 0)), ArgumentError, "cumprod: needs a floating array, src is i32 [2]");
  EXPECT_THROW(cumsum(Array(), 0), ArgumentError);
}

class SmallShapesScanTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesScanTest);

TEST_P(SmallShapesScanTest, running_sums_and_products) {
  using In = std::span<const Array>;
  run([](In x) { return cumsum(x[0], 0) + cumsum(x[0], 1) + cumprod(x[0], 1); }, {{5, 19}});
  run([](In x) { return cumsum(x[0], 0); }, {{4111}});
}

}  // namespace
}  // namespace samebytes::testing
