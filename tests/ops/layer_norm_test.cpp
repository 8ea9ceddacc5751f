#include "reference/norms.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class LayerNorm : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LayerNorm);

const Shape kShapes[] = {{1, 1}, {1, 16}, {7, 3}, {3, 5, 64}, {2, 131}, {67, 10}, {1, 4099}, {129, 37}, {5}, {1, 2}};
constexpr float kEps = 0x1p-10f;

std::vector<double> rounded(std::vector<double> values, Dtype dtype) {
  if (dtype == f32)
    for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  return values;
}

TEST_P(LayerNorm, gives_the_reference) {
  for (Dtype dtype : real_dtypes())
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.to_string());
      const std::int64_t columns = shape.back();
      const auto x = rounded(random_values(shape.size(), 1), dtype);
      const auto scale = rounded(random_values(columns, 2), dtype), shift = rounded(random_values(columns, 3), dtype);
      const std::vector<double> one(columns, 1.0), zero(columns, 0.0);
      const Array src = real_array(x, shape, dtype), a = real_array(scale, {columns}, dtype),
                  b = real_array(shift, {columns}, dtype);
      // The mean of a row is rounded once; divided by a standard deviation of at least 1/32.
      const double tolerance = 32 * sum_tolerance(dtype, columns);
      EXPECT_TRUE(all_close(layer_norm(src, a, b, kEps),
                            reference::layer_norm(x, shape.rows(), columns, scale, shift, kEps), tolerance));
      EXPECT_TRUE(all_close(layer_norm(src, {}, {}, kEps),
                            reference::layer_norm(x, shape.rows(), columns, one, zero, kEps), tolerance));
      EXPECT_TRUE(all_close(layer_norm(src, a, {}, kEps),
                            reference::layer_norm(x, shape.rows(), columns, scale, zero, kEps), tolerance));
      EXPECT_TRUE(all_close(layer_norm(src, {}, b, kEps),
                            reference::layer_norm(x, shape.rows(), columns, one, shift, kEps), tolerance));
    }
}

TEST_P(LayerNorm, gradients_give_the_reference) {
  for (Dtype dtype : real_dtypes())
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.to_string());
      const std::int64_t columns = shape.back(), rows = shape.rows();
      const auto x = rounded(random_values(shape.size(), 1), dtype),
                 dy = rounded(random_values(shape.size(), 4), dtype);
      const auto scale = rounded(random_values(columns, 2), dtype);
      const Array inputs[] = {real_array(x, shape, dtype), real_array(scale, {columns}, dtype),
                              zeros({columns}, dtype)};
      const Array y = layer_norm(inputs[0], inputs[1], inputs[2], kEps);
      const auto d = gradients(sum(y * real_array(dy, shape, dtype)), inputs);
      const auto want = reference::layer_norm_gradients(x, dy, rows, columns, scale, kEps);
      EXPECT_TRUE(all_close(d[0], want.dx, 1024 * sum_tolerance(dtype, columns)));  // times rstd of at most 32, twice
      EXPECT_TRUE(all_close(d[1], want.dscale, 32 * sum_tolerance(dtype, rows)));
      EXPECT_TRUE(all_close(d[2], want.dshift, 32 * sum_tolerance(dtype, rows)));
    }
}

TEST_P(LayerNorm, gradients_agree_with_central_differences) {
  SAMEBYTES_NEEDS_F64();
  for (const Shape& shape : {Shape{5, 7}, Shape{2, 3, 17}, Shape{11, 2}}) {
    const std::int64_t c = shape.back();
    const std::vector<GradientInput> inputs = {random_input("src", shape), random_input("scale", {c}),
                                               random_input("shift", {c})};
    EXPECT_TRUE(check_gradients([](auto x) { return layer_norm(x[0], x[1], x[2], 0.01f); }, inputs));
    EXPECT_TRUE(check_gradients([](auto x) { return layer_norm(x[0], {}, {}, 0.01f); }, {inputs[0]}));
    EXPECT_TRUE(check_gradients([](auto x) { return layer_norm(x[0], {}, x[1], 0.01f); }, {inputs[0], inputs[2]}));
  }
}

TEST_P(LayerNorm, a_large_mean_costs_no_accuracy) {
  const auto x = rounded(random_values(3 * 1000, 1, 1e4 - 2, 1e4 + 2), f32);
  const std::vector<double> one(1000, 1.0), zero(1000, 0.0);
  // What rounding the mean of 1e4 to f32 alone may cost.
  EXPECT_TRUE(
      all_close(layer_norm(real_array(x, {3, 1000}, f32)), reference::layer_norm(x, 3, 1000, one, zero, 1e-5), 1e-3));
}

TEST_P(LayerNorm, empty_arrays_have_zero_gradients) {
  const Array inputs[] = {zeros({0, 4}), ones({4}), zeros({4})};
  const Array y = layer_norm(inputs[0], inputs[1], inputs[2]);
  EXPECT_EQ(y.wait().size(), 0);
  const auto d = gradients(sum(y), inputs);
  EXPECT_EQ(d[0].shape(), Shape({0, 4}));
  EXPECT_TRUE(all_close(d[1], std::vector<double>(4, 0.0), 0));
  EXPECT_EQ(layer_norm(zeros({3, 0})).wait().size(), 0);
}

TEST_P(LayerNorm, half_precision_is_computed_in_single) {
  const auto x = random_values(4 * 24, 1);
  const Array narrow = astype(real_array(x, {4, 24}, f32), bf16);
  const Array y = layer_norm(narrow, ones({24}), zeros({24}));
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_TRUE(all_close(y, layer_norm(astype(narrow, f32)).to_vector<double>(), 0x1p-8));
}

TEST_P(LayerNorm, wrong_arguments_are_named) {
  EXPECT_THROW(layer_norm(zeros({4, 3}, i32)), ArgumentError);
  EXPECT_THROW(layer_norm(zeros({4, 3}), zeros({4})), ArgumentError);
  EXPECT_THROW(layer_norm(zeros({4, 3}), {}, zeros({3}, i32)), ArgumentError);
  EXPECT_THROW(layer_norm(zeros({})), ArgumentError);
  try {
    layer_norm(zeros({4, 3}), zeros({4}));
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(),
                 "layer_norm: the last axis of src f32 [4, 3] needs one value each, of f32, scale is f32 [4]");
  }
}

}  // namespace
}  // namespace samebytes::testing
