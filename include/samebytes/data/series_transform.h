// Transforms of time series [L, C], f32: noise, scaling, shift, window. Random numbers are a function of (seed, epoch,
// index), see transform.h. `field` is the index of the series among the sample's fields. All throw ArgumentError for
// invalid options, and in check() for a field that does not fit. Source: T. Um et al., "Data augmentation of wearable
// sensor data for Parkinson's disease monitoring using convolutional neural networks", ICMI 2017, section 4.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samebytes/data/transform.h"

namespace samebytes::data {

struct JitterOptions {
  double deviation = 0.03;  // of the noise
  std::size_t field = 0;    // f32 of any shape, at most 131 072 values
};
// Adds normal noise to each value.
TransformPtr jitter(const JitterOptions& options = {});

struct ScalingOptions {
  double deviation = 0.1;  // of the factor, whose mean is 1
  std::size_t field = 0;   // f32 of any shape; channels are the last axis
};
// Multiplies each channel by a normal factor.
TransformPtr scaling(const ScalingOptions& options = {});

struct TimeShiftOptions {
  std::int64_t steps = 1;  // at most this many in either direction, uniformly distributed
  bool circular = false;   // true: rotates the series; false: fills with the field's background
  std::size_t field = 0;
};
TransformPtr time_shift(const TimeShiftOptions& options);

struct RandomWindowOptions {
  std::int64_t length = 0;  // steps of the result, at most L
  std::size_t field = 0;
};
// A window of the series that begins at a uniformly random step: [length, C].
TransformPtr random_window(const RandomWindowOptions& options);

}  // namespace samebytes::data
