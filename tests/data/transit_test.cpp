// Made light curves: the physics against brute force and closed forms, the statistics of the set, equal bytes.
#include "samebytes/data/transit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "samebytes/data/preload.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

using std::numbers::pi;

// The light of the uncovered part, summed over a fine grid of the star's disc.
double flux_on_grid(double distance, double ratio, const LimbDarkening& limb) {
  constexpr int kGrid = 1600;
  double whole = 0, seen = 0;
  for (int i = 0; i < kGrid; ++i)
    for (int j = 0; j < kGrid; ++j) {
      const double x = (2 * i + 1.0) / kGrid - 1, y = (2 * j + 1.0) / kGrid - 1, square = x * x + y * y;
      if (square >= 1) continue;
      const double dark = 1 - std::sqrt(1 - square);
      const double light = 1 - limb.linear * dark - limb.quadratic * dark * dark;
      whole += light;
      if ((x - distance) * (x - distance) + y * y >= ratio * ratio) seen += light;
    }
  return seen / whole;
}

// Two overlapping discs: Mandel and Agol, equation 1.
double uniform_flux(double z, double k) {
  if (z >= 1 + k) return 1;
  if (z <= 1 - k) return 1 - k * k;
  if (z <= k - 1) return 0;
  const double a = std::acos((k * k + z * z - 1) / (2 * k * z)), b = std::acos((1 - k * k + z * z) / (2 * z));
  const double root = std::sqrt((4 * z * z - std::pow(1 + z * z - k * k, 2)) / 4);
  return 1 - (k * k * a + b - root) / pi;
}

TEST(OccultedFlux, is_the_overlap_of_two_discs_without_limb_darkening) {
  for (const double k : {0.01, 0.1, 0.5, 1.0, 1.7})
    for (int i = 0; i <= 60; ++i) {
      const double z = 0.05 * i;
      EXPECT_NEAR(occulted_flux(z, k, {0, 0}), uniform_flux(z, k), 3e-6 * std::min(1.0, k * k)) << z << " " << k;
    }
  EXPECT_NEAR(occulted_flux(0, 0.1, {0, 0}), 1 - 0.01, 1e-12);  // the depth is the square of the radii's ratio
  EXPECT_EQ(occulted_flux(1.11, 0.1), 1.0);
  EXPECT_EQ(occulted_flux(0.3, 0), 1.0);
  EXPECT_NEAR(occulted_flux(0.2, 1.5), 0.0, 1e-12);
}

TEST(OccultedFlux, follows_a_sum_over_the_limb_darkened_disc) {
  const LimbDarkening limb{0.5, 0.3};
  for (const auto& [z, k] : std::vector<std::array<double, 2>>{
           {0, 0.1}, {0.05, 0.3}, {0.3, 0.3}, {0.5, 0.1}, {0.95, 0.1}, {1.02, 0.1}, {0.8, 0.6}, {0.4, 1.3}})
    EXPECT_NEAR(occulted_flux(z, k, limb), flux_on_grid(z, k, limb), 3e-5) << z << " " << k;
  // A small disc takes its area times the local brightness.
  const double dark = 1 - std::sqrt(1 - 0.25), mean = 1 - 0.5 / 3 - 0.3 / 6;
  EXPECT_NEAR((1 - occulted_flux(0.5, 0.001, limb)) / 1e-6, (1 - 0.5 * dark - 0.3 * dark * dark) / mean, 1e-4);
  EXPECT_ERROR(occulted_flux(-1, 0.1), ArgumentError,
               "occulted_flux: distance and ratio must be 0 or more, got -1.000000 and 0.100000");
}

TEST(Orbit, begins_and_ends_where_the_discs_touch) {
  for (const double impact : {0.0, 0.5, 1.02}) {
    const Orbit orbit{.period = 7, .axis = 15, .ratio = 0.1, .impact = impact};
    EXPECT_DOUBLE_EQ(sky_distance(orbit, 0), impact);
    const double half = transit_duration(orbit) / 2 / orbit.period;
    EXPECT_NEAR(sky_distance(orbit, half), 1.1, 1e-12);
    EXPECT_NEAR(sky_distance(orbit, -half), 1.1, 1e-12);
  }
  EXPECT_EQ(transit_duration({.impact = 1.2}), 0.0);
  EXPECT_NEAR(transit_duration({.period = 365.25, .axis = 215.0, .ratio = 0.00916}) * 24, 13.1, 0.1);  // the Earth's
  EXPECT_NEAR(axis_of(365.25, 1), 215.0, 0.3);
}

TEST(TransitCurve, of_a_planet_is_its_own_mirror_image_and_as_deep_as_said) {
  TransitOptions options{.size = 10, .seed = 3, .positives = 1, .period = {2, 3}, .points = 60000};
  for (std::int64_t index = 0; index < options.size; ++index) {
    options.jitter = 0;
    const TransitCurve curve = make_transit_curve(options, index);
    ASSERT_EQ(curve.kind, CurveKind::planet);
    const auto [low, high] = std::minmax_element(curve.model.begin(), curve.model.end());
    EXPECT_EQ(*high, 1.0f);
    EXPECT_NEAR(1.0 - static_cast<double>(*low), curve.depth, 0.01 * curve.depth + 1e-7);
    std::vector<float> there(51), back(51);
    std::vector<double> mirrored = curve.time;
    for (double& time : mirrored) time = 2 * curve.found.centre - time;
    local_view(curve.time, curve.model, curve.found, there);
    local_view(mirrored, curve.model, curve.found, back);
    // Points stand elsewhere on the two sides.
    for (std::size_t i = 0; i < there.size(); ++i) EXPECT_NEAR(there[i], back[i], 0.03) << index;
    EXPECT_NEAR(there[25], -1, 0.05) << index;
    EXPECT_EQ(there[0], 0.0f);
  }
}

TEST(TransitCurve, has_the_noise_that_was_asked_for) {
  const TransitOptions options{.size = 20, .positives = 1, .signal_to_noise = {8, 8}, .correlated = 0};
  for (std::int64_t index = 0; index < options.size; ++index) {
    const TransitCurve curve = make_transit_curve(options, index);
    double squares = 0;
    for (std::size_t i = 0; i < curve.flux.size(); ++i)
      squares += std::pow(static_cast<double>(curve.flux[i]) - static_cast<double>(curve.model[i]), 2);
    const double in_bin = static_cast<double>(options.points) / static_cast<double>(options.global_bins);
    const double wanted = curve.depth / 8 * std::sqrt(in_bin);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(curve.flux.size())), wanted, 0.05 * wanted) << index;
  }
}

// Red noise leaves neighbours alike; white noise does not.
TEST(TransitCurve, has_red_noise_when_asked_for) {
  const auto correlation = [](double correlated) {
    const TransitOptions options{.size = 30, .positives = 1, .correlated = correlated};
    double both = 0, own = 0;
    for (std::int64_t index = 0; index < options.size; ++index) {
      const TransitCurve curve = make_transit_curve(options, index);
      const auto noise = [&](std::size_t i) {
        return (static_cast<double>(curve.flux[i]) - static_cast<double>(curve.model[i])) / curve.white;
      };
      for (std::size_t i = 1; i < curve.flux.size(); ++i) {
        both += noise(i) * noise(i - 1);
        own += noise(i) * noise(i);
      }
    }
    return both / own;
  };
  EXPECT_NEAR(correlation(0), 0, 0.01);
  EXPECT_GT(correlation(1), 0.1);
}

TEST(TransitCurve, of_two_stars_has_a_secondary_eclipse) {
  const TransitOptions options{.size = 300, .seed = 1, .positives = 0, .binaries = 1, .variables = 0};
  int with_secondary = 0;
  for (std::int64_t index = 0; index < options.size; ++index) {
    const TransitCurve curve = make_transit_curve(options, index);
    ASSERT_EQ(curve.kind, CurveKind::binary);
    ASSERT_GT(curve.depth, 0);
    std::vector<float> view(401);
    global_view(curve.time, curve.model, curve.found, view);
    const float away = std::min(*std::min_element(view.begin(), view.begin() + 130),
                                *std::min_element(view.begin() + 271, view.end()));
    with_secondary += away < -0.05f;
  }
  EXPECT_NEAR(with_secondary, 0.75 * 300, 6 * std::sqrt(300 * 0.19));  // the others are folded on half the period
}

TEST(Views, have_median_0_and_minimum_minus_1) {
  const DatasetPtr set = transits({.size = 30, .seed = 9});
  std::vector<float> global(2001), local(201);
  float label = 0;
  for (std::int64_t index = 0; index < set->size(); ++index) {
    const Field dst[] = {{std::as_writable_bytes(std::span(global)), Shape{2001, 1}, f32},
                         {std::as_writable_bytes(std::span(local)), Shape{201, 1}, f32},
                         {std::as_writable_bytes(std::span(&label, 1)), Shape{}, f32}};
    ASSERT_TRUE(set->read(index, dst));
    for (std::vector<float>* view : {&global, &local}) {
      EXPECT_EQ(*std::min_element(view->begin(), view->end()), -1.0f);
      std::nth_element(view->begin(), view->begin() + static_cast<std::ptrdiff_t>(view->size() / 2), view->end());
      EXPECT_EQ((*view)[view->size() / 2], 0.0f);
    }
    EXPECT_EQ(label, transit_kind({.size = 30, .seed = 9}, index) == CurveKind::planet ? 1.0f : 0.0f);
  }
}

TEST(Views, take_the_median_of_each_bin) {
  // Period 4, centre at 2: the bins of the global view are [0, 1), [1, 2), [2, 3), [3, 4).
  const std::vector<double> time = {0.5, 4.5, 8.5, 1.5, 5.5, 2.5, 6.5, 10.5, 3.5, 7.5};
  const std::vector<float> flux = {1, 2, 30, 4, 6, -1, -2, -90, 3, NAN};
  std::vector<float> view(4);
  global_view(time, flux, {.period = 4, .centre = 2}, view);
  // Medians 2, 5, -2, 3; their median 2.5; the minimum -4.5.
  EXPECT_THAT(
      view, ::testing::Pointwise(::testing::FloatEq(), std::vector<float>{-0.5f / 4.5f, 2.5f / 4.5f, -1, 0.5f / 4.5f}));
  std::vector<float> constant(3);
  global_view(time, std::vector<float>(10, 7.0f), {.period = 4}, constant);
  EXPECT_EQ(constant, (std::vector<float>{0, 0, 0}));
  // Half a duration on either side of 2.5 in two bins of half a unit, each as wide as a duration: all of [1.75, 2.75)
  // and [2.25, 3.25).
  const std::vector<double> near = {1.8, 2.3, 2.4, 2.7, 3.0, 3.3};
  const std::vector<float> values = {10, 1, 2, 3, -8, 50};
  std::vector<float> pair(2);
  local_view(near, values, {.period = 100, .centre = 2.5, .duration = 1}, pair, {.durations = 0.5, .width = 1});
  EXPECT_EQ(pair, (std::vector<float>{1, -1}));  // 2.5 and 1.5 about 2, over a half
  EXPECT_ERROR(global_view(time, values, {.period = 4}, view), ArgumentError,
               "global_view: expected one flux for each time, got 10 times and 6 fluxes");
  EXPECT_ERROR(global_view(time, flux, {.period = 0}, view), ArgumentError,
               "global_view: period and duration must be above 0, got 0.000000 and 1.000000");
}

TEST(BoxLeastSquares, finds_the_box_wherever_it_is) {
  for (const std::size_t first : {std::size_t{0}, std::size_t{37}, std::size_t{195}}) {
    std::vector<float> view(200, 1.0f);
    for (std::size_t i = 0; i < 10; ++i) view[(first + i) % 200] = 0.75f;
    const Box box = box_least_squares(view, {.narrowest = 0.05, .widest = 0.05, .widths = 1});
    EXPECT_NEAR(box.depth, 0.25, 1e-9);
    EXPECT_NEAR(box.phase, std::fmod((static_cast<double>(first) + 5) / 200, 1.0), 1e-12);
    EXPECT_EQ(box.width, 0.05);
  }
  // Alternating noise of deviation 0.01: depth over noise is 0.25 / (0.01 sqrt(1 / 10 + 1 / 190)).
  std::vector<float> noisy(200);
  for (std::size_t i = 0; i < 200; ++i) noisy[i] = (i % 2 == 0 ? 0.01f : -0.01f) - (i >= 40 && i < 50 ? 0.25f : 0.0f);
  EXPECT_NEAR(box_least_squares_depth(noisy, {.narrowest = 0.05, .widest = 0.05, .widths = 1}),
              0.25 / (0.01 * std::sqrt(0.1 + 1 / 190.0)), 1);
  EXPECT_EQ(box_least_squares_depth(std::vector<float>(50, 2.0f)), 0.0);
  EXPECT_ERROR(box_least_squares(std::vector<float>(5)), ArgumentError,
               "box_least_squares: expected 8 values or more, got 5");
}

TEST(Transits, are_a_function_of_seed_and_index) {
  const TransitOptions options{.size = 50, .seed = 7, .points = 4096};
  const auto flux = [](const TransitOptions& of, std::int64_t index) { return make_transit_curve(of, index).flux; };
  const auto once = flux(options, 31);
  EXPECT_EQ(flux(options, 31), once);
  EXPECT_NE(flux(options, 30), once);
  TransitOptions other = options;
  other.seed = 8;
  EXPECT_NE(flux(other, 31), once);
  other = options;
  other.size = 5000;  // a larger set begins with the same curves
  EXPECT_EQ(flux(other, 31), once);
}

TEST(Transits, keep_the_shares_of_their_kinds) {
  constexpr std::int64_t kCount = 20000;
  const TransitOptions options{.size = kCount, .positives = 0.3, .binaries = 0.5, .variables = 0.4};
  std::array<int, 5> counts{};
  for (std::int64_t index = 0; index < kCount; ++index)
    ++counts[static_cast<std::size_t>(transit_kind(options, index))];
  const std::array<double, 5> shares = {0.3, 0.7 * 0.1, 0.7 * 0.2, 0.7 * 0.2, 0.7 * 0.5};
  for (std::size_t k = 0; k < counts.size(); ++k)
    EXPECT_NEAR(counts[k], kCount * shares[k], 6 * std::sqrt(kCount * shares[k] * (1 - shares[k]))) << k;
}

// Depth alone does not tell planets from binaries: both are found at about the same height.
TEST(Transits, without_a_planet_have_boxes_as_deep) {
  const TransitOptions options{.size = 400, .seed = 2};
  const DatasetPtr set = transits(options);
  std::vector<float> global(2001), local(201);
  float label = 0;
  std::vector<double> planets, binaries;
  for (std::int64_t index = 0; index < set->size(); ++index) {
    const CurveKind kind = transit_kind(options, index);
    if (kind != CurveKind::planet && kind != CurveKind::binary) continue;
    const Field dst[] = {{std::as_writable_bytes(std::span(global)), Shape{2001, 1}, f32},
                         {std::as_writable_bytes(std::span(local)), Shape{201, 1}, f32},
                         {std::as_writable_bytes(std::span(&label, 1)), Shape{}, f32}};
    set->read(index, dst);
    (kind == CurveKind::planet ? planets : binaries).push_back(box_least_squares_depth(global));
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  const double ratio = median(planets) / median(binaries);
  EXPECT_GT(ratio, 0.7);
  EXPECT_LT(ratio, 1.6);
}

TEST(Transits, check_their_options) {
  EXPECT_ERROR(transits({.positives = 1.5}), ArgumentError, "transits: positives: expected from 0 to 1, got 1.500000");
  EXPECT_ERROR(transits({.binaries = 0.7, .variables = 0.4}), ArgumentError,
               "transits: binaries + variables: expected from 0 to 1, got 1.100000");
  EXPECT_ERROR(transits({.signal_to_noise = {0, 5}}), ArgumentError,
               "transits: signal_to_noise: expected above 0.000000 and low <= high, got 0.000000 to 5.000000");
  EXPECT_ERROR(transits({.points = 10}), ArgumentError, "transits: expected 256 to 100000 points, got 10");
  EXPECT_ERROR(make_transit_curve({.size = 3}, 3), ArgumentError, "transits: curve 3 of 3");
}

TEST(Preload, keeps_the_same_bytes_with_any_number_of_threads) {
  const DatasetPtr made = generate(37, {{"x", Shape{2}, f32, 0.5f}, {"y", Shape{}, i32}},
                                   [](std::int64_t index, std::span<const Field> dst) {
                                     dst[0].as<float>()[0] = static_cast<float>(index);
                                     dst[0].as<float>()[1] = -1;
                                     dst[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(index * 3);
                                   });
  for (const int threads : {1, 2, 5}) {
    const DatasetPtr kept = preload(made, threads);
    ASSERT_EQ(kept->size(), 37);
    EXPECT_EQ(kept->fields()[0].background, 0.5f);
    float x[2];
    std::int32_t y = 0;
    const Field dst[] = {{std::as_writable_bytes(std::span(x)), Shape{2}, f32},
                         {std::as_writable_bytes(std::span(&y, 1)), Shape{}, i32}};
    for (std::int64_t index : {0, 18, 36}) {
      ASSERT_TRUE(kept->read(index, dst));
      EXPECT_EQ(x[0], static_cast<float>(index));
      EXPECT_EQ(y, index * 3);
    }
  }
  const DatasetPtr broken = generate(9, {{"x", Shape{}}}, [](std::int64_t index, std::span<const Field>) {
    if (index == 5) throw IoError("torn", "file.bin", 12);
  });
  EXPECT_THROW(preload(broken, 3), IoError);
  EXPECT_ERROR(preload(generate(kEndless, {{"x", Shape{}}}, [](std::int64_t, std::span<const Field>) {})),
               ArgumentError, "preload: expected a known number of samples, got a source without end");
  EXPECT_THROW(preload(nullptr), ArgumentError);
}

}  // namespace
}  // namespace samebytes::data
