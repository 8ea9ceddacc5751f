// Simulated light curves. All random numbers of a curve come from lanes of (seed, index): one for its parameters, one
// for the noise.
#include "samebytes/data/transit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "data/draw.h"
#include "samebytes/random.h"

namespace samebytes::data {
namespace {

using detail::draw;
using std::numbers::pi;

enum Lane : std::uint32_t { kKindLane, kShapeLane, kWhiteLane, kRedLane };

Random draws(const TransitOptions& options, std::int64_t index, Lane lane) {
  return Random({.seed = options.seed, .index = index, .lane = lane, .domain = RandomDomain::synthesis});
}

constexpr double kCadence = 29.4 / 60 / 24;  // Kepler's long cadence, days

double draw(Random& random, const Range& range) { return draw(random, range.low, range.high); }
double draw_log(Random& random, const Range& range) {
  return std::exp(draw(random, std::log(range.low), std::log(range.high)));
}

enum class Bound { open, closed };

void check_range(const char* name, const Range& range, double least, Bound bound) {
  const bool above = bound == Bound::open ? range.low > least : range.low >= least;
  if (!above || !(range.low <= range.high))
    throw ArgumentError("transits: " + std::string(name) + ": expected " +
                        (bound == Bound::open ? "above " : "at least ") + std::to_string(least) +
                        " and low <= high, got " + std::to_string(range.low) + " to " + std::to_string(range.high));
}

void check_share(const char* name, double value) {
  if (!(value >= 0 && value <= 1))
    throw ArgumentError("transits: " + std::string(name) + ": expected from 0 to 1, got " + std::to_string(value));
}

void check_transits(const TransitOptions& options) {
  if (options.size < 0) throw ArgumentError("transits: size must be 0 or more, got " + std::to_string(options.size));
  check_share("positives", options.positives);
  check_share("binaries", options.binaries);
  check_share("variables", options.variables);
  check_share("binaries + variables", options.binaries + options.variables);
  check_share("jitter", options.jitter);
  check_share("duration_error", options.duration_error);
  check_share("correlated", options.correlated);
  check_range("signal_to_noise", options.signal_to_noise, 0, Bound::open);
  check_range("period", options.period, 1, Bound::closed);
  check_range("density", options.density, 0.1, Bound::closed);
  check_range("ratio", options.ratio, 0, Bound::open);
  check_range("impact", options.impact, 0, Bound::closed);
  if (options.ratio.high >= 1 || options.impact.high >= 1)
    throw ArgumentError("transits: ratio and impact must be below 1, got " + std::to_string(options.ratio.high) +
                        " and " + std::to_string(options.impact.high));
  constexpr std::int64_t kFewestPoints = 256;
  constexpr std::int64_t kMostPoints = 100000;  // a lane has numbers for this many
  if (options.points < kFewestPoints || options.points > kMostPoints)
    throw ArgumentError("transits: expected 256 to 100000 points, got " + std::to_string(options.points));
  if (options.global_bins < 8 || options.local_bins < 8)
    throw ArgumentError("transits: expected 8 bins or more in a view, got " + std::to_string(options.global_bins) +
                        " and " + std::to_string(options.local_bins));
}

// occulted_flux over the distance, read from a table: a curve has thousands of points in transit.
class Occultation {
 public:
  Occultation(double ratio, const LimbDarkening& limb) : reach_(1 + ratio) {
    for (std::size_t i = 0; i <= kCells; ++i)
      flux_[i] = occulted_flux(reach_ * static_cast<double>(i) / kCells, ratio, limb);
  }
  double at(double distance) const {
    if (distance >= reach_) return 1;
    const double place = distance / reach_ * kCells;
    const auto cell = std::min(static_cast<std::size_t>(place), kCells - 1);
    const double part = place - static_cast<double>(cell);
    return flux_[cell] + part * (flux_[cell + 1] - flux_[cell]);
  }

 private:
  static constexpr std::size_t kCells = 512;
  double reach_;
  std::array<double, kCells + 1> flux_;
};

LimbDarkening draw_limb(Random& random) { return {draw(random, 0.2, 0.6), draw(random, 0.1, 0.4)}; }

// The result of each kind of curve besides its model: the ephemeris to fold it on, and duration and depth of the dip.
struct Model {
  double period = 0, centre = 0, duration = 0, depth = 0;
};

// The model's values go to curve.model; `shape` is the flux at a phase, 0 at the centre.
template <class Shape>
void evaluate(TransitCurve& curve, const Model& model, const Shape& shape) {
  for (std::size_t i = 0; i < curve.time.size(); ++i)
    curve.model[i] = static_cast<float>(shape((curve.time[i] - model.centre) / model.period));
}

double draw_centre(Random& random, double period) { return draw(random, 0, period); }

Model make_planet(const TransitOptions& options, Random& random, TransitCurve& curve) {
  Orbit orbit{.period = draw_log(random, options.period)};
  orbit.axis = axis_of(orbit.period, draw_log(random, options.density));
  orbit.ratio = draw_log(random, options.ratio);
  orbit.impact = draw(random, options.impact);
  const Occultation star(orbit.ratio, draw_limb(random));
  const Model model{orbit.period, draw_centre(random, orbit.period), transit_duration(orbit),
                    1 - star.at(orbit.impact)};
  evaluate(curve, model, [&](double turns) {
    const double phase = turns - std::round(turns);
    return std::abs(phase) < 0.25 ? star.at(sky_distance(orbit, phase)) : 1.0;
  });
  return model;
}

// Two stars of unlike radii and brightness that graze each other, so that the eclipse is a V. The third light makes
// the primary eclipse as shallow as a planet's. The secondary eclipse is about half a period later, shifted by the
// eccentricity. One in four is folded on half its period, as a search for the shortest period finds it: primary and
// secondary eclipses then alternate at the centre, and odd and even depths differ.
Model make_binary(const TransitOptions& options, Random& random, TransitCurve& curve) {
  constexpr double kHalved = 0.25;
  const double period = draw_log(random, options.period);
  const double density = draw_log(random, options.density);
  const double ratio = draw(random, 0.4, 1.0);
  Orbit primary{.period = period, .axis = axis_of(period, density), .ratio = ratio};
  primary.impact = draw(random, 0.55, 0.9) * (1 + ratio);
  const double second_light =
      ratio * ratio * draw(random, 0.15, 1.0);  // of the primary star's, surface brightness apart
  const bool is_halved = draw(random, 0, 1) < kHalved;
  const double shift = is_halved ? 0.5 : 0.5 + draw(random, -0.15, 0.15);
  const Occultation first(ratio, draw_limb(random)), second(1 / ratio, draw_limb(random));
  const double own_depth = (1 - first.at(primary.impact)) / (1 + second_light);
  const double wanted = std::pow(draw_log(random, options.ratio), 2);
  const double share = std::min(1.0, wanted / own_depth);  // of the light that is the binary's
  const auto eclipse = [](double turns) {
    const double phase = turns - std::round(turns);
    return std::abs(phase) < 0.25 ? phase : 0.25;
  };
  const double centre = draw_centre(random, period);
  Model model{period, centre, transit_duration(primary), own_depth * share};
  evaluate(curve, model, [&](double turns) {
    const double before = first.at(sky_distance(primary, eclipse(turns)));
    const double behind = second.at(sky_distance(primary, eclipse(turns - shift)) / ratio);
    return 1 - share * (1 - (before + second_light * behind) / (1 + second_light));
  });
  if (is_halved) model.period /= 2;
  // The best box is as wide as the V at half its depth.
  model.duration *= draw(random, 0.4, 0.95);
  return model;
}

Model make_pulsator(const TransitOptions& options, Random& random, TransitCurve& curve) {
  constexpr int kHarmonics = 4;
  Model model{.period = draw_log(random, options.period), .depth = std::pow(draw_log(random, options.ratio), 2)};
  const int cycles = 1 + static_cast<int>(random.below(4));  // folded on a multiple of the pulsation's period
  std::array<double, kHarmonics> height{}, angle{};
  for (int h = 0; h < kHarmonics; ++h) {
    height[static_cast<std::size_t>(h)] = draw(random, 0, 1) / (1 + h);
    angle[static_cast<std::size_t>(h)] = draw(random, 0, 2 * pi);
  }
  height[0] += 0.2;
  const auto wave = [&](double turns) {
    double sum = 0;
    for (std::size_t h = 0; h < kHarmonics; ++h)
      sum += height[h] * std::cos(2 * pi * static_cast<double>(h + 1) * turns * cycles + angle[h]);
    return sum;
  };
  constexpr int kGrid = 512;
  double low = wave(0), high = low, deepest = 0;
  for (int i = 1; i < kGrid; ++i) {
    const double turns = static_cast<double>(i) / kGrid / cycles, value = wave(turns);
    high = std::max(high, value);
    if (value < low) {
      low = value;
      deepest = turns;
    }
  }
  model.centre = draw_centre(random, model.period);
  model.duration = draw(random, 0.02, 0.1) * model.period;
  evaluate(curve, model,
           [&](double turns) { return 1 + model.depth * ((wave(turns + deepest) - high) / (high - low)); });
  return model;
}

// A spot on the visible side removes light in proportion to its projected area.
Model make_spotted(const TransitOptions& options, Random& random, TransitCurve& curve) {
  constexpr std::size_t kMost = 3;
  const std::size_t count = 1 + random.below(kMost);
  struct Spot {
    double up = 0, around = 0, longitude = 0, area = 0;
  };
  std::array<Spot, kMost> spots{};
  Model model{.period = draw_log(random, options.period), .depth = std::pow(draw_log(random, options.ratio), 2)};
  const double inclination = std::acos(draw(random, 0, 0.7));
  for (std::size_t s = 0; s < count; ++s) {
    const double latitude = std::asin(draw(random, -0.7, 0.5));
    spots[s] = {std::cos(inclination) * std::sin(latitude), std::sin(inclination) * std::cos(latitude),
                draw(random, 0, 2 * pi), draw(random, 0.3, 1)};
  }
  const auto covered = [&](double turns) {
    double sum = 0;
    for (std::size_t s = 0; s < count; ++s)
      sum +=
          spots[s].area * std::max(0.0, spots[s].up + spots[s].around * std::cos(2 * pi * turns + spots[s].longitude));
    return sum;
  };
  constexpr int kGrid = 512;
  double low = covered(0), high = low, deepest = 0;
  for (int i = 1; i < kGrid; ++i) {
    const double turns = static_cast<double>(i) / kGrid, value = covered(turns);
    low = std::min(low, value);
    if (value > high) {
      high = value;
      deepest = turns;
    }
  }
  const double scale = high > low ? model.depth / (high - low) : 0;
  model.centre = draw_centre(random, model.period);
  model.duration = draw(random, 0.02, 0.1) * model.period;
  evaluate(curve, model, [&](double turns) { return 1 - scale * (covered(turns + deepest) - low); });
  return model;
}

Model make_quiet(const TransitOptions& options, Random& random, TransitCurve& curve) {
  const double period = draw_log(random, options.period), depth = std::pow(draw_log(random, options.ratio), 2);
  std::ranges::fill(curve.model, 1.0f);
  return {period, 0, draw(random, 0.02, 0.1) * period, depth};
}

// Noise of deviation 1: Box and Muller (1958) with both of their numbers.
void fill_normal(Random random, std::span<float> dst) {
  for (std::size_t i = 0; i < dst.size(); i += 2) {
    const float radius = std::sqrt(-2.0f * std::log(1.0f - random.uniform()));
    const float angle = 2.0f * std::numbers::pi_v<float> * random.uniform();
    dst[i] = radius * std::cos(angle);
    if (i + 1 < dst.size()) dst[i + 1] = radius * std::sin(angle);
  }
}

}  // namespace

CurveKind transit_kind(const TransitOptions& options, std::int64_t index) {
  Random random = draws(options, index, kKindLane);
  if (static_cast<double>(random.uniform()) < options.positives) return CurveKind::planet;
  const auto place = static_cast<double>(random.uniform());
  if (place < options.binaries) return CurveKind::binary;
  if (place < options.binaries + options.variables / 2) return CurveKind::pulsator;
  return place < options.binaries + options.variables ? CurveKind::spotted : CurveKind::quiet;
}

TransitCurve make_transit_curve(const TransitOptions& options, std::int64_t index) {
  check_transits(options);
  if (index < 0 || index >= options.size)
    throw ArgumentError("transits: curve " + std::to_string(index) + " of " + std::to_string(options.size));
  const auto points = static_cast<std::size_t>(options.points);
  TransitCurve curve;
  curve.kind = transit_kind(options, index);
  curve.time.resize(points);
  curve.flux.resize(points);
  curve.model.resize(points);
  for (std::size_t i = 0; i < points; ++i) curve.time[i] = kCadence * static_cast<double>(i);
  Random random = draws(options, index, kShapeLane);
  const Model model = [&] {
    switch (curve.kind) {
      case CurveKind::planet: return make_planet(options, random, curve);
      case CurveKind::binary: return make_binary(options, random, curve);
      case CurveKind::pulsator: return make_pulsator(options, random, curve);
      case CurveKind::spotted: return make_spotted(options, random, curve);
      case CurveKind::quiet: break;
    }
    return make_quiet(options, random, curve);
  }();
  curve.depth = curve.kind == CurveKind::quiet ? 0 : model.depth;
  // Deviation of a point such that the mean of a bin's points has depth / signal to noise.
  const double in_bin = std::max(1.0, static_cast<double>(options.points) / static_cast<double>(options.global_bins));
  curve.white = model.depth / draw(random, options.signal_to_noise) * std::sqrt(in_bin);
  const double red = curve.white * draw(random, 0, options.correlated);
  const double kept = std::exp(-kCadence / draw(random, 0.1, 0.5)), fresh = std::sqrt(1 - kept * kept);
  std::vector<float> steps(points);
  fill_normal(draws(options, index, kWhiteLane), curve.flux);
  fill_normal(draws(options, index, kRedLane), steps);
  auto level = static_cast<double>(steps[0]);
  for (std::size_t i = 0; i < points; ++i) {
    if (i > 0) level = kept * level + fresh * static_cast<double>(steps[i]);
    curve.flux[i] = static_cast<float>(static_cast<double>(curve.model[i]) +
                                       curve.white * static_cast<double>(curve.flux[i]) + red * level);
  }
  const double stretch = 1 + draw(random, 0, options.duration_error);
  const double duration = draw(random, 0, 1) < 0.5 ? model.duration * stretch : model.duration / stretch;
  curve.found = {model.period, model.centre, duration};
  if (curve.kind == CurveKind::quiet) {  // where a search would have found a signal
    std::vector<float> view(static_cast<std::size_t>(options.global_bins));
    global_view(curve.time, curve.flux, curve.found, view);
    const Box box = box_least_squares(view);
    curve.found.centre += (box.phase - 0.5) * model.period;
    curve.found.duration = std::max(box.width * model.period, duration / 2);
  } else {
    curve.found.centre += draw(random, -options.jitter, options.jitter) * duration;
  }
  return curve;
}

DatasetPtr transits(const TransitOptions& options) {
  check_transits(options);
  const std::vector<FieldSpec> fields = {
      {"global", Shape{options.global_bins, 1}}, {"local", Shape{options.local_bins, 1}}, {"label", Shape{}}};
  return generate(options.size, fields, [options](std::int64_t index, std::span<const Field> dst) {
    const TransitCurve curve = make_transit_curve(options, index);
    global_view(curve.time, curve.flux, curve.found, dst[0].as<float>());
    local_view(curve.time, curve.flux, curve.found, dst[1].as<float>());
    dst[2].as<float>()[0] = curve.kind == CurveKind::planet ? 1.0f : 0.0f;
  });
}

}  // namespace samebytes::data
