// Simulated light curves with and without a planet, folded into the two views that Shallue and Vanderburg's network
// reads, for training and testing without a download. Sample `index` is a function of (seed, index) alone, so every
// worker makes the same bytes. This header also has the physics itself, for tests and other curves. Units: days, radii
// of the star, flux 1 out of transit.
#pragma once

#include <cstdint>
#include <vector>

#include "samebytes/data/dataset.h"
#include "samebytes/data/phase_fold.h"

namespace samebytes::data {

// I(mu) / I(1) = 1 - linear (1 - mu) - quadratic (1 - mu)^2, mu = sqrt(1 - r^2).
struct LimbDarkening {
  double linear = 0.4;
  double quadratic = 0.25;
};

// Flux of a star of radius 1 behind a dark disc of radius `ratio`, `distance` between the centres. The model of K.
// Mandel, E. Agol, "Analytic light curves for planetary transit searches", ApJ 580, L171 (2002), evaluated as an
// integral over annuli as in L. Kreidberg, "batman", PASP 127, 1161 (2015), section 2.2; correct to about 1e-6 of the
// depth. Throws ArgumentError for negative arguments.
double occulted_flux(double distance, double ratio, const LimbDarkening& limb = {});

// A circular orbit seen from the side. J. Winn, "Transits and occultations", arXiv:1001.2010 (2010).
struct Orbit {
  double period = 10;
  double axis = 20;    // semi-major axis; above 1 + ratio
  double ratio = 0.1;  // radius of the companion
  double impact = 0;   // distance between the centres at mid-transit
};
// The distance of the centres on the sky, `phase` periods after mid-transit (Winn, equation 5).
double sky_distance(const Orbit& orbit, double phase);
// From first to last contact, in days; 0 if there is no transit (Winn, equation 14).
double transit_duration(const Orbit& orbit);
// The axis of an orbit around a star of `density` solar densities, by Kepler's third law.
double axis_of(double period, double density);

enum class CurveKind {
  planet,    // label 1: a dark disc in front of a limb-darkened star
  quiet,     // only noise, folded on a random period around the deepest box
  pulsator,  // a sum of harmonics, folded on the period or a multiple of it around its deepest minimum
  spotted,   // dark spots on a rotating star, folded on the rotation around the deepest minimum
  binary     // two stars that eclipse each other, diluted by the light of a third one
};

struct Range {
  double low, high;
};

// Numbers are drawn from their ranges uniformly, or log-uniformly where "logarithmic".
struct TransitOptions {
  std::int64_t size = 10000;
  std::uint64_t seed = 0;
  double positives = 0.5;  // probability of a planet
  // Shares of the curves without a planet; the rest is quiet. Half of the variables are pulsators.
  double binaries = 0.6;
  double variables = 0.3;
  Range signal_to_noise = {3, 15};  // depth (or peak to peak) / white noise of a bin of the folded curve (global view)
  double correlated = 0.3;          // red noise, as a fraction of the white noise, at most; decays in 0.1 to 0.5 days
  Range period = {2, 20};           // days, logarithmic
  Range density = {0.5, 2};         // of the star, solar, logarithmic
  Range ratio = {0.02, 0.12};       // of the radii, planets; logarithmic
  Range impact = {0, 0.8};          // planets
  double jitter = 0.2;              // of the centre, in durations, in either direction
  double duration_error = 0.4;      // the found duration is the true one times 1 / (1 + error) to 1 + error
  std::int64_t points = 12288;      // measurements, one every 29.4 minutes
  std::int64_t global_bins = 2001;
  std::int64_t local_bins = 201;
};

// One simulated curve before it is folded.
struct TransitCurve {
  CurveKind kind = CurveKind::quiet;
  std::vector<double> time;  // [points], days
  std::vector<float> flux;   // [points]
  std::vector<float> model;  // [points], the flux without noise
  Ephemeris found;           // the ephemeris for folding, errors included
  double depth = 0;          // of the model, peak to peak
  double white = 0;          // deviation of the white noise of one point
};

// Throws ArgumentError for an index outside the set, invalid ranges, and fewer than 256 points.
TransitCurve make_transit_curve(const TransitOptions& options, std::int64_t index);
CurveKind transit_kind(const TransitOptions& options, std::int64_t index);

// Fields "global" [global_bins, 1], "local" [local_bins, 1], "label" [] (1: planet), all f32. A sample costs one to two
// milliseconds; preload() keeps the samples. slice() gives parts for training and testing. With the defaults, 8000
// curves for training and 2000 for testing, logistic regression on both views has a balanced accuracy of about 0.80, a
// threshold on box_least_squares_depth of the global view 0.69, and a small network of two convolutional branches 0.97.
// Throws ArgumentError for invalid options.
DatasetPtr transits(const TransitOptions& options = {});

}  // namespace samebytes::data
