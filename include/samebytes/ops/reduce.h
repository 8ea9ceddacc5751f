// Reductions: engine/ops/reduce.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// No axes means all of them: sum(a), sum(a, 0), sum(a, {-1}, true), sum(a, vector_of_axes).
// Sums of i32, u8 and bool are i32, those of i64 i64, and wrap around; their mean is f32. For an empty array the sum is
// 0, the mean NaN, and max and min throw. max, min and argmax return NaN if there is one. Ties share the gradient of
// max and min equally, as in PyTorch's amax.
Array sum(const Input& a, const Axes& axes = {}, bool keep = false);
Array mean(const Input& a, const Axes& axes = {}, bool keep = false);
// The mean of the squared distances from the mean, divided by n - correction instead of n; std is its root. The default
// is PyTorch's; NumPy's is 0. Whole numbers become f32.
Array var(const Input& a, const Axes& axes = {}, bool keep = false, double correction = 1.0);
Array std(const Input& a, const Axes& axes = {}, bool keep = false, double correction = 1.0);
// (sum |a|^p)^(1 / p), the Euclidean norm by default; p of infinity: the greatest |a|, of -infinity the least, of 0 how
// many are not 0. The gradient at 0 is 0 for p of 1 and 2.
Array norm(const Input& a, double p = 2.0, const Axes& axes = {}, bool keep = false);
// log(sum exp(a)) without overflow.
Array logsumexp(const Input& a, const Axes& axes = {}, bool keep = false);
// The product; 1 of an empty array. Its gradient is correct also where elements are 0. Whole numbers wrap around;
// u8 and bool become i32.
Array prod(const Input& a, const Axes& axes = {}, bool keep = false);
// sum(square(a)) over all elements, one element, in one pass without an intermediate array. Throws unless a is
// floating.
Array sum_of_squares(const Input& a);
Array max(const Input& a, const Axes& axes = {}, bool keep = false);
Array min(const Input& a, const Axes& axes = {}, bool keep = false);
// Whether all values, or any, are true (not 0): bool, without a gradient. NaN is true. For an empty array all() is true
// and any() false. In C++: if (all(equal(a, b)).value()).
Array all(const Input& a, const Axes& axes = {}, bool keep = false);
Array any(const Input& a, const Axes& axes = {}, bool keep = false);
Array argmax(const Input& a, int axis = -1);  // i32; the first one of equal values
Array argmin(const Input& a, int axis = -1);  // as argmax
// The gradient of broadcasting: sums `a` down to `shape`.
Array sum_to(const Input& a, const Shape& shape);

}  // namespace samebytes
