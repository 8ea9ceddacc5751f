// What stands around the ops: operators on arrays and numbers, x[...], axes and shapes of run time, values of every
// type, and the table of docs/types.md row by row.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using Values = std::vector<double>;

class ArrayShellTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ArrayShellTest);

TEST_P(ArrayShellTest, compares_arrays_and_numbers_on_either_side) {
  const Array x = array({1, 2, 3}), y = array({3, 2, 1});
  const Array n = array<std::int32_t>({1, 2, 300});
  const struct {
    Array came;
    Values want;
  } cases[] = {{x == y, {0, 1, 0}},
               {x != y, {1, 0, 1}},
               {x < y, {1, 0, 0}},
               {x <= y, {1, 1, 0}},
               {x > y, {0, 0, 1}},
               {x >= y, {0, 1, 1}},
               {x == 2, {0, 1, 0}},
               {2 != x, {1, 0, 1}},
               {2 < x, {0, 0, 1}},
               {2 >= x, {1, 1, 0}},
               {x > 1.5, {0, 1, 1}},
               {n < 300, {1, 1, 0}},
               {n >= 1.5, {0, 1, 1}},
               {equal(n, 2), {0, 1, 0}},
               {astype(n, u8) < 300, {1, 1, 1}},
               {(x > 1) & (x < 3), {0, 1, 0}},
               {(x < 2) | (x > 2), {1, 0, 1}},
               {(x > 1) ^ (x > 2), {0, 1, 0}},
               {!(x > 1), {1, 0, 0}},
               {logical_and(x - 1, y), {0, 1, 1}},
               {logical_or(x - 1, zeros({3})), {0, 1, 1}},
               {logical_xor(x, x - 1), {1, 0, 0}},
               {logical_not(x - 1), {1, 0, 0}},
               {isnan(x / (x - x) * 0), {1, 1, 1}},
               {isinf(1 / (x - 2)), {0, 1, 0}},
               {isfinite(1 / (x - 2)), {1, 0, 1}},
               {isfinite(n), {1, 1, 1}}};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(cases[i].came.dtype(), bool_) << i;
    EXPECT_TRUE(all_close(cases[i].came, cases[i].want, 0)) << i;
  }
  EXPECT_ERROR(x & y, ArgumentError,
               "operator&: needs bool arrays; logical_and, logical_or, logical_xor and logical_not take others, src is "
               "f32 [3]");
}

TEST_P(ArrayShellTest, takes_numbers_wherever_it_takes_arrays) {
  const Array x = array({-1, 0, 2});
  EXPECT_TRUE(all_close(maximum(x, 0), Values{0, 0, 2}, 0));
  EXPECT_TRUE(all_close(minimum(1, x), Values{-1, 0, 1}, 0));
  EXPECT_TRUE(all_close(where(x > 0, x, -5), Values{-5, -5, 2}, 0));
  EXPECT_TRUE(all_close(where(x > 0, 7.5, x), Values{-1, 0, 7.5}, 0));
  EXPECT_TRUE(all_close(clip(x, 1, 0), Values{0, 0, 0}, 0));  // as NumPy: the upper bound
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(all_close(maximum(x / array({1, 0, 1}), 0), Values{0, nan, 2}, 0));
  Array sum = x;
  const Array before = sum * 1;
  sum += 1;
  sum *= x;
  sum -= x;
  sum /= 2;
  EXPECT_TRUE(all_close(sum, Values{0.5, 0, 2}, 0));
  EXPECT_TRUE(all_close(before, Values{-1, 0, 2}, 0));
  const Array parameter = cell(array({1, 2}), "p");
  Array handle = parameter;
  handle += 1;
  EXPECT_FALSE(is_cell(handle));
  EXPECT_TRUE(all_close(parameter, Values{1, 2}, 0));
}

TEST_P(ArrayShellTest, indexes_and_slices_as_numpy_does) {
  const Array x = reshape(arange(0, 24), {2, 3, 4});
  const struct {
    Array came;
    Shape shape;
    Values want;
  } cases[] = {{x[1][2], {4}, {20, 21, 22, 23}},
               {x[{-1, 0, 3}], {}, {15}},
               {x[{0, slice(1, 4)}], {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11}},
               {x[{ellipsis, -1}], {2, 3}, {3, 7, 11, 15, 19, 23}},
               {x[{0, slice(), slice(slice_end, slice_end, -2)}], {3, 2}, {3, 1, 7, 5, 11, 9}},
               {x[{1, new_axis, slice(-2, slice_end), 0}], {1, 2}, {16, 20}},
               {x[slice(5, 9)], {0, 3, 4}, {}},
               {x[{slice(), ellipsis, slice(2, -100, -1)}][0][0], {3}, {2, 1, 0}},
               {x[std::vector<Index>{0, 1}], {4}, {4, 5, 6, 7}}};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(cases[i].came.shape(), cases[i].shape) << i;
    EXPECT_TRUE(all_close(cases[i].came, cases[i].want, 0)) << i;
  }
  EXPECT_ERROR((x[{0, 3}]), ArgumentError, "operator[]: index 3 is outside an axis of size 3, src is f32 [2, 3, 4]");
  EXPECT_ERROR(
      (x[{0, 0, 0, 0}]), ArgumentError,
      "operator[]: expected at most one index for each axis and one ellipsis, got 4 and 0, src is f32 [2, 3, 4]");
  const std::vector<Array> wrt{array({1, 2, 3, 4})};
  EXPECT_TRUE(all_close(gradients(sum(square(wrt[0][slice(3, 0, -2)])), wrt)[0], Values{0, 4, 0, 8}, 0));
}

TEST_P(ArrayShellTest, takes_axes_and_shapes_of_run_time) {
  const Array x = reshape(arange(0, 6), {2, 3});
  const std::vector<int> both{0, 1};
  EXPECT_TRUE(all_close(sum(x, 1), Values{3, 12}, 0));
  EXPECT_TRUE(all_close(mean(x, std::span<const int>(both)), Values{2.5}, 0));
  EXPECT_TRUE(all_close(max(x, both, true), Values{5}, 0));
  EXPECT_TRUE(all_close(transpose(x, std::vector<int>{1, 0}), Values{0, 3, 1, 4, 2, 5}, 0));
  EXPECT_TRUE(all_close(flip(x, -1), Values{2, 1, 0, 5, 4, 3}, 0));
  Shape shape = x.shape();
  shape[0] = -1;
  shape[1] = 2;
  EXPECT_EQ(reshape(x, shape).shape(), (Shape{3, 2}));
  EXPECT_EQ(reshape(x, std::vector<std::int64_t>{-1, 1}).shape(), (Shape{6, 1}));
  EXPECT_TRUE(all_close(softmax(x, 0),
                        Values{0.0474258732, 0.0474258732, 0.0474258732, 0.952574127, 0.952574127, 0.952574127}, 1e-6));
  EXPECT_TRUE(all_close(exp(log_softmax(x, 0)), softmax(x, -2).to_vector<double>(), 1e-6));
  EXPECT_TRUE(all_close(layer_norm(x, {}, {}, 0, 0), Values{-1, -1, -1, 1, 1, 1}, 1e-5));
  const Array images = reshape(sin(arange(0, 24)), {2, 3, 4}),
              labels = array<std::int32_t>({0, 1, 2, 0, 1, 2, 0, 1}, {2, 4});
  const double last = cross_entropy(transpose(images, {0, 2, 1}), labels).value();
  EXPECT_NEAR(cross_entropy(images, labels, {.axis = 1}).value(), last, 1e-6);
  EXPECT_NEAR(nll_loss(log_softmax(images, 1), labels, {.axis = 1}).value(), last, 1e-6);
}

TEST_P(ArrayShellTest, counts_negative_indices_from_the_end) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Array> wrt{array({1, 2, 3})};
  const Array index = array<std::int32_t>({-1, 0, -3, -4});
  const Array taken = take(wrt[0], index);
  EXPECT_TRUE(all_close(taken, Values{3, 1, 1, nan}, 0));
  EXPECT_TRUE(all_close(gradients(sum(taken[slice(0, 3)]), wrt)[0], Values{2, 0, 1}, 0));
  EXPECT_TRUE(all_close(gather(wrt[0], 0, index), Values{3, 1, 1, nan}, 0));
  EXPECT_TRUE(all_close(scatter_add(zeros({3}), 0, array<std::int32_t>({-1, 1}), array({5, 6})), Values{0, 6, 5}, 0));
}

TEST_P(ArrayShellTest, makes_arrays_of_a_pattern) {
  EXPECT_EQ(arange(3).to_vector<float>(), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(linspace(-1, 1, 5).to_vector<float>(), (std::vector<float>{-1, -0.5f, 0, 0.5f, 1}));
  EXPECT_EQ(linspace(0, 0.1, 8).to_vector<float>().back(), 0.1f);
  EXPECT_EQ(linspace(2, 3, 1, f64).to_vector<double>(), (std::vector<double>{2}));
  EXPECT_EQ(linspace(2, 3, 0).size(), 0);
  EXPECT_EQ(eye(2).to_vector<float>(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(eye(2, 3, i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 0, 0, 0, 1, 0}));
  const Array a = astype(array({3, 4}), f16);
  EXPECT_EQ(zeros_like(a).dtype(), f16);
  EXPECT_EQ(full_like(a, 2).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(ones_like(a).shape(), a.shape());
  EXPECT_ERROR(linspace(0, 1, -1), ArgumentError, "linspace: expected a count of 0 or more, got -1");
  EXPECT_ERROR(eye(-2), ArgumentError, "eye: expected sizes of 0 or more, got -2 and -2");
}

TEST_P(ArrayShellTest, prints_what_is_no_number_without_a_sign_and_multiplies_whole_numbers_exactly) {
  EXPECT_EQ(sqrt(array({-1, 4})).to_string(), "f32 [2] {nan, 2}");
  const Array product = prod(array<std::int32_t>({3, 5, 16777217}));
  EXPECT_EQ(product.dtype(), i32);
  EXPECT_EQ(product.to_vector<std::int32_t>()[0], 251658255);
}

// C99's pow at the borders, and with bases and exponents of any sign.
TEST_P(ArrayShellTest, powers_have_an_exponent_for_each_element) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Values some{-inf, -3.5, -2, -1, -0.5, -0.0, 0.0, 0.3, 1, 2, 3, 7.25, inf, nan};
  for (const Dtype dtype : {f32, f64}) {
    if (dtype == f64 && !Engine::current().device().has_f64) continue;
    const auto n = static_cast<std::int64_t>(some.size());
    const Array base = astype(reshape(array(some, {n}), {n, 1}), dtype), exponent = astype(array(some, {n}), dtype);
    const Values came = pow(base, exponent).to_vector<double>();
    for (std::size_t i = 0; i < came.size(); ++i) {
      const double x = some[i / some.size()], e = some[i % some.size()];
      const double want = dtype == f32 ? std::pow(static_cast<float>(x), static_cast<float>(e)) : std::pow(x, e);
      const std::string where = std::to_string(x) + " to " + std::to_string(e);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(came[i])) << where << " is " << came[i];
      } else if (std::isinf(want) || want == 0) {
        EXPECT_EQ(came[i], want) << where;
        EXPECT_EQ(std::signbit(came[i]), std::signbit(want)) << where;
      } else {
        EXPECT_NEAR(came[i], want, std::abs(want) * (dtype == f32 ? 3e-7 : 1e-15)) << where;
      }
    }
  }
  EXPECT_EQ(pow(2, array<std::int32_t>({1, 10})).to_vector<float>(), (std::vector<float>{2, 1024}));
  // As PyTorch: no slope by a base to the power 0, none by the exponent of 0.
  const std::vector<Array> x{array({0, 2, 0}), array({0, 3, 2})};
  const std::vector<Array> d = gradients(sum(pow(x[0], x[1])), x);
  EXPECT_EQ(d[0].to_vector<float>(), (std::vector<float>{0, 12, 0}));
  EXPECT_TRUE(all_close(d[1], Values{0, 8 * std::log(2.0), 0}, 1e-6));
}

TEST_P(ArrayShellTest, gives_the_vector_jacobian_product) {
  const std::vector<Array> x{array({1, 2, 3})};
  const Array y = square(x[0]);
  EXPECT_TRUE(all_close(gradients(y, x, array({1, 10, 100}))[0], Values{2, 40, 600}, 0));
  EXPECT_TRUE(all_close(gradients(x[0], x, array({1, 10, 100}))[0], Values{1, 10, 100}, 0));
  EXPECT_ERROR(gradients(y, x, array({1, 2})), ArgumentError,
               "gradients: upstream must be floating and have the shape of y, y is f32 [3], upstream is f32 [2]");
}

TEST_P(ArrayShellTest, a_tie_of_maximum_shares_the_gradient) {
  const std::vector<Array> x{array({1, 2, 3}), array({2, 2, 2})};
  EXPECT_TRUE(all_close(gradients(sum(maximum(x[0], x[1])), x)[0], Values{0, 0.5, 1}, 0));
  EXPECT_TRUE(all_close(gradients(sum(maximum(x[0], x[1])), x)[1], Values{1, 0.5, 0}, 0));
  EXPECT_TRUE(all_close(gradients(sum(minimum(x[0], x[1])), x)[0], Values{1, 0.5, 0}, 0));
  EXPECT_TRUE(all_close(gradients(sum(maximum(x[0], 2)), std::span(x).first(1))[0], Values{0, 0.5, 1}, 0));
}

TEST_P(ArrayShellTest, takes_values_of_every_type_and_prints_whole_numbers_whole) {
  EXPECT_EQ(array(std::vector<std::int64_t>{1, -2, 16777217}, {3}).to_string(), "i64 [3] {1, -2, 16777217}");
  EXPECT_EQ(array<std::int64_t>({INT64_MIN, INT64_MAX}).to_string(),
            "i64 [2] {-9223372036854775808, 9223372036854775807}");
  EXPECT_EQ(array<std::int64_t>({5}).to_vector<std::int64_t>(), std::vector<std::int64_t>{5});
  EXPECT_EQ(array(std::vector<std::int32_t>{1}, {1}).dtype(), i32);
  const Array truths = array(std::vector<bool>{true, false}, {2});
  EXPECT_EQ(truths.dtype(), bool_);
  EXPECT_EQ(truths.to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(array<bool>({true, false}).dtype(), bool_);
  EXPECT_TRUE(all_close(array<half_bits>({{0x3c00}, {0xc000}}), Values{1, -2}, 0));
  EXPECT_TRUE(all_close(array<bfloat16_bits>({{0x3f80}, {0xc000}}), Values{1, -2}, 0));
}

// The rows of docs/types.md.
TEST_P(ArrayShellTest, types_of_results_are_those_of_the_table) {
  const Dtype all_types[] = {bool_, u8, i32, i64, f16, bf16, f32};
  const Dtype promoted[7][7] = {{bool_, u8, i32, i64, f16, bf16, f32}, {u8, u8, i32, i64, f16, bf16, f32},
                                {i32, i32, i32, i64, f16, bf16, f32},  {i64, i64, i64, i64, f16, bf16, f32},
                                {f16, f16, f16, f16, f16, f32, f32},   {bf16, bf16, bf16, bf16, f32, bf16, f32},
                                {f32, f32, f32, f32, f32, f32, f32}};
  const auto one = [](Dtype dtype) { return ones({2}, dtype); };
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 7; ++j) {
      const Array a = one(all_types[i]), b = one(all_types[j]);
      const auto pair = std::string(name_of(all_types[i])) + " " + std::string(name_of(all_types[j]));
      for (const Array& c : {a * b, maximum(a, b), where(a == b, a, b)}) EXPECT_EQ(c.dtype(), promoted[i][j]) << pair;
      const Dtype quotient = i < 4 && j < 4 ? f32 : promoted[i][j];
      EXPECT_EQ((a / b).dtype(), quotient) << pair;
      EXPECT_EQ((a < b).dtype(), bool_) << pair;
    }
  const struct {
    const char* what;
    Array (*f)(const Array&);
    Dtype want[7];  // of bool, u8, i32, i64, f16, bf16, f32
  } rows[] = {{"a + 1", [](const Array& a) { return a + 1; }, {i32, u8, i32, i64, f16, bf16, f32}},
              {"5 - a", [](const Array& a) { return 5 - a; }, {i32, u8, i32, i64, f16, bf16, f32}},
              {"a * 1.0", [](const Array& a) { return a * 1.0; }, {f32, f32, f32, f32, f16, bf16, f32}},
              {"a / 2", [](const Array& a) { return a / 2; }, {f32, f32, f32, f32, f16, bf16, f32}},
              {"clip", [](const Array& a) { return clip(a, 0, 3); }, {i32, u8, i32, i64, f16, bf16, f32}},
              {"clip, floating", [](const Array& a) { return clip(a, 0.5, 3); }, {f32, f32, f32, f32, f16, bf16, f32}},
              {"maximum", [](const Array& a) { return maximum(a, 0); }, {i32, u8, i32, i64, f16, bf16, f32}},
              {"where", [](const Array& a) { return where(a > 0, a, 0); }, {i32, u8, i32, i64, f16, bf16, f32}},
              {"remainder", [](const Array& a) { return remainder(a, 2); }, {i32, u8, i32, i64, f16, bf16, f32}},
              {"relu", [](const Array& a) { return relu(a); }, {bool_, u8, i32, i64, f16, bf16, f32}},
              {"abs", [](const Array& a) { return abs(a); }, {bool_, u8, i32, i64, f16, bf16, f32}},
              {"floor", [](const Array& a) { return floor(a); }, {bool_, u8, i32, i64, f16, bf16, f32}},
              {"sum", [](const Array& a) { return sum(a); }, {i32, i32, i32, i64, f16, bf16, f32}},
              {"max", [](const Array& a) { return max(a); }, {bool_, u8, i32, i64, f16, bf16, f32}},
              {"mean", [](const Array& a) { return mean(a); }, {f32, f32, f32, f32, f16, bf16, f32}},
              {"exp", [](const Array& a) { return exp(a); }, {f32, f32, f32, f32, f16, bf16, f32}},
              {"isnan", [](const Array& a) { return isnan(a); }, {bool_, bool_, bool_, bool_, bool_, bool_, bool_}},
              {"argmax", [](const Array& a) { return argmax(a); }, {i32, i32, i32, i32, i32, i32, i32}}};
  for (const auto& row : rows)
    for (int i = 0; i < 7; ++i)
      EXPECT_EQ(row.f(one(all_types[i])).dtype(), row.want[i]) << row.what << " of " << name_of(all_types[i]);
  const Array n = array<std::int32_t>({-7, 2, 2'000'000'001});
  EXPECT_EQ((n - 1).to_vector<std::int32_t>(), (std::vector<std::int32_t>{-8, 1, 2'000'000'000}));
  EXPECT_EQ(clip(n, 0, 2'000'000'000).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 2, 2'000'000'000}));
  EXPECT_EQ(relu(n).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 2, 2'000'000'001}));
  EXPECT_TRUE(all_close(n[slice(0, 2)] / 2, Values{-3.5, 1}, 0));
  EXPECT_TRUE(all_close(take(array({5, 6, 7}), n[{slice(1, 2)}] * 1 - 1), Values{6}, 0));
  EXPECT_ERROR(one(u8) + 300, ArgumentError,
               "add: the number must fit u8, got 300; convert a with astype(a, i32), a is u8 [2]");
  EXPECT_ERROR(one(i32) + 3'000'000'000, ArgumentError,
               "add: the number must fit i32, got 3000000000; convert a with astype(a, i64), a is i32 [2]");
}

TEST_P(ArrayShellTest, remainders_of_doubles_stand_alone) {
  SAMEBYTES_NEEDS_F64();
  const std::vector<double> a{-4.3, 7.2, 5, 4.3, -7.2, 8, 1e300, 3, 0.5, -9.7};
  const std::vector<double> b{2.1, -3.4, 8, -2.1, 3.4, 5, 0.3, 0, 0.4, 1.1};
  for (std::size_t n = 1; n <= a.size(); ++n) {
    const Shape shape{static_cast<std::int64_t>(n)};
    const auto came =
        fmod(array(std::span(a).first(n), shape), array(std::span(b).first(n), shape)).to_vector<double>();
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_TRUE(b[i] == 0 ? std::isnan(came[i]) : came[i] == std::fmod(a[i], b[i])) << i << " of " << n;
  }
}

TEST_P(ArrayShellTest, remainders_have_the_sign_that_their_name_promises) {
  const Array a = array({-7, 7, -7, 7, 6}), b = array({3, 3, -3, -3, 3});
  const Values floored{2, 1, -1, -2, 0}, cut{-1, 1, -1, 1, 0};
  EXPECT_TRUE(all_close(remainder(a, b), floored, 0));
  EXPECT_TRUE(all_close(fmod(a, b), cut, 0));
  EXPECT_TRUE(all_close(remainder(astype(a, i32), astype(b, i32)), floored, 0));
  EXPECT_TRUE(all_close(fmod(astype(a, i32), astype(b, i32)), cut, 0));
  const Array least = array<std::int32_t>({std::numeric_limits<std::int32_t>::min(), 5});
  EXPECT_TRUE(all_close(remainder(least, array<std::int32_t>({-1, 0})), Values{0, 0}, 0));
}

}  // namespace
}  // namespace samebytes::testing
