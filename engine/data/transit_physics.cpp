// Occultation of a limb-darkened star, and circular orbits.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "samebytes/data/transit.h"

namespace samebytes::data {
namespace {

using std::numbers::pi;

constexpr double kSolarAxisOfADay = 4.2083;  // (G rho_sun day^2 / 3 pi)^(1/3), IAU 2015 nominal values

double intensity(double r, const LimbDarkening& limb) {
  const double dark = 1 - std::sqrt(std::max(0.0, 1 - r * r));
  return 1 - (limb.linear + limb.quadratic * dark) * dark;
}

// The light from within r: 2 pi times the integral of I(r) r.
double light_within(double r, const LimbDarkening& limb) {
  // With m = mu: integral from m to 1 of (1 - a (1 - m) - b (1 - m)^2) m dm, in powers of 1 - m.
  const double d = 1 - std::sqrt(std::max(0.0, 1 - r * r)), a = limb.linear, b = limb.quadratic;
  const double square = d * d, cube = square * d;
  return 2 * pi * (d - square / 2 - a * (square / 2 - cube / 3) - b * (cube / 3 - square * square / 4));
}

}  // namespace

double occulted_flux(double distance, double ratio, const LimbDarkening& limb) {
  if (!(distance >= 0) || !(ratio >= 0))
    throw ArgumentError("occulted_flux: distance and ratio must be 0 or more, got " + std::to_string(distance) +
                        " and " + std::to_string(ratio));
  const double z = distance, k = ratio;
  if (k == 0 || z >= 1 + k) return 1;
  const double covered = std::min(1.0, std::max(0.0, k - z));  // annuli within are dark all round
  double dark = light_within(covered, limb);
  const double low = std::abs(z - k), high = std::min(1.0, z + k);
  if (high > low) {
    const auto annulus = [&](double r) {
      const double half = std::acos(std::clamp((z * z + r * r - k * k) / (2 * z * r), -1.0, 1.0));
      return intensity(r, limb) * 2 * r * half;
    };
    // r = middle - reach cos(angle) makes the square roots at both ends smooth, so the trapezoidal rule with the first
    // term of Euler and Maclaurin for its ends is enough.
    constexpr int kSteps = 48;
    constexpr double kStep = pi / kSteps;
    const double middle = (low + high) / 2, reach = (high - low) / 2;
    double sum = 0;
    for (int i = 1; i < kSteps; ++i) sum += annulus(middle - reach * std::cos(i * kStep)) * std::sin(i * kStep);
    const double low_end = low > 0 ? annulus(low) : 0.0;
    dark += reach * kStep * (sum + kStep / 12 * (low_end + annulus(high)));
  }
  return std::max(0.0, 1 - dark / light_within(1, limb));
}

double sky_distance(const Orbit& orbit, double phase) {
  const double cosine = orbit.impact / orbit.axis;  // of the inclination
  const double across = std::sin(2 * pi * phase), along = cosine * std::cos(2 * pi * phase);
  return orbit.axis * std::sqrt(across * across + along * along);
}

double transit_duration(const Orbit& orbit) {
  const double reach = 1 + orbit.ratio, cosine = orbit.impact / orbit.axis;
  if (orbit.impact >= reach) return 0;
  const double chord = std::sqrt((reach * reach - orbit.impact * orbit.impact) / (1 - cosine * cosine));
  return orbit.period / pi * std::asin(std::min(1.0, chord / orbit.axis));
}

double axis_of(double period, double density) {
  return kSolarAxisOfADay * std::cbrt(density) * std::pow(period, 2.0 / 3.0);
}

}  // namespace samebytes::data
