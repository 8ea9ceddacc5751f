// Weights in bf16 without a wider copy: 2 bytes per weight instead of 4, or 6 with a working copy. An optimizer
// computes their update in f32 and rounds the result stochastically (optim/optimizer.h). For training under Autocast in
// bf16, whose ops read such weights without a cast; docs/techniques.md has the savings and costs.
#pragma once

#include <span>
#include <string>

#include "samebytes/array.h"

namespace samebytes {

// Stores each f32 parameter with two or more axes in bf16 only: rounds its values once to the nearest; its dtype is
// bf16 from now on. Biases and weights of norms stay f32. Call it before the optimizer is made; pending expressions of
// the parameters throw when evaluated afterwards. Throws ArgumentError for an array that is not a cell, has a working
// copy or belongs to an optimizer.
void store_in_bf16(std::span<const Array> parameters);

// A cell over the bytes of `values` themselves: weights in memory of the user's own (adopt(), io::TensorFile::map())
// become parameters without a copy, and updates overwrite that memory. `values` must be the only handle on an array
// with its own bytes: no expression, view or cell. Throws ArgumentError otherwise.
Array cell_over(Array&& values, std::string name);

// The value with which to overwrite a bf16 cell with one axis: each element of a (f32, the cell's shape) rounded to one
// of its two neighbours in bf16, up with the probability that makes the expected value the element itself, as
// round_stochastic() does (ops/rounding.h). A hash of key and the element's index in the cell decides, so equal values
// are rounded independently. No gradient flows. Throws ArgumentError for other dtypes and shapes.
Array round_stochastic_into(const Array& cell, const Array& a, RandomKey key);

}  // namespace samebytes
