// rms_norm against its formula in double, its gradients against the formula and numerically.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class RmsNormTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(RmsNormTest);

const Shape kShapes[] = {{1, 1},    {1, 16},   {7, 3}, {3, 5, 64}, {2, 131}, {67, 10},
                         {1, 4099}, {129, 37}, {5},    {1, 2},     {2063, 3}};
constexpr float kEps = 0x1p-10f;

struct Expected {
  std::vector<double> y, dx, dscale;
};
Expected reference(const std::vector<double>& x, const std::vector<double>& scale, const std::vector<double>& dy,
                   std::int64_t rows, std::int64_t columns, double eps) {
  Expected e;
  e.dscale.assign(static_cast<std::size_t>(columns), 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const double* v = x.data() + r * columns;
    const double* d = dy.data() + r * columns;
    long double square = 0, dots = 0;
    for (std::int64_t j = 0; j < columns; ++j) square += v[j] * v[j];
    const double rstd = 1 / std::sqrt(static_cast<double>(square / columns) + eps);
    for (std::int64_t j = 0; j < columns; ++j) {
      const double hat = v[j] * rstd, g = d[j] * scale[static_cast<std::size_t>(j)];
      e.y.push_back(hat * scale[static_cast<std::size_t>(j)]);
      e.dscale[static_cast<std::size_t>(j)] += d[j] * hat;
      dots += g * hat;
    }
    for (std::int64_t j = 0; j < columns; ++j)
      e.dx.push_back(rstd *
                     (d[j] * scale[static_cast<std::size_t>(j)] - v[j] * rstd * static_cast<double>(dots / columns)));
  }
  return e;
}

std::vector<double> rounded(std::vector<double> values, Dtype dtype) {
  if (dtype == f32)
    for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  return values;
}

TEST_P(RmsNormTest, values_and_gradients_are_the_formulas) {
  for (const Dtype dtype : real_dtypes())
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.to_string());
      const std::int64_t columns = shape.back(), rows = shape.rows();
      const auto x = rounded(random_values(shape.size(), 1), dtype), w = rounded(random_values(columns, 2), dtype),
                 dy = rounded(random_values(shape.size(), 4), dtype);
      const Array inputs[] = {real_array(x, shape, dtype), real_array(w, {columns}, dtype)};
      const Expected want = reference(x, w, dy, rows, columns, kEps);
      const Array y = rms_norm(inputs[0], inputs[1], kEps);
      const auto d = gradients(sum(y * real_array(dy, shape, dtype)), inputs);
      EXPECT_TRUE(all_close(y, want.y, 2 * sum_tolerance(dtype, columns)));
      EXPECT_TRUE(all_close(d[0], want.dx, 1024 * sum_tolerance(dtype, columns)));  // times rstd of at most 32, twice
      EXPECT_TRUE(all_close(d[1], want.dscale, 32 * sum_tolerance(dtype, rows)));
    }
}

TEST_P(RmsNormTest, the_scale_may_be_left_out) {
  const auto x = random_values(7 * 19, 1), dy = random_values(7 * 19, 2);
  const Array src = real_array(x, {7, 19}, f32);
  const Expected want = reference(x, std::vector<double>(19, 1.0), dy, 7, 19, kEps);
  const Array y = rms_norm(src, {}, kEps);
  EXPECT_TRUE(all_close(gradients(sum(y * real_array(dy, {7, 19}, f32)), {&src, 1})[0], want.dx, 1e-5));
  EXPECT_TRUE(all_close(y, want.y, 1e-5));
}

TEST_P(RmsNormTest, gradients_agree_with_central_differences) {
  SAMEBYTES_NEEDS_F64();
  const std::vector<GradientInput> inputs = {random_input("src", {2, 3, 17}), random_input("scale", {17})};
  EXPECT_TRUE(check_gradients([](auto x) { return rms_norm(x[0], x[1], 0.01f); }, inputs));
  EXPECT_TRUE(check_gradients([](auto x) { return rms_norm(x[0]); }, {inputs[0]}));
}

TEST_P(RmsNormTest, eps_is_that_of_the_dtype_unless_given) {
  // Of a row of zeros but one small value v the result is v / sqrt(v^2 / 4 + eps).
  const float v = 0x1p-10f;
  const auto result = [&](Dtype dtype, std::optional<float> eps) {
    return rms_norm(astype(array({v, 0, 0, 0}), dtype), {}, eps).to_vector<double>()[0];
  };
  EXPECT_NEAR(result(f32, {}), v / std::sqrt(v * v / 4 + 0x1p-23), 1e-5);
  EXPECT_NEAR(result(f32, 1e-2f), v / std::sqrt(v * v / 4 + 1e-2), 1e-5);
  EXPECT_NEAR(result(f16, {}), v / std::sqrt(v * v / 4 + 0x1p-10), 1e-4);
  EXPECT_NEAR(result(bf16, {}), v / std::sqrt(v * v / 4 + 0x1p-7), 1e-3);
  if (has_f64()) {
    EXPECT_NEAR(result(f64, {}), v / std::sqrt(v * v / 4 + 0x1p-52), 1e-9);
  }
}

TEST_P(RmsNormTest, half_precision_is_computed_in_single) {
  const Array narrow = astype(real_array(random_values(4 * 24), {4, 24}, f32), bf16);
  const Array y = rms_norm(narrow, ones({24}), 1e-5f);
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_TRUE(all_close(y, rms_norm(astype(narrow, f32), {}, 1e-5f).to_vector<double>(), 0x1p-8));
}

TEST_P(RmsNormTest, empty_arrays_have_zero_gradients) {
  const Array inputs[] = {zeros({0, 4}), ones({4})};
  const auto d = gradients(sum(rms_norm(inputs[0], inputs[1])), inputs);
  EXPECT_EQ(d[0].shape(), Shape({0, 4}));
  EXPECT_TRUE(all_close(d[1], std::vector<double>(4, 0.0), 0));
  EXPECT_EQ(rms_norm(zeros({3, 0})).wait().size(), 0);
}

TEST_P(RmsNormTest, wrong_arguments_are_named) {
  EXPECT_ERROR(rms_norm(zeros({4, 3}), zeros({4})), ArgumentError,
               "rms_norm: the last axis of src f32 [4, 3] needs one value each, of f32, scale is f32 [4]");
  EXPECT_ERROR(rms_norm(zeros({4, 3}, i32)), ArgumentError,
               "rms_norm: src must be floating with at least one axis, src is i32 [4, 3]");
  EXPECT_ERROR(rms_norm(zeros({})), ArgumentError,
               "rms_norm: src must be floating with at least one axis, src is f32 []");
  EXPECT_THROW(rms_norm(Array()), ArgumentError);
}

class SmallShapesRmsNormTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesRmsNormTest);

TEST_P(SmallShapesRmsNormTest, forward_and_backward) {
  run([](std::span<const Array> x) { return rms_norm(x[0], x[1]); }, {{11, 37}, {37}});
  run([](std::span<const Array> x) { return rms_norm(x[0]); }, {{3, 5}});
}

}  // namespace
}  // namespace samebytes::testing
