// scatter and scatter_reduce against plain loops, with their gradients, in both personalities.
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

class ScatterTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ScatterTest);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  const char* what;
  Shape a, index;
  int axis;
};

std::vector<Case> cases() {
  return {{"lines along the first axis", {4, 3}, {5, 3}, 0},
          {"lines along the last axis", {3, 4}, {3, 6}, 1},
          {"a middle axis and many columns", {2, 5, 131}, {2, 3, 131}, 1},
          {"one line", {7}, {9}, 0},
          {"less than all of a", {4, 5, 3}, {2, 7, 2}, 1}};
}

std::vector<std::int32_t> places(const Case& c) {
  std::vector<std::int32_t> list;
  const auto depth = static_cast<std::int32_t>(c.a[c.axis]);
  for (std::int64_t i = 0; i < c.index.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i * 7 % 5) % depth;
    list.push_back(i % 3 == 0 ? place - depth : place);  // counted from the end
  }
  return list;
}

// The result of combining, element by element, in order; `counts` has how many values came to each place.
template <class Combine>
std::vector<double> scattered(const Case& c, std::vector<double> a, const std::vector<double>& src, Combine combine) {
  const auto list = places(c);
  for (std::size_t i = 0; i < src.size(); ++i) {
    std::int64_t left = static_cast<std::int64_t>(i), at = 0, stride = 1;
    for (int k = c.a.rank() - 1; k >= 0; --k) {
      std::int64_t place = left % c.index[k];
      left /= c.index[k];
      if (k == c.axis) place = list[i] < 0 ? list[i] + c.a[k] : list[i];
      at += place * stride;
      stride *= c.a[k];
    }
    double& there = a[static_cast<std::size_t>(at)];
    there = combine(there, src[i]);
  }
  return a;
}

TEST_P(ScatterTest, later_values_replace_earlier_ones) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.what);
    const auto a = random_values(c.a.size(), 1), src = random_values(c.index.size(), 2);
    const auto want = scattered(c, a, src, [](double, double v) { return v; });
    for (const Dtype dtype : real_dtypes())
      EXPECT_TRUE(all_close(
          scatter(real_array(a, c.a, dtype), c.axis, array(places(c), c.index), real_array(src, c.index, dtype)), want,
          dtype == f32 ? 1e-7 : 0));
  }
}

TEST_P(ScatterTest, reductions_combine_what_comes_to_one_place) {
  using R = ScatterReduce;
  for (const Case& c : cases())
    for (const R reduce : {R::sum, R::prod, R::mean, R::amax, R::amin})
      for (const bool include_self : {true, false}) {
        SCOPED_TRACE(std::string(c.what) + ", " + std::to_string(static_cast<int>(reduce)));
        const auto a = random_values(c.a.size(), 1), src = random_values(c.index.size(), 2);
        const auto counts = scattered(c, std::vector<double>(a.size(), include_self),
                                      std::vector<double>(src.size(), 1), [](double n, double one) { return n + one; });
        std::vector<double> start = a;
        const double neutral = reduce == R::prod ? 1 : reduce == R::amax ? -10 : reduce == R::amin ? 10 : 0;
        for (std::size_t i = 0; i < start.size(); ++i)
          if (!include_self && counts[i] > 0) start[i] = neutral;
        auto want = scattered(c, start, src, [&](double x, double v) {
          return reduce == R::prod   ? x * v
                 : reduce == R::amax ? std::max(x, v)
                 : reduce == R::amin ? std::min(x, v)
                                     : x + v;
        });
        for (std::size_t i = 0; i < want.size(); ++i)
          if (reduce == R::mean && counts[i] > 0) want[i] /= counts[i];
        EXPECT_TRUE(
            all_close(scatter_reduce(real_array(a, c.a, f32), c.axis, array(places(c), c.index),
                                     real_array(src, c.index, f32), {.reduce = reduce, .include_self = include_self}),
                      want, sum_tolerance(f32, 8)));
      }
}

TEST_P(ScatterTest, whole_numbers_are_replaced_and_an_index_outside_spoils_its_line) {
  const Array index = array(std::vector<std::int32_t>{1, 7}, {1, 2});
  EXPECT_EQ(scatter(zeros({3, 2}, i32), 0, index, full({1, 2}, 5, i32)).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, -1, 5, -1, 0, -1}));
  EXPECT_TRUE(
      all_close(scatter(zeros({3, 2}), 0, index, ones({1, 2})), std::vector<double>{0, kNan, 1, kNan, 0, kNan}, 0));
}

TEST_P(ScatterTest, extremes_propagate_nan) {
  const Array index = array(std::vector<std::int32_t>{0, 0, 1}, {3});
  const Array src = array({1, static_cast<float>(kNan), 2}, {3});
  EXPECT_TRUE(all_close(scatter_reduce(zeros({2}), 0, index, src, {.reduce = ScatterReduce::amax}),
                        std::vector<double>{kNan, 2}, 0));
  EXPECT_TRUE(
      all_close(scatter_reduce(array({static_cast<float>(kNan), 0}, {2}), 0, array(std::vector<std::int32_t>{0}, {1}),
                               ones({1}), {.reduce = ScatterReduce::amin}),
                std::vector<double>{kNan, 0}, 0));
}

TEST_P(ScatterTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  using R = ScatterReduce;
  for (const Case& c : cases()) {
    if (c.a.size() > 100) continue;
    const Array index = array(places(c), c.index);
    const std::vector<GradientInput> inputs{random_input("a", c.a, 1), random_input("src", c.index, 2)};
    EXPECT_TRUE(check_gradients([&](auto x) { return scatter(x[0], c.axis, index, x[1]); }, inputs)) << c.what;
    for (const R reduce : {R::sum, R::prod, R::mean, R::amax, R::amin})
      for (const bool include_self : {true, false})
        EXPECT_TRUE(check_gradients(
            [&](auto x) {
              return scatter_reduce(x[0], c.axis, index, x[1], {.reduce = reduce, .include_self = include_self});
            },
            inputs))
            << c.what << " " << static_cast<int>(reduce);
  }
}

// Columns of several groups, indices that come again, and a line that has one outside.
TEST_P(ScatterTest, only_the_last_value_of_a_place_gets_its_gradient) {
  const Case c{"", {2, 5, 131}, {2, 9, 131}, 1};
  auto list = places(c);
  list[130 + 131 * 4] = 5;  // outside: all of the first image's last column
  const auto weights = random_values(c.a.size(), 3);
  std::vector<double> want(list.size(), 0);
  for (std::size_t o = 0; o < 2; ++o)
    for (std::size_t i = 0; i < 131; ++i) {
      if (o == 0 && i == 130) continue;
      std::vector<bool> taken(5, false);
      for (std::size_t j = 9; j-- > 0;) {
        const std::size_t at = (o * 9 + j) * 131 + i;
        const auto d = static_cast<std::size_t>(list[at] < 0 ? list[at] + 5 : list[at]);
        if (!taken[d]) want[at] = weights[(o * 5 + d) * 131 + i];
        taken[d] = true;
      }
    }
  const std::vector<Array> wrt{real_array(random_values(c.index.size(), 2), c.index, f32)};
  const Array y = scatter(zeros(c.a), c.axis, array(list, c.index), wrt[0]);
  const Array dy = real_array(weights, c.a, f32);
  EXPECT_TRUE(all_close(gradients(y, wrt, dy)[0], want, 1e-7));
  // Pooled values put back: the same without an array under them, in one launch.
  const Array line = array({4, 5, 6}, {1, 3, 1}), at = array(std::vector<std::int32_t>{2, 0, 2}, {1, 3, 1});
  const Array back = max_unpool1d(line.wait(), at.wait(), 4);
  const std::uint64_t before = engine().plans().launches;
  back.wait();
  EXPECT_EQ(engine().plans().launches - before, 1u);
  EXPECT_TRUE(all_close(back, std::vector<double>{5, 0, 6, 0}, 0));
  const std::vector<Array> of_line{line};
  EXPECT_TRUE(all_close(gradients(max_unpool1d(line, at, 4), of_line, array({1, 2, 3, 4}, {1, 4, 1}))[0],
                        std::vector<double>{0, 1, 3}, 0));
  const Array half = astype(line, bf16);
  EXPECT_EQ(max_unpool1d(half, at, 4).dtype(), bf16);
  EXPECT_TRUE(all_close(max_unpool1d(half, at, 4), std::vector<double>{5, 0, 6, 0}, 0));
}

TEST_P(ScatterTest, products_with_zeros_and_equal_extremes_have_their_gradients) {
  const Array a = array({2, 0, 3}, {3}), src = array({0, 5, 0, 7}, {4});
  const Array index = array(std::vector<std::int32_t>{0, 1, 2, 2}, {4});
  const Array both[] = {a, src};
  const auto products = gradients(sum(scatter_reduce(a, 0, index, src, {.reduce = ScatterReduce::prod})), both);
  EXPECT_TRUE(all_close(products[0], std::vector<double>{0, 5, 0}, 0));
  EXPECT_TRUE(all_close(products[1], std::vector<double>{2, 0, 21, 0}, 0));
  const Array same = array({1, 1, 0, 1}, {4}), place = array(std::vector<std::int32_t>{0, 0, 0, 1}, {4});
  const Array under = array({1, 0}, {2});
  const Array pair[] = {under, same};
  const auto shares = gradients(sum(scatter_reduce(under, 0, place, same, {.reduce = ScatterReduce::amax})), pair);
  EXPECT_TRUE(all_close(shares[0], std::vector<double>{1. / 3, 0}, 1e-7));
  EXPECT_TRUE(all_close(shares[1], std::vector<double>{1. / 3, 1. / 3, 0, 1}, 1e-7));
}

TEST_P(ScatterTest, sixteen_bits_views_and_empty_indices) {
  const Array a = astype(real_array(random_values(12, 1), {3, 4}, f32), bf16);
  const Array index = array(std::vector<std::int32_t>{2, 0}, {1, 2});
  EXPECT_EQ(scatter(a, 0, index, ones({1, 2}, bf16)).dtype(), bf16);
  const Array turned = transpose(array({1, 2, 3, 4, 5, 6}, {2, 3}));
  EXPECT_TRUE(
      all_close(scatter(turned, 0, index, transpose(array({8, 9}, {2, 1}))), std::vector<double>{1, 9, 2, 5, 8, 6}, 0));
  EXPECT_TRUE(all_close(scatter(turned, 0, zeros({0, 2}, i32), zeros({0, 2})), turned.to_vector<double>(), 0));
}

TEST_P(ScatterTest, wrong_arguments_are_named) {
  const Array a = zeros({3, 2}), index = zeros({1, 2}, i32);
  EXPECT_ERROR(scatter(a, 0, index, zeros({1, 2}, i32)), ArgumentError, "scatter: needs src of f32, src is i32 [1, 2]");
  EXPECT_ERROR(scatter(zeros({3, 2}, u8), 0, index, zeros({1, 2}, u8)), ArgumentError,
               "scatter: needs a floating, i32 or i64 array, a is u8 [3, 2]");
  EXPECT_ERROR(scatter_reduce(zeros({3, 2}, i32), 0, index, zeros({1, 2}, i32)), ArgumentError,
               "scatter_reduce: needs a floating array, a is i32 [3, 2]");
  EXPECT_ERROR(
      scatter(a, 0, zeros({1, 3}, i32), zeros({1, 3})), ArgumentError,
      "scatter: index must fit into src, and into a in every axis but 0, a is f32 [3, 2], index is i32 [1, 3], "
      "src is f32 [1, 3]");
}

class SmallShapesScatterTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesScatterTest);

TEST_P(SmallShapesScatterTest, runs_forward_and_backward) {
  const Array index = array(std::vector<std::int32_t>{2, 0, 1, 0, 2, 2, 1, 1, 0, 2}, {2, 5});
  run([&](auto x) { return scatter(x[0], 0, index, x[1]); }, {{3, 5}, {2, 5}});
  run([&](auto x) { return scatter_reduce(x[0], 0, index, x[1], {.reduce = ScatterReduce::prod}); }, {{3, 5}, {2, 5}});
}

}  // namespace
}  // namespace samebytes::testing
