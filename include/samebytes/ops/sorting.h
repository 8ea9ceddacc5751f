// Order along an axis: running sums (engine/ops/scan.cpp), sorting (engine/ops/sort.cpp).
// NaN counts as larger than every number, as in PyTorch, so it comes last in ascending order and first in descending
// order; -0 equals 0. Equal elements keep their order.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

// result[.., j, ..] = the sum of a[.., 0 .. j, ..] along the axis. Long axes are summed in parts of a fixed length, so
// the order of additions depends on the shape alone. Sums of i32, u8 and bool are i32 and wrap around.
Array cumsum(const Array& a, int axis);
// The running product, along the axis in order; its gradient is right where elements are 0. Floating arrays only.
Array cumprod(const Array& a, int axis);

struct SortResult {
  Array values;   // of a's element type; a gradient goes back to the places they came from
  Array indices;  // i32, places along the axis
};
SortResult sort(const Array& a, int axis = -1, bool descending = false);
Array argsort(const Array& a, int axis = -1, bool descending = false);  // the indices of sort
// The k largest (or smallest) along the axis, in order; of equal ones the first comes first.
SortResult top_k(const Array& a, std::int64_t k, int axis = -1, bool largest = true);

}  // namespace samebytes
