// Labelled time series of any length and number of channels: readers for the UCR archive's .tsv files and sktime's .ts
// files, and a data set of the series. Errors are IoError with the line in the message and the byte in offset() (of the
// unpacked text).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

struct SeriesReading {
  // Replaces a missing value (NaN or ?) by linear interpolation between its neighbours in time, or at an end of the
  // series by its only neighbour. Without this, a missing value is an error.
  bool interpolate = false;
};

struct Series {
  std::string name;                  // @problemName; empty for a .tsv
  std::int64_t channels = 1;         // C
  std::vector<float> values;         // the series one after another, each [T, C]
  std::vector<std::int64_t> starts;  // series i has steps starts[i] to starts[i + 1] - 1; size() + 1 values
  std::vector<std::int32_t> labels;  // indices into `classes`; empty if the file has none
  std::vector<std::string> classes;  // sorted, by value if all are numbers
  std::vector<float> targets;        // for regression (@targetLabel true), instead of labels

  std::int64_t size() const { return static_cast<std::int64_t>(starts.size()) - 1; }
  std::int64_t length(std::int64_t i) const {
    return starts[static_cast<std::size_t>(i) + 1] - starts[static_cast<std::size_t>(i)];
  }
  std::int64_t longest() const;
};

// The UCR archive's format (Dau et al., "The UCR time series archive", 2019): one series per line, the class first,
// separated by tabs or commas. NaNs at the end of a line are padding and are removed. Plain or gzip. Throws IoError for
// a missing or damaged file, a cell that is not a number, a series without values, and missing values inside a series.
Series read_ucr(const std::string& path, const SeriesReading& reading = {});

// sktime's format (".ts"): # comments, a header of @problemName, @timeStamps, @missing, @univariate, @dimensions,
// @equalLength, @seriesLength, @classLabel or @targetLabel, then @data and one case per line: channels separated by
// ':', values by ',', the label last. Plain or gzip. Throws IoError as read_ucr does, and for time stamps, which are
// not supported; an unknown tag; channels or lengths that contradict the header; channels of one case with unequal
// lengths; a class that the header does not list.
Series read_ts(const std::string& path, const SeriesReading& reading = {});

struct SeriesOptions {
  bool normalise = false;   // scales each channel of each series to mean 0 and deviation 1; a constant one to 0
  std::int64_t length = 0;  // steps of the field "series"; 0: the longest series. Longer series keep their first steps
  bool lengths = false;     // adds the field "length" even if all series are as long as the field
};

// Fields "series" [T, C] f32, padded with zeros at the end; "label" [] i32 or "target" [] f32 if the series have one;
// and "length" [] i32, the number of steps before the padding, if a series is shorter than T. Throws ArgumentError for
// a negative length and for an inconsistent Series.
DatasetPtr from_series(Series series, const SeriesOptions& options = {});

}  // namespace samebytes::data
