// Reductions: engine/ops/reduce.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <initializer_list>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

// An empty list of axes means all of them.
// Sums of i32, u8 and bool are i32 and wrap around; their mean is f32. For an empty array the sum is 0, the mean NaN,
// and max and min throw. max, min and argmax return NaN if there is one. Ties share the gradient of max and min
// equally, as in PyTorch's amax.
Array sum(const Input& a, std::initializer_list<int> axes = {}, bool keep = false);
Array sum(const Input& a, std::span<const int> axes, bool keep = false);
Array mean(const Input& a, std::initializer_list<int> axes = {}, bool keep = false);
// sum(square(a)) over all elements, one element, in one pass without an intermediate array. Throws unless a is
// floating.
Array sum_of_squares(const Input& a);
Array max(const Input& a, std::initializer_list<int> axes = {}, bool keep = false);
Array min(const Input& a, std::initializer_list<int> axes = {}, bool keep = false);
// Whether all values, or any, are true (not 0): bool, without a gradient. NaN is true. For an empty array all() is true
// and any() false. In C++: if (all(equal(a, b)).value()).
Array all(const Input& a, std::initializer_list<int> axes = {}, bool keep = false);
Array any(const Input& a, std::initializer_list<int> axes = {}, bool keep = false);
Array argmax(const Input& a, int axis = -1);  // i32; the first one of equal values
// The gradient of broadcasting: sums `a` down to `shape`.
Array sum_to(const Input& a, const Shape& shape);

}  // namespace samebytes
