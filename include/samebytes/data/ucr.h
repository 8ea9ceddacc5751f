// Sets of the UCR and UEA time series archives, with their authors' split.
#pragma once

#include <string>

#include "samebytes/data/series.h"
#include "samebytes/data/sets.h"

namespace samebytes::data {

struct UcrOptions {
  bool normalise = false;    // scales each channel of each series to mean 0, deviation 1; many sets already are
  std::int64_t length = 0;   // steps of the field "series"; 0: the longest series of both parts
  bool lengths = false;      // adds the field "length" even if all series have equal lengths
  bool interpolate = false;  // fills missing values inside a series linearly; false: they are an error
};

// NAME_TRAIN and NAME_TEST with .tsv or .ts (see series.h), plain or .gz, in `folder` or `folder`/NAME. Fields "series"
// [T, C] f32, "label" [] i32 and, if lengths differ in either part, "length" [] i32. Labels are 0,
// 1, ... in sorted order of the class names, which split.classes has. Throws IoError for a missing or damaged file, and
// if the two parts differ in channels.
Split ucr(const std::string& folder, const std::string& name, const UcrOptions& options = {});

}  // namespace samebytes::data
