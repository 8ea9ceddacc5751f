// Activations against their formulas in double, their gradients numerically, at their corners and far from them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double clipped(double x, double low, double high) { return std::min(std::max(x, low), high); }

struct Row {
  const char* name;
  Array (*op)(const Input&);
  double (*reference)(double);
  double (*slope)(double);  // PyTorch's derivative, also at corners
};

const Row kRows[] = {
    {"leaky_relu", [](const Input& a) { return leaky_relu(a); }, [](double x) { return x > 0 ? x : 0.01 * x; },
     [](double x) { return x > 0 ? 1 : 0.01; }},
    {"prelu", [](const Input& a) { return prelu(a, full({1}, 0.25, a.dtype())); },
     [](double x) { return x > 0 ? x : 0.25 * x; }, [](double x) { return x > 0 ? 1 : 0.25; }},
    {"elu", [](const Input& a) { return elu(a, 1.5); }, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); },
     [](double x) { return x > 0 ? 1 : 1.5 * std::exp(x); }},
    {"selu", selu, [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); },
     [](double x) { return 1.0507009873554805 * (x > 0 ? 1 : 1.6732632423543772 * std::exp(x)); }},
    {"softplus", [](const Input& a) { return softplus(a); }, softplus_of, sigmoid_of},
    {"softplus(2, 3)", [](const Input& a) { return softplus(a, 2, 3); },
     [](double x) { return 2 * x > 3 ? x : softplus_of(2 * x) / 2; },
     [](double x) { return 2 * x > 3 ? 1 : sigmoid_of(2 * x); }},
    {"mish", mish, [](double x) { return x * std::tanh(softplus_of(x)); },
     [](double x) {
       const double t = std::tanh(softplus_of(x));
       return t + x * (1 - t * t) * sigmoid_of(x);
     }},
    {"relu6", relu6, [](double x) { return clipped(x, 0, 6); }, [](double x) { return x > 0 && x < 6 ? 1.0 : 0.0; }},
    {"hard_sigmoid", hard_sigmoid, [](double x) { return clipped(x / 6 + 0.5, 0, 1); },
     [](double x) { return x > -3 && x < 3 ? 1.0 / 6 : 0.0; }},
    {"hard_swish", hard_swish, [](double x) { return x * clipped(x / 6 + 0.5, 0, 1); },
     [](double x) { return x <= -3 ? 0
                           : x < 3 ? x / 3 + 0.5
                                   : 1; }},
    {"log_sigmoid", log_sigmoid, [](double x) { return -softplus_of(-x); }, [](double x) { return sigmoid_of(-x); }},
};
constexpr std::int64_t kCount = static_cast<std::int64_t>(std::size(kRows));

// All of them side by side [kCount, n].
Array all_of(const Array& x) {
  std::vector<Array> results;
  for (const Row& row : kRows) results.push_back(row.op(x));
  return stack(results);
}

class ActivationsTest : public OnDevice {
 protected:
  // Values and slopes of every row at every x.
  void check(const std::vector<double>& x, double tolerance) {
    const std::int64_t n = static_cast<std::int64_t>(x.size());
    const Array src = real_array(x, {n}, f32);
    std::vector<Array> slopes;
    for (const Row& row : kRows) slopes.push_back(gradients(sum(row.op(src)), {&src, 1})[0]);
    const std::vector<double> y = all_of(src).to_vector<double>(), dy = stack(slopes).to_vector<double>();
    for (std::int64_t r = 0; r < kCount; ++r)
      for (std::int64_t i = 0; i < n; ++i) {
        const double v = src.to_vector<double>()[static_cast<std::size_t>(i)];
        const std::size_t at = static_cast<std::size_t>(r * n + i);
        const double value = kRows[r].reference(v), slope = kRows[r].slope(v);
        EXPECT_NEAR(y[at], value, tolerance * std::max(1.0, std::fabs(value))) << kRows[r].name << " at " << v;
        EXPECT_NEAR(dy[at], slope, tolerance * std::max(1.0, std::fabs(slope))) << kRows[r].name << " at " << v;
      }
  }
};
SAMEBYTES_ON_EVERY_DEVICE(ActivationsTest);

TEST_P(ActivationsTest, values_and_slopes_agree_with_double) { check(random_values(67, 5, -9, 9), 4e-6); }

TEST_P(ActivationsTest, corners_and_large_values_are_as_in_pytorch) {
  check({0, -0.0, 6, -3, 3, 1.5, 20, 90, -90, 1e4, -1e4, 1e30, -1e30, 3e38, -3e38}, 4e-6);
}

TEST_P(ActivationsTest, gradients_of_prelu_and_glu_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients([](auto x) { return prelu(x[0], x[1]); },
                              {random_input("src", {2, 3, 5}), random_input("slope", {5})}));
  EXPECT_TRUE(check_gradients([](auto x) { return prelu(x[0], x[1]); },
                              {random_input("src", {7, 3}), random_input("slope", {1})}));
  EXPECT_TRUE(check_gradients(
      [](auto x) {
        return concat({glu(x[0]), transpose(glu(x[0], 0))}, 1);
      },
      {random_input("src", {6, 6})}));
}

TEST_P(ActivationsTest, gradients_have_gradients) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients(
      [](auto x) {
        return gradients(sum(square(all_of(x[0]))), {x.data(), 1})[0];
      },
      {random_input("src", {7}, 3, -5, 5)}));
}

TEST_P(ActivationsTest, nan_passes_through) {
  const Array x = array({NAN, NAN});
  for (const double y : all_of(x).to_vector<double>()) EXPECT_TRUE(std::isnan(y));
}

TEST_P(ActivationsTest, sixteen_bits_and_integers_are_taken) {
  const Array x = array({-2.0f, 0.5f, 7.0f});
  EXPECT_EQ(leaky_relu(astype(x, bf16)).dtype(), bf16);
  EXPECT_EQ(prelu(astype(x, f16), full({1}, 0.5)).to_vector<float>(), (std::vector<float>{-1, 0.5, 7}));
  EXPECT_EQ(prelu(astype(x, f16), full({1}, 0.5)).dtype(), f16);
  EXPECT_EQ(relu6(astype(x, i32)).to_vector<float>(), (std::vector<float>{0, 0, 6}));
  EXPECT_EQ(relu6(astype(x, i32)).dtype(), f32);
  EXPECT_EQ(elu(zeros({0, 3})).shape(), (Shape{0, 3}));
}

TEST_P(ActivationsTest, glu_multiplies_the_first_half_with_the_gate) {
  const Array a = array({1, 2, 0, 100, 3, 4, -100, 0}, {2, 4});
  EXPECT_TRUE(all_close(glu(a), std::vector<double>{0.5, 2, 0, 2}, 1e-6));
  EXPECT_TRUE(all_close(glu(a, 0), std::vector<double>{sigmoid_of(3), 2 * sigmoid_of(4), 0, 50}, 1e-6));
}

TEST_P(ActivationsTest, clip_has_one_sided_bounds_and_masks_fill) {
  const Array a = array({-2, 0, 5, NAN});
  EXPECT_TRUE(all_close(clip(a, {.low = -1.0}), std::vector<double>{-1, 0, 5, NAN}, 0));
  EXPECT_TRUE(all_close(clip(a, {.high = 1.0}), std::vector<double>{-2, 0, 1, NAN}, 0));
  EXPECT_TRUE(all_close(clip(a, {.low = -1.0, .high = 1.0}), std::vector<double>{-1, 0, 1, NAN}, 0));
  EXPECT_ERROR(clip(a, ClipBounds{}), ArgumentError, "clip: expected a lower or an upper bound, got none");
  const Array b = array({1, 2, 3, 4, 5, 6}, {2, 3});
  const Array mask = greater(array({1, 0, 2}), array({1.0f}));
  const double low = -std::numeric_limits<double>::infinity();
  EXPECT_TRUE(all_close(masked_fill(b, mask, low), std::vector<double>{1, 2, low, 4, 5, low}, 0));
  EXPECT_EQ(masked_fill(astype(b, i32), mask, 7).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 2, 7, 4, 5, 7}));
  EXPECT_TRUE(
      all_close(gradients(sum(masked_fill(b, mask, 7) * b), {&b, 1})[0], std::vector<double>{2, 4, 7, 8, 10, 7}, 1e-6));
}

TEST_P(ActivationsTest, wrong_arguments_are_named) {
  EXPECT_ERROR(prelu(zeros({2, 3}), zeros({2})), ArgumentError,
               "prelu: the last axis of src f32 [2, 3] needs one slope, or one each, floating, slope is f32 [2]");
  EXPECT_ERROR(prelu(zeros({2, 3}), zeros({3}, i32)), ArgumentError,
               "prelu: the last axis of src f32 [2, 3] needs one slope, or one each, floating, slope is i32 [3]");
  EXPECT_ERROR(softplus(zeros({2}), 0), ArgumentError, "softplus: beta must not be 0, got 0.000000");
  EXPECT_ERROR(glu(zeros({2, 3})), ArgumentError, "glu: axis -1 must have an even size, src is f32 [2, 3]");
  EXPECT_ERROR(glu(zeros({2, 3}), 2), ArgumentError, "glu: axis 2 is out of range for src f32 [2, 3]");
  EXPECT_ERROR(masked_fill(zeros({2}), zeros({2}), 1), ArgumentError,
               "masked_fill: the mask must be bool, mask is f32 [2]");
  EXPECT_THROW(mish(Array()), ArgumentError);
}

class SmallShapesActivationsTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesActivationsTest);

TEST_P(SmallShapesActivationsTest, forward_and_backward) {
  run([](std::span<const Array> x) { return mish(x[0]) + prelu(softplus(x[0]) - 0.5, x[1]); }, {{19}, {19}});
  run([](std::span<const Array> x) { return glu(x[0]); }, {{3, 14}});
}

}  // namespace
}  // namespace samebytes::testing
