// round_stochastic: only the two neighbours come, the mean is the value, and chance depends on nothing but the key, the
// element and its salt.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class RoundingTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(RoundingTest);

// The neighbour in bf16 towards zero, and the distance to the next.
float toward_zero(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0xffff0000u;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
float step_of(float x) { return std::ldexp(1.0f, std::ilogb(x) - 7); }

Array salt_of(std::int64_t n) { return real_array(random_values(n, 9), {n}, f32); }

TEST_P(RoundingTest, the_mean_is_the_value_and_only_its_neighbours_come) {
  const std::int64_t n = is_simulated() ? 37 : 16411;
  for (const float value : {1.0f, 1.0f + 0x1p-10f, 0.3f, -0.3f, 3.9990234f, 1.17e-33f, 5e-39f, 0.0f}) {
    const std::vector<float> all =
        round_stochastic(full({n}, static_cast<double>(value)), salt_of(n), {3, 5}).to_vector<float>();
    const float low = toward_zero(value), step = std::abs(value) < 1e-38f ? 0x1p-133f : step_of(value);
    const double share = value == 0.0f ? 0.0 : std::abs(static_cast<double>(value - low)) / static_cast<double>(step);
    double away = 0.0;
    for (const float one : all) {
      const bool is_low = one == low, is_high = one == low + std::copysign(step, value);
      ASSERT_TRUE(is_low || is_high) << value << " became " << one;
      away += is_low ? 0.0 : 1.0;
    }
    const double deviation = std::sqrt(share * (1.0 - share) / static_cast<double>(n));
    EXPECT_NEAR(away / static_cast<double>(n), share, 5.0 * deviation) << value;
  }
}

TEST_P(RoundingTest, what_has_16_bits_already_and_what_is_not_finite_stays) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1.0f, -2.5f, 0.0f, infinity, -infinity, 0x1.fep+127f};
  const Array a = array(values, Shape{6});
  EXPECT_EQ(round_stochastic(a, salt_of(6), {1, 2}).to_vector<float>(), values);
  const Array nan = full({3}, std::numeric_limits<double>::quiet_NaN());
  for (const float one : round_stochastic(nan, salt_of(3), {1, 2}).to_vector<float>()) EXPECT_TRUE(std::isnan(one));
}

TEST_P(RoundingTest, a_part_is_rounded_as_in_the_whole_and_a_key_gives_the_same_bytes) {
  const std::int64_t n = 101;
  const Array a = real_array(random_values(n, 4), {n}, f32), salt = salt_of(n);
  const auto rounded = [&](RandomKey key, std::int64_t begin) {
    return round_stochastic(slice(a, 0, begin, n), slice(salt, 0, begin, n), key).to_vector<float>();
  };
  const std::vector<float> whole = rounded({7, 8}, 0);
  EXPECT_EQ(rounded({7, 8}, 0), whole);
  EXPECT_EQ(rounded({7, 8}, 53), std::vector<float>(whole.begin() + 53, whole.end()));
  EXPECT_NE(rounded({7, 9}, 0), whole);
  EXPECT_NE(rounded({8, 8}, 0), whole);
  EXPECT_EQ(round_stochastic(a, salt, {7, 8}).dtype(), bf16);
  EXPECT_EQ(round_stochastic(zeros({0}), zeros({0}), {7, 8}).shape(), Shape{0});
}

// For one element the chances of many keys are independent: over 2000 keys each of two elements goes up as often as it
// should, and both together as often as the product says.
TEST_P(RoundingTest, keys_are_independent) {
  if (is_simulated()) GTEST_SKIP();
  const Array a = array({1.0f + 0x1p-8f, 1.0f + 0x1p-8f}), salt = array({0.1f, 0.2f});
  constexpr int kKeys = 2000;
  int first = 0, second = 0, both = 0, repeated = 0;
  bool before = false;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const std::vector<float> one = round_stochastic(a, salt, {1, key}).to_vector<float>();
    const bool up0 = one[0] > 1.0f, up1 = one[1] > 1.0f;
    first += up0;
    second += up1;
    both += up0 && up1;
    repeated += up0 == before;
    before = up0;
  }
  const double deviation = std::sqrt(0.25 * kKeys);
  EXPECT_NEAR(first, 0.5 * kKeys, 4 * deviation);
  EXPECT_NEAR(second, 0.5 * kKeys, 4 * deviation);
  EXPECT_NEAR(both, 0.25 * kKeys, 4 * deviation);
  EXPECT_NEAR(repeated, 0.5 * kKeys, 4 * deviation);
}

TEST_P(RoundingTest, the_place_in_a_cell_rounds_equal_values_apart) {
  const std::int64_t n = is_simulated() ? 37 : 16411;
  const Array flat = cell(zeros({n}, bf16), "flat");
  const auto rounded = [&](RandomKey key) {
    return round_stochastic_into(flat, full({n}, 1.0 + 0x1p-9), key).to_vector<float>();
  };
  const std::vector<float> values = rounded({3, 5});
  double up = 0.0, alike = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(values[i] == 1.0f || values[i] == 1.0f + 0x1p-7f) << values[i];
    up += values[i] > 1.0f ? 1.0 : 0.0;
    alike += i > 0 && values[i] == values[i - 1] ? 1.0 : 0.0;
  }
  const double count = static_cast<double>(n);
  EXPECT_NEAR(up / count, 0.25, 5.0 * std::sqrt(0.25 * 0.75 / count));
  EXPECT_NEAR(alike / count, 0.625, 5.0 * std::sqrt(0.25 / count));  // neighbours are independent
  EXPECT_EQ(rounded({3, 5}), values);
  EXPECT_NE(rounded({3, 6}), values);
}

TEST_P(RoundingTest, wrong_arguments_are_named) {
  const Array wide = cell(zeros({2}), "wide"), narrow = cell(zeros({2}, bf16), "narrow");
  EXPECT_ERROR(round_stochastic_into(wide, zeros({2}), {}), ArgumentError,
               "round_stochastic_into: needs a cell that is bf16 and of the array's shape, cell is f32 [2]");
  EXPECT_ERROR(round_stochastic_into(narrow, zeros({1, 2}), {}), ArgumentError,
               "round_stochastic_into: needs an f32 array of one axis, src is f32 [1, 2]");
  EXPECT_ERROR(round_stochastic(zeros({2}, bf16), zeros({2}), {}), ArgumentError,
               "round_stochastic: needs an f32 array, src is bf16 [2]");
  EXPECT_ERROR(round_stochastic(zeros({2}), zeros({3}), {}), ArgumentError,
               "round_stochastic: needs salt that is f32 and of the array's shape, salt is f32 [3]");
}

class SmallShapesRoundingTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesRoundingTest);

TEST_P(SmallShapesRoundingTest, odd_length) {
  for (const float one : round_stochastic(full({37}, 0.7), salt_of(37), {1, 1}).to_vector<float>())
    EXPECT_NEAR(one, 0.7f, 0.004f);
  const Array flat = cell(zeros({37}, bf16), "flat");
  for (const float one : round_stochastic_into(flat, full({37}, 0.7), {1, 1}).to_vector<float>())
    EXPECT_NEAR(one, 0.7f, 0.004f);
}

}  // namespace
}  // namespace samebytes::testing
