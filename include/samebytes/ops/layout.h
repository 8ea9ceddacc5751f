// Views, which are free, and ops that move elements: engine/ops/view.cpp, concat.cpp, layout.cpp, pad.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// One size may be -1: what is left. A Shape gets it by assignment, as in shape[0] = -1.
Array reshape(const Input& a, const Shape& shape);
Array reshape(const Input& a, std::span<const std::int64_t> sizes);
inline Array reshape(const Input& a, std::initializer_list<std::int64_t> sizes) {
  return reshape(a, std::span<const std::int64_t>(sizes.begin(), sizes.size()));
}
Array transpose(const Input& a, const Axes& axes);  // a permutation of the axes
Array transpose(const Input& a);                    // swaps the last two axes
// Elements start, start + step, ... before stop, as in NumPy: a negative start or stop counts from the end. With a
// negative step the indices descend from start and end above stop; a stop of -n - 1 (n: the axis's size) includes
// element 0. Bounds outside the axis are clamped to it. Throws for a step of 0. x[{slice(1, 4)}] of array.h is the
// same.
Array slice(const Input& a, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Array flip(const Input& a, const Axes& axes);  // elements in reverse order along the axes
// Splits an axis into parts of `size` elements, the last one possibly smaller, or into parts of the given sizes, which
// must sum to the axis's size.
const std::vector<Array> split(const Input& a, std::int64_t size, int axis = 0);
const std::vector<Array> split(const Input& a, std::span<const std::int64_t> sizes, int axis = 0);
inline const std::vector<Array> split(const Input& a, std::initializer_list<std::int64_t> sizes, int axis = 0) {
  return split(a, std::span<const std::int64_t>(sizes.begin(), sizes.size()), axis);
}
Array broadcast_to(const Input& a, const Shape& shape);
Array squeeze(const Input& a, int axis);
Array unsqueeze(const Input& a, int axis);
Array flatten(const Input& a, int start_axis = 1);  // [N, ...] -> [N, size]
Array contiguous(const Input& a);                   // the array itself if it is dense, otherwise a dense copy
// A dense copy in new storage, even of a dense array; gradients pass through. Lazy like any op: copy(a).eval() reads
// the current value of a and then keeps neither a nor a loader's slot alive.
Array copy(const Input& a);
Array concat(const Inputs& arrays, int axis);
// Joins arrays of equal shape along a new axis.
Array stack(const Inputs& arrays, int axis = 0);
// Repeats the whole array repeats[i] times along axis i, as torch.tile: the shorter of shape and repeats is padded with
// ones in front.
Array tile(const Input& a, std::span<const std::int64_t> repeats);
inline Array tile(const Input& a, std::initializer_list<std::int64_t> repeats) {
  return tile(a, std::span<const std::int64_t>(repeats.begin(), repeats.size()));
}
// Repeats each element `repeats` times in a row along the axis.
Array repeat_interleave(const Input& a, std::int64_t repeats, int axis);
// Moves element i to (i + shift) mod n along the axis, whose size is n.
Array roll(const Input& a, std::int64_t shift, int axis);

// Of matrices [..., M, N]: what lies on the diagonal and below it (tril) or above it (triu); the rest is 0. `diagonal`
// counts upwards from the main one.
Array tril(const Input& a, std::int64_t diagonal = 0);
Array triu(const Input& a, std::int64_t diagonal = 0);
// The coordinates of a grid: the i-th result has the i-th array, of one axis, along its axis i (PyTorch's "ij").
const std::vector<Array> meshgrid(const Inputs& arrays);

// The padding around an array: a constant; the array mirrored without its outermost elements, at most n - 1 of them
// (PyTorch's reflect); its outermost elements repeated (replicate, NumPy's edge); or its opposite end, at most n
// (circular).
enum class PadMode : std::uint8_t { constant, reflect, replicate, circular };
struct PadWidth {
  std::int64_t before = 0, after = 0;
};
// One width per axis of a, the first axis first (as in NumPy, unlike PyTorch). For a bool array the value must be 0 or
// 1.
Array pad(const Input& a, std::span<const PadWidth> widths, PadMode mode = PadMode::constant, double value = 0.0);
inline Array pad(const Input& a, std::initializer_list<PadWidth> widths, PadMode mode = PadMode::constant,
                 double value = 0.0) {
  return pad(a, std::span<const PadWidth>(widths.begin(), widths.size()), mode, value);
}

}  // namespace samebytes
