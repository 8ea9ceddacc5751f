// Folds a light curve on a period into fixed-size views, and searches it for transits with a box: for feeding measured
// or simulated light curves to a network. Pure functions; several threads may call them at once.
// Source of the views: C. Shallue, A. Vanderburg, "Identifying exoplanets with deep learning", AJ 155, 94 (2018),
// section 3.3.
#pragma once

#include <span>

namespace samebytes::data {

// How a light curve is folded, in the unit of time (days unless stated otherwise).
struct Ephemeris {
  double period = 1;    // above 0
  double centre = 0;    // time of the middle of a transit
  double duration = 1;  // of the transit, the unit of LocalViewOptions; above 0
};

struct LocalViewOptions {
  double durations = 4;  // on each side of the centre, at most half a period
  double width = 0.16;   // of a bin in durations; bins overlap if they are closer than this
};

// Both views: each value is the median of the points in its bin; an empty bin gets the median of the curve's points.
// Then the view's median is subtracted and the view is divided by the absolute value of its minimum, so that the median
// is 0 and the minimum -1; a view without a negative value is not divided. Values that are not finite are ignored. Both
// throw ArgumentError for unequal numbers of times and fluxes, an empty view, and a period or duration that is not
// above 0.
// view [bins]: the whole period, the centre in the middle of the view; bin width is the period / bins.
void global_view(std::span<const double> time, std::span<const float> flux, const Ephemeris& ephemeris,
                 std::span<float> view);
// view [bins]: the part around the centre, which is in the middle of the view.
void local_view(std::span<const double> time, std::span<const float> flux, const Ephemeris& ephemeris,
                std::span<float> view, const LocalViewOptions& options = {});

struct BoxOptions {
  double narrowest = 0.005;  // range of box widths, as fractions of the period
  double widest = 0.12;
  int widths = 12;  // number of widths to try, logarithmically spaced
};

struct Box {
  double depth = 0;  // mean outside the box minus mean inside
  double noise = 0;  // standard error of depth, from the scatter of the values inside and outside
  double phase = 0;  // of the middle of the box, 0 to 1, from the edge of the first bin
  double width = 0;  // as a fraction of the period
};

// The deepest box in units of its noise, over all positions (cyclically) and several widths: a least-squares fit of a
// box to a folded curve. Source: G. Kovacs, S. Zucker, T. Mazeh, "A box-fitting algorithm in the search for periodic
// transits", A&A 391, 369 (2002), equations 3 to 5. Throws ArgumentError for fewer than 8 values or invalid widths.
Box box_least_squares(std::span<const float> folded, const BoxOptions& options = {});
// The best box's depth / noise, which a box search compares with a threshold. 0 if the view is constant.
double box_least_squares_depth(std::span<const float> folded, const BoxOptions& options = {});

}  // namespace samebytes::data
