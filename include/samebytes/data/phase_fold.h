// Folding a light curve on a period into fixed-size views, and the box search that transits are found with. For
// whoever feeds measured or made light curves to a network. Pure functions, safe from several threads at once.
// Source of the views: C. Shallue, A. Vanderburg, "Identifying exoplanets with deep learning", AJ 155, 94 (2018),
// section 3.3.
#pragma once

#include <span>

namespace samebytes::data {

// Where a light curve is folded, in the time's unit (days where nothing else is said).
struct Ephemeris {
  double period = 1;    // above 0
  double centre = 0;    // a time at which a transit is in the middle
  double duration = 1;  // of the transit; the local view is as many durations wide as asked for; above 0
};

struct LocalViewOptions {
  double durations = 4;  // on either side of the centre, at most half a period
  double width = 0.16;   // of a bin in durations; bins overlap where they stand closer
};

// Both views: each value is the median of the points in its bin; an empty bin gets the median of the curve's points.
// Then the median of the view is subtracted, and the view divided by the absolute value of its minimum: the median
// is 0 and the minimum -1. A view without a negative value stays without the division. Values that are not finite are
// left out. All throw ArgumentError for unequal numbers of times and fluxes, an empty view, a period or duration not
// above 0.
// view [bins]: the whole period, the centre in the middle of the view; bin width is the period / bins.
void global_view(std::span<const double> time, std::span<const float> flux, const Ephemeris& ephemeris,
                 std::span<float> view);
// view [bins]: the surroundings of the centre, which is in the middle of the view.
void local_view(std::span<const double> time, std::span<const float> flux, const Ephemeris& ephemeris,
                std::span<float> view, const LocalViewOptions& options = {});

struct BoxOptions {
  double narrowest = 0.005;  // widths of the box in parts of the period; several between the two are tried
  double widest = 0.12;
  int widths = 12;  // at logarithmic distances
};

struct Box {
  double depth = 0;  // mean outside of the box less mean inside
  double noise = 0;  // standard error of that depth from the scatter of the values about box and outside
  double phase = 0;  // of the middle of the box, 0 to 1 from the first bin's edge
  double width = 0;  // in parts of the period
};

// The deepest box in units of its noise, over every place (round the end) and several widths: least squares of a box
// on a folded curve. Source: G. Kovacs, S. Zucker, T. Mazeh, "A box-fitting algorithm in the search for periodic
// transits", A&A 391, 369 (2002), equations 3 to 5. Throws ArgumentError for fewer than 8 values or wrong widths.
Box box_least_squares(std::span<const float> folded, const BoxOptions& options = {});
// Its depth / noise: the statistic that a box search compares with a threshold. 0 where the view is constant.
double box_least_squares_depth(std::span<const float> folded, const BoxOptions& options = {});

}  // namespace samebytes::data
