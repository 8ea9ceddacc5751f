#include <gtest/gtest.h>

#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class Concat : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Concat);

TEST_P(Concat, slices_of_the_result_are_the_inputs) {
  for (int axis : {0, 1, 2, -1}) {
    std::vector<Array> parts;
    const int place = axis < 0 ? axis + 3 : axis;
    for (std::int64_t n : {3, 1, 0, 37}) {
      Shape shape{5, 4, 7};
      shape[place] = n;
      parts.push_back(real_array(random_values(shape.size(), static_cast<std::uint64_t>(n)), shape, f32));
    }
    const Array whole = concat(parts, axis);
    EXPECT_EQ(whole.shape()[place], 41);
    std::int64_t start = 0;
    for (const Array& part : parts) {
      EXPECT_TRUE(same_bytes(slice(whole, axis, start, start + part.shape()[place]), part)) << "axis " << axis;
      start += part.shape()[place];
    }
  }
}

TEST_P(Concat, takes_every_dtype) {
  for (Dtype dtype : {f32, f16, bf16, i32, u8, bool_}) {
    const Array a = astype(array({1.0f, 0.0f, 1.0f}), dtype), b = astype(array({0.0f, 1.0f}), dtype);
    const Array whole = concat({a, b}, 0);
    EXPECT_EQ(whole.dtype(), dtype);
    EXPECT_EQ(whole.to_vector<float>(), (std::vector<float>{1, 0, 1, 0, 1}));
  }
  if (has_f64()) {
    const std::vector<double> values{1.25, 1e300};
    const Array a = array(std::span<const double>(values), {2});
    EXPECT_EQ(concat({a, a}, 0).to_vector<double>(), (std::vector<double>{1.25, 1e300, 1.25, 1e300}));
  }
}

TEST_P(Concat, long_rows_and_views_are_copied_whole) {
  const Array a = transpose(real_array(random_values(20011 * 2), {20011, 2}, f32));
  const Array whole = concat({a, a}, 1);
  EXPECT_TRUE(same_bytes(slice(whole, 1, 20011, 40022), a));
  EXPECT_TRUE(same_bytes(slice(whole, 1, 0, 20011), a));
}

TEST_P(Concat, gradients_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  for (int axis : {0, 1})
    EXPECT_TRUE(check_gradients(
        [axis](auto x) {
          return square(concat({x[0], x[1], x[0]}, axis));
        },
        {random_input("a", {3, 3}), random_input("b", axis == 0 ? Shape{2, 3} : Shape{3, 2})}));
}

TEST_P(Concat, one_array_is_itself) {
  const Array a = ones({2});
  EXPECT_EQ(concat({a}, 0).node(), a.node());
}

TEST_P(Concat, wrong_arguments_are_refused) {
  const Array a = ones({2, 3});
  EXPECT_ERROR(concat(std::span<const Array>(), 0), ArgumentError, "concat: expected at least one array, got none");
  EXPECT_ERROR((concat({a, a}, 2)), ArgumentError, "concat: axis 2 is out of range for src f32 [2, 3]");
  EXPECT_ERROR((concat({a, ones({3, 3})}, 1)), ArgumentError,
               "concat: all sizes but those of axis 1 must agree, array 0 is f32 [2, 3], array 1 is f32 [3, 3]");
}

TEST_P(Concat, arrays_of_several_types_take_the_type_that_holds_all) {
  const Array whole = array<std::int32_t>({1, 2}), real = array({0.5f, 1.5f});
  const Array wrt[] = {real};
  EXPECT_EQ(concat({whole, real}, 0).dtype(), f32);
  EXPECT_EQ(concat({whole, real}, 0).to_vector<float>(), (std::vector<float>{1, 2, 0.5f, 1.5f}));
  EXPECT_EQ(concat({astype(real, f16), astype(real, bf16)}, 0).dtype(), f32);
  EXPECT_EQ(stack({whole, astype(real, f64)}).dtype(), f64);
  EXPECT_EQ(gradients(sum(concat({whole, real}, 0) * 2.0), wrt)[0].to_vector<float>(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace samebytes::testing
