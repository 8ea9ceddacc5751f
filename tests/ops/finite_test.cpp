// all_finite: infinities and NaN anywhere in any of several arrays.
#include <gtest/gtest.h>

#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class FiniteTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(FiniteTest);

TEST_P(FiniteTest, one_value_that_is_not_finite_is_found_wherever_it_stands) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<Dtype> dtypes = real_dtypes();
  dtypes.insert(dtypes.end(), {f16, bf16});
  for (const Dtype dtype : dtypes)
    for (const std::int64_t n :
         {std::int64_t{1}, std::int64_t{17}, is_simulated() ? std::int64_t{97} : std::int64_t{70001}}) {
      const auto answer = [&](const std::vector<double>& values) {
        const Array wide = real_array(values, {n}, has_f64() ? f64 : f32);
        return all_finite({astype(wide, dtype)}).value();
      };
      std::vector<double> values = random_values(n, 3, -60000.0, 60000.0);
      EXPECT_EQ(answer(values), 1.0) << name_of(dtype) << " " << n;
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1})
        for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
          if (n > 17 && bad != infinity && at != n - 1) continue;
          std::vector<double> changed = values;
          changed[static_cast<std::size_t>(at)] = bad;
          EXPECT_EQ(answer(changed), 0.0) << name_of(dtype) << " " << n << " at " << at << ": " << bad;
        }
    }
}

TEST_P(FiniteTest, several_arrays_have_one_answer) {
  const Array good = ones({3, 5}), half = ones({7}, f16), bad = array({1.0f, std::numeric_limits<float>::infinity()});
  EXPECT_EQ(all_finite({good, half}).value(), 1.0);
  EXPECT_EQ(all_finite({good, bad, half}).value(), 0.0);
  EXPECT_EQ(all_finite({good, zeros({0})}).value(), 1.0);
  EXPECT_EQ(all_finite({zeros({0})}).value(), 1.0);
  EXPECT_EQ(all_finite({slice(bad, 0, 0, 1)}).value(), 1.0);
  EXPECT_EQ(all_finite({good}).dtype(), bool_);
  EXPECT_ERROR(all_finite({zeros({2}, i32)}), ArgumentError, "all_finite: needs floating arrays, one is i32 [2]");
}

class SmallShapesFiniteTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesFiniteTest);

TEST_P(SmallShapesFiniteTest, parts_of_every_width) {
  EXPECT_EQ(all_finite({ones({37}), ones({53}, f16), ones({16}, bf16)}).value(), 1.0);
}

}  // namespace
}  // namespace samebytes::testing
