// Views, which are free, and ops that move elements: engine/ops/view.cpp, engine/ops/concat.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

Array reshape(const Array& a, const Shape& shape);  // one size may be -1 through reshape(a, {..}) of the next overload
Array reshape(const Array& a, std::initializer_list<std::int64_t> sizes);
Array transpose(const Array& a, std::initializer_list<int> axes);  // a permutation of the axes
Array transpose(const Array& a);                                   // the last two axes exchanged
Array slice(const Array& a, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Array broadcast_to(const Array& a, const Shape& shape);
Array squeeze(const Array& a, int axis);
Array unsqueeze(const Array& a, int axis);
Array flatten(const Array& a, int start_axis = 1);  // [N, ...] -> [N, size]
Array contiguous(const Array& a);                   // the array itself where it is dense, else a dense copy
Array concat(std::span<const Array> arrays, int axis);
inline Array concat(std::initializer_list<Array> arrays, int axis) {
  return concat(std::span<const Array>(arrays.begin(), arrays.size()), axis);
}

}  // namespace samebytes
