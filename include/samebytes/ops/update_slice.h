// Writes a part of a cell in place: engine/ops/update_slice.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

// Returns a node that, when evaluated, overwrites cell[.., start : start + value.shape[axis], ..] along the axis; its
// value is the whole cell afterwards, without a copy. Unlike update (array.h) it does not wait for other readers of the
// run: read the result, not the cell. A different start reuses the plan. value must have the cell's dtype, f32 or f64,
// and its sizes in the other axes.
Array update_slice(const Input& cell, const Input& value, int axis, std::int64_t start);

}  // namespace samebytes
