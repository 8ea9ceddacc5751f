// Powers: every exponent against pow in double, from denormals to the largest numbers, and at 0, infinity and NaN,
// where a vector's lanes must not spoil each other; the gradient where the power before it is none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class PowTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(PowTest);

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// Products and roots, reciprocals of them, and what only pow does.
const double kExponents[] = {0,  0.5, 1,  1.5, 2,    2.5, 3, 3.5, 4,  5,    6,   7,    8,       -0.5,  -1,     -1.5,
                             -2, -3,  -4, 2.3, -2.3, 0.7, 9, -5,  31, -2.5, 4.5, 1e-3, 1.0 / 3, 100.5, -100.5, 101};

std::vector<double> bases(Dtype dtype) {
  const int range = dtype == f64 ? 300 : 37;
  const double special[] = {0, -0.0, kInf, -kInf, kNan, 1, -1, 2, -2, 1e-40, -1e-40, 3e38, -3e38};
  std::vector<double> x;
  const std::vector<double> mantissas = random_values(1200, 5, 1, 10), exponents = random_values(1200, 6, -1, 1);
  for (std::size_t i = 0; i < mantissas.size(); ++i) {
    if (i % 5 == 2) x.push_back(special[i / 5 % std::size(special)]);  // among others in one vector
    const double sign = i % 3 == 0 ? -1 : 1;
    x.push_back(sign * (i % 2 == 0 ? mantissas[i] * std::pow(10, std::floor(exponents[i] * range)) : mantissas[i] / 3));
  }
  if (dtype == f32)
    for (double& v : x) v = static_cast<float>(v);
  return x;
}

TEST_P(PowTest, agrees_with_pow_in_double_over_the_whole_range) {
  for (const Dtype dtype : real_dtypes()) {
    const std::vector<double> x = bases(dtype);
    const double epsilon = dtype == f64 ? 0x1p-52 : 0x1p-23, least = dtype == f64 ? 0x1p-1022 : 0x1p-126;
    for (const double exponent : kExponents) {
      const double e = dtype == f64 ? exponent : static_cast<float>(exponent);
      const std::vector<double> y =
          pow(real_array(x, {static_cast<std::int64_t>(x.size())}, dtype), exponent).to_vector<double>();
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = std::pow(x[i], e), want = dtype == f64 ? exact : static_cast<float>(exact);
        if (std::isnan(want) ? std::isnan(y[i]) : y[i] == want) continue;
        // Eight roundings; what is near the largest number may have become infinity.
        const double error = std::abs(y[i] - exact), allowed = 8 * epsilon * std::max(std::abs(exact), least);
        const bool is_edge = std::isinf(y[i]) && std::abs(exact) > (dtype == f64 ? 1e308 : 3.4e38);
        ASSERT_TRUE(error <= allowed || is_edge)
            << name_of(dtype) << " pow(" << x[i] << ", " << exponent << ") = " << y[i] << ", wanted " << want;
      }
    }
  }
}

TEST_P(PowTest, keeps_a_16_bit_dtype_and_rounds_once) {
  const Array x = array({1.5f, 3.0f, -2.0f});
  for (const Dtype dtype : {f16, bf16}) {
    EXPECT_EQ(pow(astype(x, dtype), 3).dtype(), dtype);
    EXPECT_EQ(pow(astype(x, dtype), 3).to_vector<float>(), (std::vector<float>{3.375, 27, -8}));
  }
  EXPECT_EQ(pow(array(std::vector<std::int32_t>{2, -3}, {2}), 2).dtype(), f32);
}

TEST_P(PowTest, gradients_at_zero_are_those_of_the_power) {
  const std::pair<double, double> want[] = {{0, 0}, {1, 1}, {1.5, 0}, {2, 0},      {2.3, 0},    {2.5, 0},
                                            {3, 0}, {4, 0}, {9, 0},   {0.5, kInf}, {0.7, kInf}, {-1, -kInf}};
  for (const auto& [exponent, slope] : want) {
    const Array x = array({0.0f, 2.0f});
    const std::vector<double> dx = gradients(sum(pow(x, exponent)), std::vector<Array>{x})[0].to_vector<double>();
    EXPECT_EQ(dx[0], slope) << exponent;
    EXPECT_NEAR(dx[1], exponent * std::pow(2.0, exponent - 1), 1e-5 * (1 + std::abs(dx[1]))) << exponent;
  }
}

TEST_P(PowTest, of_an_array_in_another_engine_belongs_to_that_engine) {
  const Array x = array({3.0f});
  const auto other = make_engine(GetParam());
  const EngineScope scope(*other);
  for (const double exponent : {0.0, 1.0, 2.0, 0.5, 2.3}) EXPECT_NO_THROW(pow(x, exponent) + x) << exponent;
}

TEST_P(PowTest, gradients_match_central_differences) {
  SAMEBYTES_NEEDS_F64();
  for (const double exponent : kExponents) {
    if (std::abs(exponent) > 10) continue;
    EXPECT_TRUE(check_gradients([&](std::span<const Array> x) { return pow(x[0], exponent); },
                                {random_input("x", {5}, 1, 0.5, 1.5)}))
        << exponent;
    if (exponent != std::floor(exponent)) continue;
    EXPECT_TRUE(check_gradients([&](std::span<const Array> x) { return pow(x[0], exponent); },
                                {random_input("x", {5}, 1, -1.5, -0.5)}))
        << exponent;
  }
}

}  // namespace
}  // namespace samebytes::testing
