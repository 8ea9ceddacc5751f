// Every pointwise op against the same formula in double, its gradient numerically, odd shapes, dtypes and wrong
// arguments.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

struct UnaryRow {
  const char* name;
  Array (*op)(const Input&);
  double (*reference)(double);
  double low, high;  // of the inputs
  double ulps;       // OpenCL 1.2 table 7.4, doubled for the formula's own steps
};

double gelu_reference(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh_reference(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

const UnaryRow kUnary[] = {
    {"negative", [](const Input& a) { return -a; }, [](double x) { return -x; }, -3, 3, 0},
    {"exp", exp, std::exp, -4, 4, 4},
    {"expm1", expm1, std::expm1, -4, 4, 6},
    {"log", log, std::log, 0.1, 9, 4},
    {"sqrt", sqrt, std::sqrt, 0.1, 9, 3},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.1, 9, 6},
    {"square", square, [](double x) { return x * x; }, -3, 3, 1},
    {"abs", abs, [](double x) { return std::fabs(x); }, -3, 3, 0},
    {"sin", sin, std::sin, -3, 3, 8},
    {"cos", cos, std::cos, -3, 3, 8},
    {"erf", erf, std::erf, -4.5, 4.5, 16},
    {"tanh", tanh, std::tanh, -3, 3, 10},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -5, 5, 8},
    {"relu", relu, [](double x) { return x > 0 ? x : 0; }, -3, 3, 0},
    {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, -5, 5, 10},
    {"gelu", [](const Input& a) { return gelu(a); }, gelu_reference, -3, 3, 64},
    {"gelu_tanh", [](const Input& a) { return gelu(a, GeluForm::tanh); }, gelu_tanh_reference, -3, 3, 64},
    {"add_scalar", [](const Input& a) { return a + 1.5; }, [](double x) { return x + 1.5; }, -3, 3, 1},
    {"subtract_from_scalar", [](const Input& a) { return 1.5 - a; }, [](double x) { return 1.5 - x; }, -3, 3, 1},
    {"multiply_scalar", [](const Input& a) { return a * 0.3; }, [](double x) { return x * 0.3; }, -3, 3, 2},
    {"divide_scalar", [](const Input& a) { return a / 0.3; }, [](double x) { return x / 0.3; }, -3, 3, 4},
    {"divide_into_scalar", [](const Input& a) { return 2.0 / a; }, [](double x) { return 2.0 / x; }, 0.5, 3, 4},
    {"pow", [](const Input& a) { return pow(a, 2.5); }, [](double x) { return std::pow(x, 2.5); }, 0.1, 3, 32},
    {"clip", [](const Input& a) { return clip(a, -1.0, 1.0); }, [](double x) { return std::fmin(1, std::fmax(-1, x)); },
     -3, 3, 0},
};

std::vector<float> spread(std::int64_t n, double low, double high) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(low + (high - low) * static_cast<double>((i * 7919) % 1009) / 1009.0);
  return values;
}

class PointwiseTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(PointwiseTest);

// Floats of all sizes, 2^16 of the 2^32, in an order in which neighbours lie far apart.
std::vector<float> floats_of_all_sizes() {
  std::vector<float> values;
  for (std::uint32_t bits = 0, i = 0; i < (1u << 16); ++i, bits += 2654435769u)
    values.push_back(std::bit_cast<float>(bits));
  return values;
}

TEST_P(PointwiseTest, exponentials_and_logarithms_hold_over_all_floats) {
  struct Row {
    const char* name;
    Array (*op)(const Input&);
    double (*reference)(double);
    double units;  // what OpenCL allows (1.2's table 7.4)
  };
  const std::vector<float> x = floats_of_all_sizes();
  const Array source = array(x, {static_cast<std::int64_t>(x.size())});
  for (const Row& row :
       {Row{"exp", exp, std::exp, 3}, Row{"expm1", expm1, std::expm1, 3}, Row{"log", log, std::log, 3},
        Row{"exp2", exp2, std::exp2, 3}, Row{"log2", log2, std::log2, 3}, Row{"log10", log10, std::log10, 3},
        Row{"sinh", sinh, std::sinh, 4}, Row{"cosh", cosh, std::cosh, 4}, Row{"atanh", atanh, std::atanh, 5},
        Row{"asin", asin, std::asin, 4}, Row{"acos", acos, std::acos, 4}, Row{"atan", atan, std::atan, 5}}) {
    const std::vector<float> y = row.op(source).to_vector<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = row.reference(static_cast<double>(x[i]));
      const auto rounded = static_cast<float>(expected);
      if (std::isnan(expected) || std::isinf(rounded)) {
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(y[i]) : y[i] == rounded) << row.name << " of " << x[i];
        continue;
      }
      // The spacing of floats at the result.
      const double least = std::ldexp(1.0, -149);
      const double unit = expected == 0 ? least : std::max(std::ldexp(1.0, std::ilogb(expected) - 23), least);
      ASSERT_LE(std::fabs(y[i] - expected), row.units * unit) << row.name << " of " << x[i];
    }
  }
}

TEST_P(PointwiseTest, angles_and_remainders_hold_over_all_floats) {
  const std::vector<float> y = floats_of_all_sizes();
  std::vector<float> x(y.rbegin(), y.rend());
  const float corners[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f};
  std::vector<float> first = y;
  for (const float a : corners)
    for (const float b : corners) first.push_back(a), x.push_back(b);
  const Shape shape{static_cast<std::int64_t>(x.size())};
  const std::vector<float> angles = atan2(array(first, shape), array(x, shape)).to_vector<float>();
  const std::vector<float> rests = fmod(array(first, shape), array(x, shape)).to_vector<float>();
  std::vector<float> near = x;  // quotients of few bits
  for (std::size_t i = 0; i < x.size(); ++i) near[i] = first[i] * (0.001f + 0.37f * static_cast<float>(i % 11));
  const std::vector<float> short_rests = fmod(array(first, shape), array(near, shape)).to_vector<float>();
  const auto expect_exact = [](float got, float a, float b) {
    const float expected = std::fmod(a, b);
    ASSERT_EQ(std::isnan(got), std::isnan(expected)) << a << " by " << b;
    if (std::isnan(expected)) return;
    ASSERT_EQ(got, expected) << a << " by " << b;
    ASSERT_EQ(std::signbit(got), std::signbit(expected)) << a << " by " << b;
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::atan2(static_cast<double>(first[i]), static_cast<double>(x[i]));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(angles[i])) << first[i] << ", " << x[i];
    } else {
      const double unit = std::ldexp(1.0, std::max(-149, std::ilogb(expected == 0 ? 1e-60 : expected) - 23));
      ASSERT_LE(std::fabs(angles[i] - expected), 6 * unit) << first[i] << ", " << x[i];
      ASSERT_EQ(std::signbit(angles[i]), std::signbit(expected)) << first[i] << ", " << x[i];
    }
    expect_exact(rests[i], first[i], x[i]);
    expect_exact(short_rests[i], first[i], near[i]);
  }
}

TEST_P(PointwiseTest, unary_values_agree_with_double) {
  for (const UnaryRow& row : kUnary)
    for (const std::int64_t n : {1, 17, 1031}) {
      const std::vector<float> x = spread(n, row.low, row.high);
      const std::vector<float> y = row.op(array(x, {n})).to_vector<float>();
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = row.reference(x[i]);
        EXPECT_NEAR(y[i], expected, (row.ulps + 1) * 6e-8 * std::max(1.0, std::fabs(expected)))
            << row.name << " at " << x[i];
      }
    }
}

TEST_P(PointwiseTest, sine_and_cosine_are_right_far_from_zero) {
  for (const double most : {10.0, 199.0, 1000.0, 1e6}) {
    const std::vector<float> x = spread(1031, -most, most);
    const Array a = array(x, {1031});
    const std::vector<float> sines = sin(a).to_vector<float>(), cosines = cos(a).to_vector<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(sines[i], std::sin(static_cast<double>(x[i])), 9 * 6e-8) << x[i];
      EXPECT_NEAR(cosines[i], std::cos(static_cast<double>(x[i])), 9 * 6e-8) << x[i];
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : sin(array({NAN, infinity, -infinity})).to_vector<float>()) EXPECT_TRUE(std::isnan(value));
}

TEST_P(PointwiseTest, round_takes_halves_to_even) {
  const std::vector<float> x{-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 2.4999998f, 8388609.0f, 1e30f, INFINITY};
  const std::vector<float> expected{-2, -2, 0, 0, 2, 2, 2, 8388609.0f, 1e30f, INFINITY};
  EXPECT_EQ(round(array(x, {10})).to_vector<float>(), expected);
  EXPECT_TRUE(std::isnan(round(array({NAN})).to_vector<float>()[0]));
}

TEST_P(PointwiseTest, unary_gradients_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  for (const UnaryRow& row : kUnary) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(check_gradients([&](std::span<const Array> in) { return row.op(in[0]); },
                                {random_input("src", {13}, 3, row.low + 0.01, row.high)}));
  }
}

TEST_P(PointwiseTest, binary_ops_broadcast_and_have_gradients) {
  const Array a = array({1, 2, 3, 4, 5, 6}, {2, 3}), row = array({10, 20, 30}), column = array({2, 4}, {2, 1});
  EXPECT_EQ((a + row).to_vector<float>(), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  EXPECT_EQ((a * column).to_vector<float>(), (std::vector<float>{2, 4, 6, 16, 20, 24}));
  EXPECT_EQ((row - column).to_vector<float>(), (std::vector<float>{8, 18, 28, 6, 16, 26}));
  EXPECT_EQ((column / row).shape(), (Shape{2, 3}));
  EXPECT_EQ(maximum(a, array({3.5f})).to_vector<float>(), (std::vector<float>{3.5, 3.5, 3.5, 4, 5, 6}));
  if (!has_f64()) return;
  const std::vector<double> x{0.3, -1.2, 2.5, 1.7, -0.4, 0.9}, y{1.5, -2.5, 0.7};
  for (const auto& op : std::vector<std::function<Array(const Array&, const Array&)>>{
           [](const Array&p, const Array&q) { return p + q; }, [](const Array&p, const Array&q) { return p - q; },
           [](const Array&p, const Array&q) { return p * q; }, [](const Array&p, const Array&q) { return p / q; },
           [](const Array&p, const Array&q) { return maximum(p, q); },
           [](const Array&p, const Array&q) { return minimum(p, q); },
           [](const Array&p, const Array&q) { return where(greater(p, q), p * 2.0, q * 3.0); }})
    EXPECT_TRUE(check_gradients([&](std::span<const Array> in) { return square(op(in[0], in[1])); },
                                {{"a", {2, 3}, x}, {"b", {3}, y}}));
}

TEST_P(PointwiseTest, dtypes_convert_and_promote) {
  const Array f = array({-1.5f, 0.0f, 2.5f, 300.0f});
  EXPECT_EQ(astype(f, i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{-1, 0, 2, 300}));
  EXPECT_EQ(astype(f, bool_).to_vector<float>(), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(astype(f, f16).to_vector<float>(), (std::vector<float>{-1.5, 0, 2.5, 300}));
  EXPECT_EQ(astype(array({1.00390625f, 1.01171875f}), bf16).to_vector<float>(),
            (std::vector<float>{1.0f, 1.015625f}));  // ties to even
  const Array i = array(std::vector<std::int32_t>{7, -3, 2'000'000'001}, {3});
  EXPECT_EQ((i + i * i).dtype(), i32);
  EXPECT_EQ((i - array(std::vector<std::int32_t>{1, 1, 1}, {3})).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{6, -4, 2'000'000'000}));
  EXPECT_EQ((astype(f, f16) * f).dtype(), f32);
  EXPECT_EQ((astype(f, f16) + astype(f, f16)).dtype(), f16);
}

TEST_P(PointwiseTest, sixteen_bit_values_are_rounded_at_every_edge_fused_or_not) {
  for (const Dtype dtype : {f16, bf16}) {
    const Array a = astype(array(spread(257, 0.1, 3), {257}), dtype);
    const std::vector<float> fused = ((a * a + a) * a).to_vector<float>();
    const Array square_of = a * a;
    square_of.eval();
    const Array total = square_of + a;
    total.eval();
    EXPECT_EQ(fused, (total * a).to_vector<float>());
  }
}

TEST_P(PointwiseTest, views_are_read_with_their_strides) {
  std::vector<float> values(2 * 3 * 37);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Array a = array(values, {2, 3, 37});
  const Array t = transpose(a, {2, 0, 1}) + 0.0;
  const std::vector<float> moved = t.to_vector<float>();
  for (std::int64_t k = 0; k < 37; ++k)
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 3; ++j)
        EXPECT_EQ(moved[static_cast<std::size_t>((k * 2 + i) * 3 + j)],
                  values[static_cast<std::size_t>((i * 3 + j) * 37 + k)]);
  const std::vector<float> stepped = (slice(a, 2, 1, 37, 5) * 1.0).to_vector<float>();
  EXPECT_EQ(stepped.size(), 2u * 3 * 8);
  EXPECT_EQ(stepped[1], 6.0f);
}

// Walks of a cpu kernel over short rows, against the definition: planes laid side by side, one value for each short
// row, rows and values that change with an axis before.
TEST_P(PointwiseTest, short_and_repeated_rows_are_read_in_any_order) {
  const auto numbered = [](const Shape& shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1021);
    return array(values, shape);
  };
  for (const std::int64_t n : {1, 2, 5})
    for (const std::int64_t rows : {7, 40, 1300})
      for (const std::int64_t inner : {1, 2, 3, 4, 8, 13, 24}) {
        SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(rows) + " x " + std::to_string(inner));
        const Array planes = numbered({n, inner, rows}), dense = numbered({n, rows, inner}),
                    row = numbered({n, 1, inner}) * 2.0, value = numbered({n, 1, 1}) + 3.0,
                    column = numbered({n, rows, 1}) * 0.5;
        eval({planes, dense, row, value, column});
        const Array laid = transpose(planes, {0, 2, 1}) + 0.0;
        const Array gated = dense * row + value;
        const Array both = transpose(planes, {0, 2, 1}) * column - dense;
        const Array halves = astype(transpose(planes, {0, 2, 1}), f16);
        const Array whole = astype(transpose(planes, {0, 2, 1}), i32);
        eval({laid, gated, both, halves, whole});
        const auto at_planes = planes.to_vector<float>(), at_dense = dense.to_vector<float>(),
                   at_row = row.to_vector<float>(), at_value = value.to_vector<float>(),
                   at_column = column.to_vector<float>();
        std::vector<float> want_laid, want_gated, want_both;
        for (std::int64_t a = 0; a < n; ++a)
          for (std::int64_t b = 0; b < rows; ++b)
            for (std::int64_t c = 0; c < inner; ++c) {
              const float of_plane = at_planes[static_cast<std::size_t>((a * inner + c) * rows + b)],
                          of_dense = at_dense[static_cast<std::size_t>((a * rows + b) * inner + c)];
              want_laid.push_back(of_plane);
              want_gated.push_back(of_dense * at_row[static_cast<std::size_t>(a * inner + c)] +
                                   at_value[static_cast<std::size_t>(a)]);
              want_both.push_back(of_plane * at_column[static_cast<std::size_t>(a * rows + b)] - of_dense);
            }
        EXPECT_EQ(laid.to_vector<float>(), want_laid);
        EXPECT_EQ(gated.to_vector<float>(), want_gated);
        EXPECT_EQ(both.to_vector<float>(), want_both);
        EXPECT_EQ(halves.to_vector<float>(), want_laid);
        EXPECT_EQ(whole.to_vector<float>(), want_laid);
      }
}

TEST_P(PointwiseTest, empty_arrays_need_no_launch) {
  EXPECT_TRUE((zeros({0, 3}) * 2.0 + 1.0).to_vector<float>().empty());
}

TEST_P(PointwiseTest, nan_and_infinity_pass_as_in_numpy) {
  const Array x = array({NAN, INFINITY, -INFINITY});
  const std::vector<float> r = relu(x).to_vector<float>();
  EXPECT_TRUE(std::isnan(r[0]));
  EXPECT_EQ(r[1], INFINITY);
  EXPECT_EQ(r[2], 0.0f);
  EXPECT_TRUE(std::isnan(maximum(x, zeros({3})).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(maximum(zeros({3}), x).to_vector<float>()[0]));
}

TEST_P(PointwiseTest, mistakes_are_named_where_they_are_made) {
  const Array a = zeros({2, 3}), b = zeros({4, 3});
  try {
    a + b;
    FAIL() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "add: shapes do not broadcast: a is [2, 3], b is [4, 3]");
  }
  EXPECT_THROW(where(a, a, a), ArgumentError);
  EXPECT_THROW(clip(a, 0, NAN), ArgumentError);
  EXPECT_THROW(a + Array(), ArgumentError);
  EXPECT_THROW(a.host<std::int32_t>(), ArgumentError);
  EXPECT_THROW(transpose(a).host<float>(), ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing
