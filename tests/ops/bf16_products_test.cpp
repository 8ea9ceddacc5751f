// Products of bf16 against double, with the CPU's instruction for them and without: every layout, sums of odd length,
// parts of tiles, batches, views at odd places, epilogues, numbers that are not finite or next to nothing.
//
// The bound of an element follows from what is computed. Operands are bf16 and a product of two is exact in f32, so a
// sum of k products is rounded k times in f32 at most, in whatever order: by 2^-24 of the sum of magnitudes each. The
// instruction takes numbers below 2^-126 for zero. An element is rounded to bf16 once, by 2^-8 of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "reference/matmul.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/environment.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

constexpr double kF32Step = 0x1p-24, kBf16Step = 0x1p-8;

class Bf16ProductsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Bf16ProductsTest);

// Values that bf16 holds, and their magnitudes.
struct Matrix {
  Array array;
  std::vector<double> values, sizes;
};
Matrix matrix(const Shape& shape, std::uint64_t seed) {
  Matrix m;
  m.array = astype(real_array(random_values(shape.size(), seed), shape, f32), bf16);
  m.values = astype(m.array, f32).to_vector<double>();
  for (const double value : m.values) m.sizes.push_back(std::abs(value));
  return m;
}

// `want` in exact arithmetic, `sizes` the sums of magnitudes, k products in each, rounded to bf16 `times`.
::testing::AssertionResult is_within(const Array& came, const std::vector<double>& want,
                                     const std::vector<double>& sizes, std::int64_t k, int times = 1) {
  const std::vector<double> values = astype(came, f32).to_vector<double>();
  if (values.size() != want.size()) return ::testing::AssertionFailure() << values.size() << " elements";
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double sum = static_cast<double>(k + 4) * kF32Step * sizes[i];
    const double bound = sum + times * kBf16Step * (std::max(sizes[i] * (times - 1), std::abs(want[i])) + sum);
    if (!(std::abs(values[i] - want[i]) <= bound))
      return ::testing::AssertionFailure()
             << "at " << i << " got " << values[i] << ", wanted " << want[i] << " within " << bound;
  }
  return ::testing::AssertionSuccess();
}

// f() in the engine of the case, in one that has pairs in vectors where that one has tiles, and in one without both.
template <class F>
void in_all_engines(const DeviceCase& device_case, F&& f) {
  {
    SCOPED_TRACE("as the device can");
    f();
  }
  for (const char* words : {"avx512_bf16", "0"}) {
    const Environment use("SAMEBYTES_MATRIX_INSTRUCTIONS", words);
    const auto other = make_engine(device_case);
    const EngineScope scope(*other);
    SCOPED_TRACE(std::string("with matrix instructions ") + words);
    f();
  }
}

struct ProductSize {
  std::int64_t m, n, k;
};

TEST_P(Bf16ProductsTest, equal_the_definition_in_every_layout_and_length) {
  std::vector<ProductSize> sizes{{40, 49, 33}, {47, 75, 31}, {64, 96, 64}, {41, 130, 1}, {35, 50, 2}, {46, 70, 1025}};
  if (!is_simulated()) sizes.insert(sizes.end(), {{45, 37, 2100}, {129, 337, 515}});
  in_all_engines(GetParam(), [&] {
    for (const ProductSize s : sizes) {
      const Matrix a = matrix({s.m, s.k}, 1), b = matrix({s.k, s.n}, 2);
      const auto want = reference_matmul(a.values, {s.m, s.k}, b.values, {s.k, s.n});
      const auto magnitudes = reference_matmul(a.sizes, {s.m, s.k}, b.sizes, {s.k, s.n});
      const Array at = contiguous(transpose(a.array)), bt = contiguous(transpose(b.array));
      for (int layout = 0; layout < 4; ++layout) {
        const Array left = layout & 1 ? transpose(at) : a.array, right = layout & 2 ? transpose(bt) : b.array;
        const Array c = matmul(left, right);
        EXPECT_EQ(c.dtype(), bf16);
        EXPECT_TRUE(is_within(c, want, magnitudes, s.k))
            << s.m << " x " << s.n << " x " << s.k << ", layout " << layout;
        EXPECT_TRUE(same_bytes(c, matmul(left, right)));
      }
    }
  });
}

TEST_P(Bf16ProductsTest, of_batches_and_of_views_at_odd_places_equal_the_definition) {
  in_all_engines(GetParam(), [&] {
    const Shape a_shape{3, 41, 37}, b_shape{3, 37, 50};
    const Matrix a = matrix(a_shape, 1), b = matrix(b_shape, 2);
    EXPECT_TRUE(is_within(matmul(a.array, b.array), reference_matmul(a.values, a_shape, b.values, b_shape),
                          reference_matmul(a.sizes, a_shape, b.sizes, b_shape), 37));
    // Rows of 53 values, of which 35 from the first on; lines of 51, from the third on; every second row.
    const Matrix wide = matrix({82, 53}, 3), tall = matrix({37, 51}, 4);
    const Array rows = slice(slice(wide.array, 0, 0, 82, 2), 1, 1, 36), lines = slice(tall.array, 0, 1, 36);
    const auto left = astype(contiguous(rows), f32).to_vector<double>(),
               right = astype(contiguous(lines), f32).to_vector<double>();
    std::vector<double> left_sizes = left, right_sizes = right;
    for (double& value : left_sizes) value = std::abs(value);
    for (double& value : right_sizes) value = std::abs(value);
    EXPECT_TRUE(is_within(matmul(rows, lines), reference_matmul(left, {41, 35}, right, {35, 51}),
                          reference_matmul(left_sizes, {41, 35}, right_sizes, {35, 51}), 35));
    // Both operands are one array.
    const Matrix own = matrix({45, 67}, 5);
    EXPECT_TRUE(is_within(matmul(own.array, transpose(own.array)),
                          reference_matmul(own.values, {45, 67}, reference_transpose(own.values, 45, 67), {67, 45}),
                          reference_matmul(own.sizes, {45, 67}, reference_transpose(own.sizes, 45, 67), {67, 45}), 67));
  });
}

TEST_P(Bf16ProductsTest, of_a_linear_layer_have_its_epilogue_and_its_gradients) {
  in_all_engines(GetParam(), [&] {
    for (const ProductSize s : {ProductSize{48, 70, 97}, ProductSize{67, 39, 600}}) {
      SCOPED_TRACE(std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k));
      const Matrix x = matrix({s.m, s.k}, 1), w = matrix({s.n, s.k}, 2), residual = matrix({s.m, s.n}, 3),
                   dy = matrix({s.m, s.n}, 4);
      const auto bias = random_values(s.n, 5);
      const Array bias_array = real_array(bias, {s.n}, f32);
      const auto wt = reference_transpose(w.values, s.n, s.k), wt_sizes = reference_transpose(w.sizes, s.n, s.k);
      auto want = reference_matmul(x.values, {s.m, s.k}, wt, {s.k, s.n});
      auto magnitudes = reference_matmul(x.sizes, {s.m, s.k}, wt_sizes, {s.k, s.n});
      for (std::size_t i = 0; i < want.size(); ++i) {
        const double add = bias_array.to_vector<double>()[i % bias.size()];
        want[i] = std::max(0.0, want[i] + add + residual.values[i]);
        magnitudes[i] += std::abs(add) + residual.sizes[i];
      }
      EXPECT_TRUE(is_within(relu(linear(x.array, w.array, bias_array) + residual.array), want, magnitudes, s.k, 2));
      const auto d = gradients(sum(astype(linear(x.array, w.array, bias_array), f32) * astype(dy.array, f32)),
                               std::vector<Array>{x.array, w.array});
      EXPECT_TRUE(is_within(d[0], reference_matmul(dy.values, {s.m, s.n}, w.values, {s.n, s.k}),
                            reference_matmul(dy.sizes, {s.m, s.n}, w.sizes, {s.n, s.k}), s.n));
      EXPECT_TRUE(
          is_within(d[1], reference_matmul(reference_transpose(dy.values, s.m, s.n), {s.n, s.m}, x.values, {s.m, s.k}),
                    reference_matmul(reference_transpose(dy.sizes, s.m, s.n), {s.n, s.m}, x.sizes, {s.m, s.k}), s.m));
    }
  });
}

TEST_P(Bf16ProductsTest, keep_what_is_not_finite_in_its_row_and_take_next_to_nothing_for_zero) {
  constexpr std::int64_t m = 40, n = 64, k = 35;
  constexpr double kSmallest = 0x1p-126, kBelow = 0x1p-130;  // bf16 holds the second, too
  in_all_engines(GetParam(), [&] {
    std::vector<double> a(m * k, 1.0);
    a[3 * k + 34] = std::numeric_limits<double>::infinity();  // the last of an odd sum
    a[5 * k + 7] = std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t p = 0; p < k; ++p) {
      a[9 * k + p] = kBelow;
      a[11 * k + p] = kSmallest;
    }
    const Array left = astype(real_array(a, {m, k}, f32), bf16), right = ones({k, n}, bf16);
    const std::vector<double> c = astype(matmul(left, right), f32).to_vector<double>();
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double value = c[static_cast<std::size_t>(i * n + j)];
        if (i == 3) {
          EXPECT_EQ(value, std::numeric_limits<double>::infinity()) << j;
        } else if (i == 5) {
          EXPECT_TRUE(std::isnan(value)) << j;
        } else if (i == 9) {
          EXPECT_TRUE(value == 0 || std::abs(value - k * kBelow) <= kSmallest) << value;
        } else if (i == 11) {
          EXPECT_NEAR(value / kSmallest, k, k * kBf16Step) << j;
        } else {
          EXPECT_EQ(value, k) << i << ", " << j;
        }
      }
    }
  });
}

}  // namespace
}  // namespace samebytes::testing
