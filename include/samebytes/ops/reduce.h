// Reductions: engine/ops/reduce.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <initializer_list>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

// An empty list of axes means all of them.
// Sums of i32, u8 and bool are i32 and wrap around; their mean is f32. Of nothing the sum is 0 and the mean NaN; max
// and min throw. NaN wins in max, min and argmax. Ties share the gradient of max and min equally, as in PyTorch's amax.
Array sum(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array sum(const Array& a, std::span<const int> axes, bool keep = false);
Array mean(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
// sum(square(a)) over everything, one element, in one pass that writes nothing between. Throws unless a is floating.
Array sum_of_squares(const Array& a);
Array max(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array min(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
// Whether all values are true, that is not 0, or any is: bool, without a gradient. NaN is true. Of nothing all() is
// true and any() false. if (all(equal(a, b)).value()) is how C++ asks.
Array all(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array any(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array argmax(const Array& a, int axis = -1);  // i32, the first of equal values
// The gradient of broadcasting: sums `a` down to `shape`.
Array sum_to(const Array& a, const Shape& shape);

}  // namespace samebytes
