#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class Fill : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Fill);

TEST_P(Fill, full_holds_the_value_in_every_dtype) {
  for (std::int64_t n : {1, 17, 5003})
    for (Dtype dtype : {f32, f16, bf16, i32, u8, bool_}) {
      const Array a = full({n}, 1, dtype);
      EXPECT_EQ(a.dtype(), dtype);
      EXPECT_EQ(a.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(n), 1.0f));
    }
  if (has_f64()) {
    EXPECT_EQ(full({}, 0.1, f64).value(), 0.1);
  }
  EXPECT_EQ(full({}, -2147483648.0, i32).value(), -2147483648.0);
  EXPECT_EQ(zeros({0, 3}).to_vector<float>().size(), 0u);
  EXPECT_TRUE(std::isnan(full({}, std::numeric_limits<double>::quiet_NaN()).value()));
}

TEST_P(Fill, arange_counts_like_numpy) {
  EXPECT_EQ(arange(0, 5).to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(1, 2, 0.25).to_vector<float>(), (std::vector<float>{1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(arange(3, -2, -2, i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, 1, -1}));
  EXPECT_EQ(arange(5, 5).shape(), (Shape{0}));
  EXPECT_EQ(arange(0, 300, 100, u8).dtype(), u8);
  const std::vector<float> many = arange(0, 70001).to_vector<float>();
  EXPECT_EQ(many[70000], 70000);
}

TEST_P(Fill, wrong_arguments_are_refused) {
  EXPECT_ERROR((full({2}, 300, u8)), ArgumentError, "full: the value must fit u8, got 300");
  EXPECT_ERROR((full({2}, 0.5, i32)), ArgumentError, "full: the value must fit i32, got 0.5");
  EXPECT_ERROR(arange(0, 1, 0), ArgumentError,
               "arange: start, stop and step must be finite and step not 0, got 0, 1, 0");
  EXPECT_ERROR(arange(0.5, 3, 1, i32), ArgumentError,
               "arange: start and step must be whole numbers for i32, got 0.5 and 1");
}

}  // namespace
}  // namespace samebytes::testing
