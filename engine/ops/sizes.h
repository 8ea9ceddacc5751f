// Arithmetic of sizes that ops share: quotients rounded up, sizes as ints of kernels, tables of the host, axes and what
// lies around one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "graph/op.h"

namespace samebytes::detail {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// a + b and a * b of sizes. Throw ArgumentError "<op>: ..., src is f32 [2, 3]" beyond what an array can have.
inline std::int64_t checked_size(const char* op, const Array& a, bool overflows, std::int64_t size) {
  if (overflows || size > Shape::kMostElements)
    throw ArgumentError(std::string(op) + ": the result may have at most 2^56 elements, src is " + describe(a));
  return size;
}
inline std::int64_t checked_sum(const char* op, const Array& src, std::int64_t a, std::int64_t b) {
  std::int64_t size = 0;
  const bool overflows = __builtin_add_overflow(a, b, &size);
  return checked_size(op, src, overflows, size);
}
inline std::int64_t checked_product(const char* op, const Array& src, std::int64_t a, std::int64_t b) {
  std::int64_t size = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &size);
  return checked_size(op, src, overflows, size);
}

// Throws ArgumentError "<op>: sizes must fit 31 bits, m and n are 1, 2" unless kernels may take them as ints, which
// they round up to whole tiles.
inline void require_ints(const char* op, const char* names, std::initializer_list<std::int64_t> sizes) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);
  if (std::max(sizes) <= most) return;
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  throw ArgumentError(std::string(op) + ": sizes must fit 31 bits, " + names + " are " + text);
}
// Before the host makes a table of so many places: throws ArgumentError above 2^28 of them.
inline void require_table(const char* op, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t most = std::int64_t{1} << 28;
  if (rows > 0 && columns > most / rows)
    throw ArgumentError(std::string(op) + ": expected a table of at most 2^28 places, got " + std::to_string(rows) +
                        " x " + std::to_string(columns));
}

// For a size that was checked to fit.
inline int i32_of(std::int64_t v) { return static_cast<int>(v); }

// The entries of a family of kernels that move elements as bits, by the width of an element.
struct EntryByWidth {
  const char *of_8, *of_16, *of_32, *of_64;
  const char* operator()(Dtype dtype) const {
    switch (bytes_of(dtype)) {
      case 1: return of_8;
      case 2: return of_16;
      case 4: return of_32;
      default: return of_64;
    }
  }
};
inline constexpr EntryByWidth kConcatRows{"concat_rows_8", "concat_rows_16", "concat_rows_32", "concat_rows_64"};

// [outer, depth, inner]: the product of the axes before one, its size, and the product of the axes behind it.
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
