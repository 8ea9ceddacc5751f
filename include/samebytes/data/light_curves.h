// Reads light curves of stars from a table: a header, then one curve per row with its class in the column "label" and
// its brightness in f0, f1, ... Optional columns name the star (star_id) and the telescope (mission).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "samebytes/data/series.h"

namespace samebytes::data {

struct LightCurveOptions {
  bool duplicates = false;  // true: keeps rows with the same values as an earlier row
  // Clips values to this range: a folded curve can have outliers.
  float lowest = -std::numeric_limits<float>::infinity();
  float highest = std::numeric_limits<float>::infinity();
};

struct LightCurves {
  Series curves;                     // one channel; from_series() makes the set, fields "series" [T, 1] and "label"
  std::vector<std::int32_t> groups;  // one number per star, for stratified_folds(); empty without star_id
  std::int64_t duplicates = 0;       // duplicate rows left out
  std::int64_t contradictions = 0;   // of these, rows whose label differs from the kept row's
};

// Plain or gzip. Classes are sorted, by word or number: curves.classes[label]. Throws IoError for a missing or damaged
// file, a header without "label" or with values that are not f0, f1, ... in order, and cells that are not numbers;
// ArgumentError if lowest is above highest.
//   const auto stars = data::light_curves("data/light_curves/kepler_local_view.csv.gz", {.lowest = -5, .highest = 5});
//   const auto folds = data::stratified_folds(stars.curves.labels, {.seed = 1, .groups = stars.groups});
LightCurves light_curves(const std::string& path, const LightCurveOptions& options = {});

}  // namespace samebytes::data
