// Stochastic rounding to bf16, which does not lose small increments as astype() does.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// Rounds each element of a (f32) to one of its two neighbours in bf16, up with the probability that makes the expected
// value the element itself (M. Croci et al., "Stochastic rounding: implementation, error analysis and applications",
// 2022, section 1). A running mean whose changes are below half a step of bf16 stands still with astype(), but not with
// this function. A hash of key, the element and the corresponding element of `salt` (f32, same shape) decides, not the
// position: equal values with equal salt and key are rounded equally, and a part of an array as in the whole. NaN and
// infinities stay. No gradient flows. Throws ArgumentError for other dtypes and shapes.
Array round_stochastic(const Input& a, const Input& salt, RandomKey key);

}  // namespace samebytes
