// Ops along an axis that depend on order: running sums (engine/ops/scan.cpp), sorting (engine/ops/sort.cpp).
// NaN counts as larger than every number, as in PyTorch, so it is last in ascending and first in descending order; -0
// equals 0. Equal elements keep their order.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

// result[.., j, ..] = the sum of a[.., 0 .. j, ..] along the axis. Long axes are summed in parts of a fixed length, so
// the order of additions depends only on the shape. Whole numbers wrap around; u8 and bool become i32.
Array cumsum(const Input& a, int axis);
// The running product along the axis; its gradient is correct also where elements are 0. Floating arrays only.
Array cumprod(const Input& a, int axis);

struct SortResult {
  Array values;   // with a's dtype; gradients flow back to the elements they came from
  Array indices;  // i32, positions along the axis
};
SortResult sort(const Input& a, int axis = -1, bool descending = false);
Array argsort(const Input& a, int axis = -1, bool descending = false);  // the indices of sort
// The k largest (or smallest) elements along the axis, sorted; equal ones keep their order.
SortResult top_k(const Input& a, std::int64_t k, int axis = -1, bool largest = true);
// The value below which the part q of the elements along the axis lies, in [0, 1], between two elements by their
// distance from it, as in NumPy and PyTorch; the median is that of q = 0.5, as in NumPy. NaN if there is one.
Array quantile(const Input& a, double q, int axis = -1, bool keep = false);
Array median(const Input& a, int axis = -1, bool keep = false);

// i32 [bins]: how often each number of 0 to bins - 1 is in ids, i32, i64 or u8 [...]; other numbers are not counted.
Array bincount(const Input& ids, std::int64_t bins);
// i32 [bins]: how many elements lie in each of `bins` equal parts of [low, high]; the last part has its upper bound,
// too, and what lies outside, or is NaN, is not counted.
Array histogram(const Input& a, std::int64_t bins, double low, double high);

}  // namespace samebytes
