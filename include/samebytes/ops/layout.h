// Views, which are free, and ops that move elements: engine/ops/view.cpp, concat.cpp, layout.cpp, pad.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

Array reshape(const Array& a, const Shape& shape);  // one size may be -1 through reshape(a, {..}) of the next overload
Array reshape(const Array& a, std::initializer_list<std::int64_t> sizes);
Array transpose(const Array& a, std::initializer_list<int> axes);  // a permutation of the axes
Array transpose(const Array& a);                                   // the last two axes exchanged
// Elements start, start + step, ... before stop, as NumPy counts: a negative start or stop counts from the end. With a
// negative step they run down from start and end above stop; a stop of -n - 1 (axis of size n) takes element 0 too.
// Throws for bounds outside the axis and for a step of 0.
Array slice(const Array& a, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Array flip(const Array& a, std::initializer_list<int> axes);  // elements in reverse order along the axes
// Neighbouring parts of an axis: of `size` elements, the last one smaller where they do not divide it; or of the sizes
// given, which must add up to the axis.
const std::vector<Array> split(const Array& a, std::int64_t size, int axis = 0);
const std::vector<Array> split(const Array& a, std::span<const std::int64_t> sizes, int axis = 0);
inline const std::vector<Array> split(const Array& a, std::initializer_list<std::int64_t> sizes, int axis = 0) {
  return split(a, std::span<const std::int64_t>(sizes.begin(), sizes.size()), axis);
}
Array broadcast_to(const Array& a, const Shape& shape);
Array squeeze(const Array& a, int axis);
Array unsqueeze(const Array& a, int axis);
Array flatten(const Array& a, int start_axis = 1);  // [N, ...] -> [N, size]
Array contiguous(const Array& a);                   // the array itself where it is dense, else a dense copy
// The same elements, dense, in storage of their own, of a dense array too; the gradient goes through. Lazy like any op:
// copy(a).eval() reads what a holds now, and keeps neither a nor a loader's slot behind it.
Array copy(const Array& a);
Array concat(std::span<const Array> arrays, int axis);
inline Array concat(std::initializer_list<Array> arrays, int axis) {
  return concat(std::span<const Array>(arrays.begin(), arrays.size()), axis);
}
// Arrays of one shape along a new axis.
Array stack(std::span<const Array> arrays, int axis = 0);
inline Array stack(std::initializer_list<Array> arrays, int axis = 0) {
  return stack(std::span<const Array>(arrays.begin(), arrays.size()), axis);
}
// The whole array repeats[i] times along axis i, as torch.tile: the shorter of shape and repeats gets ones in front.
Array tile(const Array& a, std::span<const std::int64_t> repeats);
inline Array tile(const Array& a, std::initializer_list<std::int64_t> repeats) {
  return tile(a, std::span<const std::int64_t>(repeats.begin(), repeats.size()));
}
// Each element `repeats` times in a row along the axis.
Array repeat_interleave(const Array& a, std::int64_t repeats, int axis);
// Element i goes to (i + shift) mod n along the axis of size n.
Array roll(const Array& a, std::int64_t shift, int axis);

// What stands around an array: one value; the array mirrored without its outermost elements, at most n - 1 of them
// (PyTorch's reflect); its outermost elements repeated (replicate, NumPy's edge); the other end of it, at most n.
enum class PadMode : std::uint8_t { constant, reflect, replicate, circular };
struct PadWidth {
  std::int64_t before = 0, after = 0;
};
// One width for each axis of a, the first axis first (as NumPy, unlike PyTorch). A bool array takes the values 0 and 1.
Array pad(const Array& a, std::span<const PadWidth> widths, PadMode mode = PadMode::constant, double value = 0.0);
inline Array pad(const Array& a, std::initializer_list<PadWidth> widths, PadMode mode = PadMode::constant,
                 double value = 0.0) {
  return pad(a, std::span<const PadWidth>(widths.begin(), widths.size()), mode, value);
}

}  // namespace samebytes
