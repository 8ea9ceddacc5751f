// Mean and deviation of a data set, for the normalise transform.
#pragma once

#include <cstddef>

#include "samebytes/data/transform.h"

namespace samebytes::data {

// Mean and standard deviation (divided by the number of values, as they are published) of each channel (the last axis)
// of f32 field `field` over all samples; a constant channel gets deviation 1. Sums are kept in double. Reads every
// sample once, in the calling thread. Throws ArgumentError for another dtype, a scalar field, an empty set and an
// endless source, and what the data set throws.
NormaliseOptions channel_moments(const Dataset& set, std::size_t field = 0);

}  // namespace samebytes::data
