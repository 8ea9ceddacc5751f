// Weights in bf16 with nothing wider beside them: 2 bytes a weight instead of 4, or of 6 with a working copy. An
// optimizer computes their update in f32 and rounds the result by chance (optim/optimizer.h). For training under
// Autocast in bf16, whose ops read such weights as they are; docs/techniques.md has what that saves and costs.
#pragma once

#include <span>

#include "samebytes/array.h"

namespace samebytes {

// Stores each f32 parameter of two axes and more in bf16 alone: its values are rounded once to the nearest, and its
// dtype is bf16 from now on. Biases and weights of norms stay f32. Before the optimizer is made, and before anything is
// computed with the parameters that is not evaluated yet, which throws then. Throws ArgumentError for what is not a
// cell, has a working copy or belongs to an optimizer.
void store_in_bf16(std::span<const Array> parameters);

// What a bf16 cell of one axis is overwritten with: each element of a (f32, the cell's shape) as one of its two
// neighbours in bf16, rounded up with the probability that makes the expected value the element itself, as
// round_stochastic() does (ops/rounding.h). What decides is a hash of key and of the element's place in the cell, so
// that equal values are rounded apart. No gradient flows. Throws ArgumentError for other dtypes and shapes.
Array round_stochastic_into(const Array& cell, const Array& a, RandomKey key);

}  // namespace samebytes
