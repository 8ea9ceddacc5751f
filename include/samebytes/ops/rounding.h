// Rounding to fewer bits than astype() leaves to chance: what is added a little at a time is not lost.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// bf16: each element of a (f32) is one of its two neighbours there, the upper one with the probability that makes the
// expected value the element itself (stochastic rounding: M. Croci et al., "Stochastic rounding: implementation, error
// analysis and applications", 2022, section 1). Where astype() would leave a running mean standing still, since each
// change is less than half a step of bf16, this one follows it. What decides is a hash of key, of the element and of
// the element of `salt` (f32, the same shape) beside it, not of its place: equal values with equal salt and key are
// rounded alike, and a part of an array as in the whole. NaN and infinities stay. No gradient flows. Throws
// ArgumentError for other dtypes and shapes.
Array round_stochastic(const Array& a, const Array& salt, RandomKey key);

}  // namespace samebytes
