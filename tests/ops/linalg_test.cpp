// Linear algebra and Fourier transforms of the host: what the factors multiply to, known values, gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using Values = std::vector<double>;

class LinalgTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LinalgTest);

TEST_P(LinalgTest, factors_multiply_to_the_matrix) {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 5}, Shape{2, 3, 3, 3}}) {
    const Array a = uniform(shape, -1, 1, f32, {3, 1}), b = uniform(shape, -1, 1, f32, {3, 2});
    const auto same = [&](const Array& came, const Array& want) {
      EXPECT_EQ(came.shape(), want.shape());
      EXPECT_TRUE(all_close(came, want.to_vector<double>(), 2e-4)) << shape.to_string();
    };
    const Array well = matmul(a, transpose(a)) + ones({shape.back()}) * 0.1 + tril(triu(ones(shape)));
    same(matmul(well, linalg::solve(well, b)), b);
    same(matmul(linalg::inverse(well), well), tril(triu(ones(shape))));
    const Array l = linalg::cholesky(well);
    same(matmul(l, transpose(l)), well);
    same(linalg::det(well), square(prod(sum(l * tril(triu(ones(shape))), -1), -1)));
    const linalg::EighResult e = linalg::eigh(well);
    same(matmul(e.vectors * unsqueeze(e.values, -2), transpose(e.vectors)), well);
    const linalg::SvdResult s = linalg::svd(a);
    same(matmul(s.u * unsqueeze(s.s, -2), s.vt), a);
  }
  const linalg::SvdResult wide = linalg::svd(array({3, 0, 0, 0, 4, 0}, {2, 3}));
  EXPECT_TRUE(all_close(wide.s, Values{4, 3}, 1e-6));
  EXPECT_EQ(wide.vt.shape(), (Shape{2, 3}));
  EXPECT_TRUE(std::isnan(linalg::cholesky(array({-1}, {1, 1})).value()));
  EXPECT_ERROR(linalg::det(zeros({2, 3})), ArgumentError,
               "det: needs f32 or f64 square matrices [..., N, N], a is f32 [2, 3]");
  EXPECT_ERROR(
      linalg::solve(zeros({2, 2}), zeros({3, 1})), ArgumentError,
      "solve: a [..., N, N] and b [..., N, K] must have one batch, one N and one type, a is f32 [2, 2], b is f32 "
      "[3, 1]");
}

TEST_P(LinalgTest, gradients_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput a = random_input("a", {2, 3, 3}), b = random_input("b", {2, 3, 2}, 2);
  const auto definite = [](const Array& x) { return matmul(x, transpose(x)) + tril(triu(ones({3, 3}, f64))); };
  const std::pair<const char*, ArrayFunction> cases[] = {
      {"inverse", [&](auto x) { return linalg::inverse(definite(x[0])); }},
      {"det", [](auto x) { return linalg::det(x[0]); }},
      {"cholesky", [&](auto x) { return linalg::cholesky(definite(x[0])); }},
      {"eigh",
       [&](auto x) {
         const linalg::EighResult e = linalg::eigh(definite(x[0]));
         return concat({unsqueeze(e.values, -2), square(e.vectors)}, -2);  // without the sign, which is free
       }},
      {"svd", [](auto x) {
         const linalg::SvdResult s = linalg::svd(x[0]);
         return concat({unsqueeze(s.s, -2), square(s.u), square(s.vt)}, -2);
       }}};
  for (const auto& [what, f] : cases) EXPECT_TRUE(check_gradients(f, {a})) << what;
  EXPECT_TRUE(check_gradients([&](auto x) { return linalg::solve(definite(x[0]), x[1]); }, {a, b}));
}

TEST_P(LinalgTest, transforms_have_the_values_of_the_definition) {
  for (const std::int64_t n : {1, 2, 5, 12}) {
    const Array x = uniform({3, n, 2}, -1, 1, f32, {5, static_cast<std::uint64_t>(n)});
    const Values v = x.to_vector<double>();
    Values want;
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t k = 0; k < n; ++k) {
        double re = 0, im = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double angle = -2 * M_PI * static_cast<double>(i * k) / static_cast<double>(n);
          const double a = v[static_cast<std::size_t>((row * n + i) * 2)],
                       b = v[static_cast<std::size_t>((row * n + i) * 2 + 1)];
          re += a * std::cos(angle) - b * std::sin(angle);
          im += a * std::sin(angle) + b * std::cos(angle);
        }
        want.insert(want.end(), {re, im});
      }
    EXPECT_TRUE(all_close(fft(x), want, 1e-5)) << n;
    EXPECT_TRUE(all_close(ifft(fft(x)), v, 1e-5)) << n;
    const Array real = x[{ellipsis, 0}];
    EXPECT_EQ(rfft(real).shape(), (Shape{3, n / 2 + 1, 2}));
    EXPECT_TRUE(all_close(irfft(rfft(real), n), real.to_vector<double>(), 1e-5)) << n;
  }
  EXPECT_ERROR(fft(zeros({4})), ArgumentError,
               "fft: needs f32 or f64 [..., N, 2] of real and imaginary parts, a is f32 [4]");
  EXPECT_ERROR(irfft(zeros({3, 2}), 7), ArgumentError,
               "irfft: n / 2 + 1 must be the size of the last axis but one, n is 7, a is f32 [3, 2]");
}

TEST_P(LinalgTest, transforms_have_gradients) {
  SAMEBYTES_NEEDS_F64();
  const GradientInput x = random_input("x", {2, 5, 2}), real = random_input("x", {2, 6});
  EXPECT_TRUE(check_gradients([](auto v) { return square(fft(v[0])) + ifft(v[0]); }, {x}));
  EXPECT_TRUE(check_gradients([](auto v) { return irfft(square(rfft(v[0]))); }, {real}));
}

}  // namespace
}  // namespace samebytes::testing
