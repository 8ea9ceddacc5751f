// sort, argsort and top_k against std::stable_sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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

class SortTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SortTest);

using Ints = std::vector<std::int32_t>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Few different values, so that many are equal; NaN, infinities and both zeros among them.
std::vector<double> values_with_ties(std::int64_t n) {
  std::vector<double> values = random_values(n, 8, -20, 20);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 3 == 0 ? std::round(values[i]) : values[i];
    if (i % 17 == 11) values[i] = kNan;
    if (i % 19 == 5) values[i] = i % 2 == 0 ? kInf : -kInf;
    if (i % 23 == 7) values[i] = i % 2 == 0 ? 0.0 : -0.0;
    values[i] = static_cast<float>(values[i]);
  }
  return values;
}

Ints sorted_places(std::span<const double> row, bool descending) {
  Ints places(row.size());
  std::iota(places.begin(), places.end(), 0);
  const auto less_than = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::stable_sort(places.begin(), places.end(), [&](int i, int j) {
    const double a = row[static_cast<std::size_t>(i)], b = row[static_cast<std::size_t>(j)];
    return descending ? less_than(b, a) : less_than(a, b);
  });
  return places;
}

TEST_P(SortTest, rows_are_sorted_stably_in_both_directions) {
  std::vector<Shape> shapes{{7, 1}, {3, 33}, {5, 2}, {2, 1500}};
  if (!is_simulated()) shapes.insert(shapes.end(), {{2, 3001}, {1, 150001}});
  for (const Shape& shape : shapes)
    for (const bool descending : {false, true})
      for (const Dtype dtype : real_dtypes()) {
        const std::vector<double> values = values_with_ties(shape.size());
        const SortResult came = sort(real_array(values, shape, dtype), -1, descending);
        Ints want;
        std::vector<double> want_values;
        for (std::int64_t r = 0; r < shape[0]; ++r) {
          const std::span<const double> row(values.data() + r * shape[1], static_cast<std::size_t>(shape[1]));
          for (const int place : sorted_places(row, descending)) {
            want.push_back(place);
            want_values.push_back(row[static_cast<std::size_t>(place)]);
          }
        }
        EXPECT_EQ(came.indices.to_vector<std::int32_t>(), want) << shape.to_string() << descending;
        const std::vector<double> got = came.values.to_vector<double>();
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_TRUE(got[i] == want_values[i] || (std::isnan(got[i]) && std::isnan(want_values[i]))) << i;
      }
}

TEST_P(SortTest, a_row_of_a_million_is_sorted) {
  if (is_simulated()) GTEST_SKIP() << "a large shape";
  const std::vector<double> values = random_values(1 << 20);
  const std::vector<double> came = sort(real_array(values, {1 << 20}, f32)).values.to_vector<double>();
  EXPECT_TRUE(std::is_sorted(came.begin(), came.end()));
  double sums[2] = {0, 0};
  for (std::size_t i = 0; i < came.size(); ++i) sums[0] += came[i], sums[1] += static_cast<float>(values[i]);
  EXPECT_NEAR(sums[0], sums[1], 1e-6);
}

TEST_P(SortTest, every_axis_and_element_type_is_sorted) {
  const auto values = random_values(60);
  const Array a = real_array(values, {3, 4, 5}, f32);
  for (int axis = 0; axis < 3; ++axis) {
    const Shape shape = a.shape();
    const std::int64_t inner = axis == 0 ? 20 : axis == 1 ? 5 : 1;
    const std::vector<double> came = sort(a, axis).values.to_vector<double>();
    for (std::int64_t i = 0; i < 60; ++i)
      if (i / inner % shape[axis] > 0) {
        EXPECT_LE(came[static_cast<std::size_t>(i - inner)], came[static_cast<std::size_t>(i)]) << axis;
      }
  }
  const Array numbers = array({3, 200, 0, 3, 7});
  EXPECT_EQ(argsort(astype(numbers, u8)).to_vector<std::int32_t>(), (Ints{2, 0, 3, 4, 1}));
  EXPECT_EQ(argsort(astype(numbers, bf16), 0, true).to_vector<std::int32_t>(), (Ints{1, 4, 0, 3, 2}));
  const Ints wide{5, -7, std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), -7};
  const Array whole = array(std::span<const std::int32_t>(wide), {5});
  EXPECT_EQ(argsort(whole).to_vector<std::int32_t>(), (Ints{2, 1, 4, 0, 3}));
  EXPECT_EQ(sort(whole, 0, true).values.to_vector<std::int32_t>()[4], std::numeric_limits<int>::min());
  EXPECT_EQ(argsort(greater(numbers, array({3.0f}))).to_vector<std::int32_t>(), (Ints{0, 2, 3, 1, 4}));
  EXPECT_EQ(sort(zeros({3, 0}), 1).values.shape(), (Shape{3, 0}));
}

TEST_P(SortTest, top_k_gives_the_first_of_equal_ones) {
  const Array a = array({1, 4, 4, 2, 4, 0}, {2, 3});
  const SortResult best = top_k(a, 2);
  EXPECT_TRUE(all_close(best.values, std::vector<double>{4, 4, 4, 2}, 0));
  EXPECT_EQ(best.indices.to_vector<std::int32_t>(), (Ints{1, 2, 1, 0}));
  const SortResult least = top_k(a, 1, 0, false);
  EXPECT_TRUE(all_close(least.values, std::vector<double>{1, 4, 0}, 0));
  EXPECT_EQ(least.indices.to_vector<std::int32_t>(), (Ints{0, 0, 1}));
  EXPECT_EQ(top_k(a, 0).values.shape(), (Shape{2, 0}));
}

// Found without sorting up to 64 of them, block by block in long rows; many equal keys, and NaN.
TEST_P(SortTest, top_k_is_the_beginning_of_the_sorted_row) {
  for (const std::int64_t n : {65, 200, 40001}) {
    const Array steps = floor(uniform({2, n}, 0, n > 1000 ? 3000 : 20));
    const Array a =
        where(equal(steps, full({}, 7.0)), full({}, std::numeric_limits<double>::quiet_NaN()), steps).wait();
    for (const bool largest : {true, false})
      for (const std::int64_t k : {1, 5, 64, 65}) {
        const SortResult found = top_k(a, k, -1, largest);
        EXPECT_EQ(found.indices.to_vector<std::int32_t>(),
                  contiguous(slice(argsort(a, -1, largest), 1, 0, k)).to_vector<std::int32_t>())
            << n << " " << k << " " << largest;
        const Array whole = astype(steps, i32);
        EXPECT_EQ(top_k(whole, k, -1, largest).indices.to_vector<std::int32_t>(),
                  contiguous(slice(argsort(whole, -1, largest), 1, 0, k)).to_vector<std::int32_t>())
            << n << " " << k << " " << largest;
      }
  }
}

TEST_P(SortTest, gradients_go_back_to_where_values_came_from) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients([](auto x) { return sort(x[0], 0).values; }, {random_input("src", {5, 3})}));
  EXPECT_TRUE(check_gradients([](auto x) { return top_k(x[0], 2).values; }, {random_input("src", {3, 5})}));
  EXPECT_TRUE(check_gradients([](auto x) { return top_k(x[0], 3, 0, false).values; }, {random_input("src", {7})}));
}

TEST_P(SortTest, wrong_arguments_are_refused) {
  const Array a = zeros({2, 3});
  EXPECT_ERROR((sort(a, 2)), ArgumentError, "sort: axis 2 is out of range for src f32 [2, 3]");
  EXPECT_ERROR((top_k(a, 4)), ArgumentError,
               "top_k: k must be between 0 and the size of axis 1, got 4, src is f32 [2, 3]");
}

class SmallShapesSortTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesSortTest);

TEST_P(SmallShapesSortTest, sorting) {
  using In = std::span<const Array>;
  run([](In x) { return sort(x[0]).values + sort(x[0], 0, true).values; }, {{3, 37}});
  const Array a = real_array(random_values(1100), {1100}, f32);
  EXPECT_EQ(argsort(a).to_vector<std::int32_t>().size(), 1100u);
  EXPECT_EQ(argsort(astype(slice(a, 0, 0, 5) * 9.0, i32)).to_vector<std::int32_t>().size(), 5u);
}

}  // namespace
}  // namespace samebytes::testing
