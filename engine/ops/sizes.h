// Arithmetic of sizes that ops share: quotients rounded up, sizes as ints of kernels, axes and what lies around one.
#pragma once

#include <cstdint>
#include <string>

#include "graph/op.h"

namespace samebytes::detail {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Of a size that was checked to fit.
inline int i32_of(std::int64_t v) { return static_cast<int>(v); }

// [outer, depth, inner]: the product of the axes before one, its own size, the product of those behind it.
struct Around {
  std::int64_t outer = 1, depth = 1, inner = 1;
  Around(const Shape& shape, int axis) : depth(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// The axis counted from the front; `extra` axes more than `a` has may be named. Throws ArgumentError for an empty
// handle and an axis out of range.
inline int checked_axis(const char* op, const Array& a, int axis, int extra = 0) {
  require(a.defined(), op, "needs an array", a, "src");
  const int rank = a.shape().rank() + extra;
  if (axis < -rank || axis >= rank)
    throw ArgumentError(std::string(op) + ": axis " + std::to_string(axis) + " is out of range for src " + describe(a));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace samebytes::detail
