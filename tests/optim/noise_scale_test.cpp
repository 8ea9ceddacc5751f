// The gradient noise scale: its estimators against expected values, and on the device against a linear regression whose
// covariance is known.
#include "samebytes/optim/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using optim::Accumulator;
using optim::GradientNoiseScale;
using optim::GradScaler;
using optim::NoiseScaleMeter;
using optim::Sgd;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(GradientNoiseScale, expected_norms_give_the_exact_scale) {
  constexpr double kSquare = 3.0, kTrace = 51.0;
  const auto norm = [](double samples) { return kSquare + kTrace / samples; };
  GradientNoiseScale scale({.decay = 0.7});
  EXPECT_TRUE(std::isnan(scale.noise_scale()));
  for (const auto& [small, big] : {std::pair{1.0, 2.0}, {8.0, 64.0}, {32.0 / 3.0, 32.0}}) {
    scale.add(norm(small), small, norm(big), big);
    EXPECT_NEAR(scale.gradient_square(), kSquare, 1e-12);
    EXPECT_NEAR(scale.covariance_trace(), kTrace, 1e-12);
    EXPECT_NEAR(scale.noise_scale(), 17.0, 1e-12);
  }
  EXPECT_EQ(scale.count(), 3);
}

TEST(GradientNoiseScale, averages_both_parts_and_takes_their_quotient) {
  GradientNoiseScale scale({.decay = 0.5});
  scale.add(10.0, 1.0, 6.0, 2.0);   // |G|^2 = 2, trace 8
  scale.add(20.0, 1.0, 13.0, 2.0);  // |G|^2 = 6, trace 14
  EXPECT_DOUBLE_EQ(scale.gradient_square(), (0.25 * 2 + 0.5 * 6) / 0.75);
  EXPECT_DOUBLE_EQ(scale.covariance_trace(), (0.25 * 8 + 0.5 * 14) / 0.75);
  EXPECT_DOUBLE_EQ(scale.noise_scale(), (0.25 * 8 + 0.5 * 14) / (0.25 * 2 + 0.5 * 6));
}

TEST(GradientNoiseScale, noise_that_drowns_the_gradient_has_no_finite_scale) {
  GradientNoiseScale scale;
  scale.add(4.0, 1.0, 1.0, 4.0);  // as much as noise alone has
  EXPECT_EQ(scale.noise_scale(), kInfinity);
  EXPECT_EQ(scale.gradient_square(), 0.0);
  const double before = scale.covariance_trace();
  scale.add(kInfinity, 1.0, 1.0, 4.0);
  scale.add(1.0, 1.0, std::nan(""), 4.0);
  EXPECT_EQ(scale.count(), 1) << "an overflow is left out";
  EXPECT_EQ(scale.covariance_trace(), before);
}

TEST(GradientNoiseScale, state_goes_on_with_the_same_numbers) {
  GradientNoiseScale a, b;
  a.add(5.0, 2.0, 3.0, 8.0);
  b.load_state_dict(a.state_dict());
  for (GradientNoiseScale* one : {&a, &b}) one->add(7.0, 2.0, 4.0, 8.0);
  EXPECT_EQ(a.noise_scale(), b.noise_scale());
  EXPECT_EQ(a.count(), b.count());
}

TEST(GradientNoiseScale, wrong_arguments_are_named) {
  EXPECT_ERROR((GradientNoiseScale({.decay = 1.0})), ArgumentError,
               "GradientNoiseScale: decay must be at least 0 and below 1, got 1.000000");
  GradientNoiseScale scale;
  EXPECT_ERROR((scale.add(1.0, 0.0, 1.0, 2.0), 0), ArgumentError,
               "GradientNoiseScale: small_samples must be above 0, got 0.000000");
  EXPECT_ERROR((scale.add(1.0, 2.0, 1.0, 2.0), 0), ArgumentError,
               "GradientNoiseScale: big_samples must be above small_samples, got 2.000000");
}

class NoiseScaleMeterTest : public OnDevice {
 protected:
  static constexpr std::int64_t kWidth = 12;
  // y = 0 + noise of deviation s, x normal, loss = |x w - y|^2 / 2: with n samples the gradient is the mean of
  // x (x w - y), whose expectation is w and whose covariance has the trace (d + 1) |w|^2 + d s^2.
  static Array loss_of(const Array& x, const Array& y, const Array& w) {
    const Array wrong = matmul(x, reshape(w, {kWidth, 1})) - y;
    return mean(wrong * wrong) * 0.5;
  }
  static std::vector<double> weights() {
    std::vector<double> w(kWidth);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.1 * static_cast<double>(i) - 0.4;
    return w;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(NoiseScaleMeterTest);

TEST_P(NoiseScaleMeterTest, a_linear_regression_has_its_known_noise_scale) {
  constexpr double kDeviation = 1.5;
  const int measurements = is_simulated() ? 2 : 400;
  const Array w = cell(real_array(weights(), {kWidth}, f32), "w");
  Sgd sgd(std::span(&w, 1), {.rate = 0.0});
  Accumulator sums(sgd);
  NoiseScaleMeter meter(sums, {.decay = 0.9999});
  std::uint64_t counter = 0;
  for (int i = 0; i < measurements; ++i) {
    for (const std::int64_t samples : {16, 16, 16, 5}) {
      const Array x = normal({samples, kWidth}, 0.0, 1.0, f32, {.seed = 7, .counter = counter++});
      const Array y = normal({samples, 1}, 0.0, kDeviation, f32, {.seed = 8, .counter = counter++});
      sums.add(loss_of(x, y, w), static_cast<double>(samples));
    }
    meter.measure();
    sums.step();
  }
  const GradientNoiseScale& scale = meter.read();
  EXPECT_EQ(scale.count(), measurements);
  if (is_simulated()) return;
  double square = 0;
  for (const double v : weights()) square += v * v;
  const double trace = (kWidth + 1) * square + kWidth * kDeviation * kDeviation;
  EXPECT_NEAR(scale.gradient_square() / square, 1.0, 0.05);
  EXPECT_NEAR(scale.covariance_trace() / trace, 1.0, 0.05);
  EXPECT_NEAR(scale.noise_scale() / (trace / square), 1.0, 0.08);
}

TEST_P(NoiseScaleMeterTest, the_norms_are_those_of_the_gradients_also_scaled_ones) {
  // The gradient of sum(w v) is v, so that all norms are known.
  const std::vector<std::vector<double>> v = {{1, 2, -1}, {3, 0, 1}, {0, -2, 2}};
  const std::vector<double> samples = {4, 4, 1};
  double small = 0, total = 0, norms = 0;
  std::vector<double> sum(3);
  for (std::size_t i = 0; i < v.size(); ++i) {
    total += samples[i];
    double square = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      square += v[i][j] * v[i][j];
      sum[j] += samples[i] * v[i][j];
    }
    small += samples[i] * square;
  }
  for (const double s : sum) norms += s * s;
  GradientNoiseScale want;
  want.add(small / total, total / 3, norms / (total * total), total);

  for (const bool is_scaled : {false, true}) {
    const Array w = cell(array({1, 2, 3}), "w");
    Sgd sgd(std::span(&w, 1), {.rate = 0.1});
    Accumulator sums(sgd);
    NoiseScaleMeter meter(sums);
    GradScaler scaler({.init_scale = 1024.0});
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < v.size(); ++i) {
        const Array loss = samebytes::sum(w * real_array(v[i], {3}, f32));
        sums.add(is_scaled ? scaler.scale(loss) : loss, samples[i]);
      }
      meter.measure(is_scaled ? &scaler : nullptr);
      if (is_scaled) {
        sums.step(scaler);
        scaler.update();
      } else {
        sums.step();
      }
      EXPECT_NEAR(meter.read().gradient_square(), want.gradient_square(), 1e-5 * std::abs(want.gradient_square()));
      EXPECT_NEAR(meter.read().covariance_trace(), want.covariance_trace(), 1e-5 * want.covariance_trace());
    }
    EXPECT_EQ(meter.read().count(), 2);
  }
}

TEST_P(NoiseScaleMeterTest, one_micro_batch_measures_nothing_and_a_reset_begins_again) {
  const Array w = cell(array({1, 2, 3}), "w");
  Sgd sgd(std::span(&w, 1), {.rate = 0.1});
  Accumulator sums(sgd);
  std::optional<NoiseScaleMeter> meter(std::in_place, sums);
  meter->measure();
  sums.add(sum(w), 2);
  meter->measure();
  EXPECT_EQ(meter->read().count(), 0);
  sums.reset();
  EXPECT_EQ(sums.samples(), 0.0);
  for (int i = 0; i < 2; ++i) sums.add(sum(w), 2);
  meter->measure();
  EXPECT_EQ(meter->read().count(), 1);
  EXPECT_NEAR(meter->read().gradient_square(), 3.0, 1e-6);
  EXPECT_NEAR(meter->read().noise_scale(), 0.0, 1e-6);
  sums.step();
  meter.reset();  // the accumulator goes on without it
  sums.add(sum(w), 2);
  sums.step();
  EXPECT_NEAR(w.to_vector<float>()[0], 0.8, 1e-6);
}

}  // namespace
}  // namespace samebytes::testing
