// Writing a part of a cell in place: engine/ops/update_slice.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

// A node that, when it is evaluated, overwrites cell[.., start : start + value.shape[axis], ..] along the axis; its
// value is the whole cell from then on, without a copy. Unlike update (array.h) it does not wait for other readers of
// the run: read its result, not the cell. Another start is no other plan. value has the cell's dtype, f32 or f64, and
// its sizes in the other axes.
Array update_slice(const Array& cell, const Array& value, int axis, std::int64_t start);

}  // namespace samebytes
