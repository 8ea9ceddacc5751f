// Sets of the UCR and UEA time series archives, split as their authors split them.
#pragma once

#include <string>

#include "samebytes/data/series.h"
#include "samebytes/data/sets.h"

namespace samebytes::data {

struct UcrOptions {
  bool normalise = false;    // each channel of each series to mean 0 and deviation 1; many sets come so
  std::int64_t length = 0;   // steps of the field "series"; 0: the longest series of both parts
  bool lengths = false;      // have the field "length" even where all series have one length
  bool interpolate = false;  // fill missing values inside a series by a line; otherwise they are an error
};

// NAME_TRAIN and NAME_TEST with .tsv or .ts (see series.h), plain or .gz, in `folder` or in its folder NAME. Fields
// "series" [T, C] f32, "label" [] i32 and, where lengths differ in either part, "length" [] i32. Labels are 0 to
// classes
// - 1 in sorted order of what the files say, and split.classes has their words. Throws IoError for a missing or damaged
// file, and for parts with unequal channels.
Split ucr(const std::string& folder, const std::string& name, const UcrOptions& options = {});

}  // namespace samebytes::data
