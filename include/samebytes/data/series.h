// Labelled time series of any length and number of channels: readers of the UCR archive's .tsv files and of sktime's
// .ts files, and the data set made of what they read. Errors are IoError with the line in the message and the byte in
// offset() (of the unpacked text).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

struct SeriesReading {
  // A value that is missing (NaN or ?) inside a series becomes the point on the line between its neighbours in time, at
  // an end of the series its one neighbour. Without this it is an error.
  bool interpolate = false;
};

struct Series {
  std::string name;                  // @problemName; empty for a .tsv
  std::int64_t channels = 1;         // C
  std::vector<float> values;         // one series after another, each [T, C]
  std::vector<std::int64_t> starts;  // in steps: series i is steps starts[i] to starts[i + 1] - 1; one more than series
  std::vector<std::int32_t> labels;  // places in `classes`; empty where the file has none
  std::vector<std::string> classes;  // sorted, by value where all are numbers
  std::vector<float> targets;        // for regression (@targetLabel true), instead of labels

  std::int64_t size() const { return static_cast<std::int64_t>(starts.size()) - 1; }
  std::int64_t length(std::int64_t i) const {
    return starts[static_cast<std::size_t>(i) + 1] - starts[static_cast<std::size_t>(i)];
  }
  std::int64_t longest() const;
};

// The UCR archive's form (Dau et al., "The UCR time series archive", 2019): one series a line, the class first, tabs
// between (or commas). NaN at the end of a line is padding and makes the series shorter. Plain or gzip. Throws IoError
// for a missing or damaged file, a cell that is no number, a series without values, and missing values inside one.
Series read_ucr(const std::string& path, const SeriesReading& reading = {});

// sktime's form (".ts"): # comments, a header of @problemName, @timeStamps, @missing, @univariate, @dimensions,
// @equalLength, @seriesLength, @classLabel or @targetLabel, then @data and one case a line: channels separated by ':',
// values by ',', the label last. Plain or gzip. Throws IoError as read_ucr does; for time stamps, which are not read;
// an unknown tag; channels or lengths that are not what the header says; channels of one case with unequal lengths; a
// class that the header does not list.
Series read_ts(const std::string& path, const SeriesReading& reading = {});

struct SeriesOptions {
  bool normalise = false;   // each channel of each series to mean 0 and deviation 1; a constant one becomes 0
  std::int64_t length = 0;  // steps of the field "series"; 0: the longest series. Longer series keep their first steps
  bool lengths = false;     // have the field "length" even where all series are as long as the field
};

// Fields "series" [T, C] f32, its end filled with zeros; "label" [] i32 or "target" [] f32 where there is one; and
// "length" [] i32, the steps before the zeros, where series are shorter than T (see packed sequences and masks).
// Throws ArgumentError for a negative length and for a Series whose parts do not go together.
DatasetPtr from_series(Series series, const SeriesOptions& options = {});

}  // namespace samebytes::data
