// Reductions made of other ops, parts of matrices and sums of products, against the same in plain loops or known
// values.
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
const double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

class StatisticsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(StatisticsTest);

TEST_P(StatisticsTest, have_the_values_of_their_formulas) {
  const Array x = array({1, 5, 2, 4, 4, 10}, {2, 3});
  const struct {
    const char* what;
    Array came;
    Values want;
  } cases[] = {
      {"var", var(x, 1), {13.0 / 3, 12}},
      {"var of NumPy", var(x, {}, false, 0), {74.0 / 9}},
      {"std", std(x, 0, true), {std::sqrt(4.5), std::sqrt(0.5), std::sqrt(32.0)}},
      {"var of one", var(array({3})), {kNan}},
      {"norm", norm(x, 2, 1), {std::sqrt(30.0), std::sqrt(132.0)}},
      {"norm 1", norm(-x, 1), {26}},
      {"norm 3", norm(x, 3, 1), {std::cbrt(134.0), std::cbrt(1128.0)}},
      {"norm inf", norm(-x, kInfinity, 0), {4, 5, 10}},
      {"norm -inf", norm(-x, -kInfinity), {1}},
      {"norm 0", norm(relu(x - 2), 0, 1), {1, 3}},
      {"logsumexp", logsumexp(array({1000, 1000, -1000}), 0), {1000 + std::log(2.0)}},
      {"logsumexp of nothing", logsumexp(full({2}, -kInfinity)), {-kInfinity}},
      {"prod", prod(x, 1), {10, 160}},
      {"prod of columns", prod(x, 0, true), {4, 20, 20}},
      {"prod of all", prod(astype(x, i32)), {1600}},
      {"prod of nothing", prod(zeros({0, 2}), 0), {1, 1}},
      {"argmin", argmin(x, 1), {0, 0}},
      {"argmin of whole numbers", argmin(array<std::int32_t>({3, std::numeric_limits<std::int32_t>::min(), 4})), {1}},
      {"median", median(x, 1), {2, 4}},
      {"median of an even number", median(reshape(x, {6})), {4}},
      {"quantile", quantile(x, 0.25, 0, true), {1.75, 4.25, 4}},
      {"quantile of NaN", quantile(array({1, static_cast<float>(kNan)}), 0), {kNan}},
      {"bincount", bincount(array<std::int32_t>({1, 1, 3, -1, 9}), 4), {0, 2, 0, 1}},
      {"histogram", histogram(array({0, 0.5f, 1, 1.99f, 2, 2.5f, -1}), 2, 0, 2), {2, 3}},
      {"tril", tril(reshape(arange(1, 7), {2, 3})), {1, 0, 0, 4, 5, 0}},
      {"triu", triu(reshape(arange(1, 7), {2, 3}), 1), {0, 2, 3, 0, 0, 6}},
      {"meshgrid", meshgrid({array({1, 2}), array({3, 4, 5})})[1], {3, 4, 5, 3, 4, 5}},
      {"einsum of matrices", einsum("ij, jk -> ki", {x, transpose(x)}), {30, 44, 44, 132}},
      {"einsum of one", einsum("ij->j", {x}), {5, 9, 12}},
      {"einsum without an arrow", einsum("ba", {x}), {1, 4, 5, 4, 2, 10}},
      {"einsum, an outer product", einsum("i,j", {array({1, 2}), array({3, 4})}), {3, 4, 6, 8}},
      {"einsum of three", einsum("ij,j,i->", {x, array({1, 1, 1}), array({1, 2})}), {44}},
      {"reciprocal", reciprocal(array({4})), {0.25}}};
  for (const auto& c : cases) EXPECT_TRUE(all_close(c.came, c.want, 2e-5)) << c.what;
}

TEST_P(StatisticsTest, have_the_gradients_of_their_formulas) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput x = random_input("x", {2, 3}), y = random_input("y", {3, 4}, 2);
  const std::pair<const char*, ArrayFunction> cases[] = {
      {"var and std", [](auto v) { return var(v[0], 1) + std(v[0], 1); }},
      {"norms", [](auto v) { return norm(v[0], 2, 1) * norm(v[0], 3, 1) + norm(v[0], 1, 1); }},
      {"logsumexp", [](auto v) { return logsumexp(v[0], 0, true); }},
      {"prod and quantile", [](auto v) { return prod(v[0], 1) + quantile(v[0], 0.3, 1); }},
      {"triangles", [](auto v) { return square(tril(v[0])) + triu(v[0], 1) * v[0]; }}};
  for (const auto& [what, f] : cases) EXPECT_TRUE(check_gradients(f, {x})) << what;
  EXPECT_TRUE(check_gradients([](auto v) { return einsum("ij,jk->ki", v); }, {x, y}));
  const std::vector<Array> wrt{zeros({3})};
  EXPECT_TRUE(all_close(gradients(norm(wrt[0]), wrt)[0], Values{0, 0, 0}, 0));
}

// Against sums over all indices in double: repeated letters, dots that broadcast, no arrow, views.
TEST_P(StatisticsTest, einsum_takes_diagonals_and_dots) {
  const auto of = [](const Shape& shape, int seed) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 7 + std::size_t(seed)) % 11) - 5;
    return array(values, shape);
  };
  const Array square_one = of({3, 3}, 1), cubes = of({2, 3, 3, 3}, 2), a = of({2, 1, 3, 4}, 3), b = of({5, 4, 2}, 4);
  const auto at = [](const Array& x, std::initializer_list<std::int64_t> index) {
    std::int64_t flat = 0;
    int axis = 0;
    for (const std::int64_t i : index) flat = flat * x.shape()[axis++] + i;
    return x.to_vector<double>()[static_cast<std::size_t>(flat)];
  };
  Values trace{0}, main, twisted(6, 0.0), products(2 * 5 * 3 * 2, 0.0), totals(3, 0.0);
  for (int i = 0; i < 3; ++i) {
    trace[0] += at(square_one, {i, i});
    main.push_back(at(square_one, {i, i}));
    for (int n = 0; n < 2; ++n) twisted[std::size_t(i * 2 + n)] = at(cubes, {n, i, i, i});
  }
  for (int n = 0; n < 2; ++n)
    for (int m = 0; m < 5; ++m)
      for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 2; ++k)
          for (int j = 0; j < 4; ++j)
            products[std::size_t(((n * 5 + m) * 3 + i) * 2 + k)] += at(a, {n, 0, i, j}) * at(b, {m, j, k});
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) totals[std::size_t(i)] += at(a, {n, 0, i, j});
  EXPECT_TRUE(all_close(einsum("ii", {square_one}), trace, 1e-5));
  EXPECT_TRUE(all_close(einsum("ii->i", {transpose(square_one)}), main, 1e-5));
  EXPECT_TRUE(all_close(einsum("niii->in", {cubes}), twisted, 1e-5));
  EXPECT_TRUE(all_close(einsum("...ij,...jk->...ik", {a, b}), products, 1e-5));
  EXPECT_TRUE(all_close(einsum("...ij, ...jk", {a, b}), products, 1e-5));
  EXPECT_EQ(einsum("...ij,...jk->ik...", {a, b}).shape(), (Shape{3, 2, 2, 5}));
  EXPECT_TRUE(all_close(einsum("...ij->i", {a}), totals, 1e-5));
  EXPECT_EQ(einsum("...,...", {a, a}).shape(), a.shape());
  EXPECT_EQ(einsum("...ii->...", {zeros({0, 3, 3})}).shape(), (Shape{0}));
}

TEST_P(StatisticsTest, einsum_of_diagonals_and_dots_has_its_gradient) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput x = random_input("x", {2, 3, 3}), y = random_input("y", {1, 3, 2}, 2);
  EXPECT_TRUE(check_gradients([](auto v) { return square(einsum("nii->in", {v[0]})); }, {x}));
  EXPECT_TRUE(check_gradients([](auto v) { return square(einsum("...ij,...jk->ik...", v)); }, {x, y}));
}

TEST_P(StatisticsTest, elementary_functions_have_values_and_gradients) {
  const auto all = [](const Array& x) {  // of values between 0 and 1
    return concat({asin(x), acos(x), atan(x), sinh(x), cosh(x), asinh(x), acosh(x + 1), atanh(x), exp2(x), log1p(x),
                   log2(x), log10(x), tan(x), atan2(x, x + 1), fmod(x, x * 0.7), ceil(x), trunc(x * 3)},
                  0);
  };
  const Array x = array({0.2f, 0.4f, 0.85f});
  Values want;
  double (*const f[])(double) = {std::asin,
                                 std::acos,
                                 std::atan,
                                 std::sinh,
                                 std::cosh,
                                 std::asinh,
                                 [](double v) { return std::acosh(v + 1); },
                                 std::atanh,
                                 std::exp2,
                                 std::log1p,
                                 std::log2,
                                 std::log10,
                                 std::tan,
                                 [](double v) { return std::atan2(v, v + 1); },
                                 [](double v) { return v * 0.3; },
                                 std::ceil,
                                 [](double v) { return std::trunc(v * 3); }};
  for (const auto& function : f)
    for (const double v : x.to_vector<double>()) want.push_back(function(v));
  EXPECT_TRUE(all_close(all(x), want, 4e-6));
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients([&](auto v) { return all(v[0]); }, {{"x", {3}, {0.2, 0.4, 0.85}}}));
}

TEST_P(StatisticsTest, wrong_arguments_are_named) {
  const Array x = zeros({2, 3});
  EXPECT_ERROR(var(x, {0, -2}), ArgumentError, "var: axis 0 is named twice, src is f32 [2, 3]");
  EXPECT_ERROR(quantile(x, 2), ArgumentError, "quantile: q must be between 0 and 1, got 2.000000, src is f32 [2, 3]");
  EXPECT_ERROR(bincount(x, 3), ArgumentError, "bincount: needs i32, i64 or u8 numbers, ids is f32 [2, 3]");
  EXPECT_ERROR(tril(zeros({3})), ArgumentError, "tril: needs two axes or more, src is f32 [3]");
  EXPECT_ERROR(meshgrid({x}), ArgumentError, "meshgrid: needs arrays of one axis, one of them is f32 [2, 3]");
  EXPECT_ERROR(einsum("ii->i", {x}), ArgumentError,
               "einsum: axes of one letter must have one size, those of i have 2 and 3, got \"ii->i\"");
  EXPECT_ERROR(einsum("i..->i", {x}), ArgumentError,
               "einsum: expected dots as three in a row, once in an array, got \"i..->i\"");
  EXPECT_ERROR(einsum("...ijk->i", {x}), ArgumentError,
               "einsum: expected one letter for each axis of an array of rank 2, got \"...ijk->i\"");
  EXPECT_ERROR(einsum("...,...", {x, transpose(x)}), ArgumentError,
               "einsum: axes of one letter must have one size, those of the dots have 2 and 3, got \"...,...\"");
  EXPECT_ERROR(einsum("ij,jk", {x, x}), ArgumentError,
               "einsum: axes of one letter must have one size, those of j have 3 and 2, got \"ij,jk\"");
}

}  // namespace
}  // namespace samebytes::testing
