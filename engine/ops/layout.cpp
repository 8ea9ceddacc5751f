// Functions that move or repeat elements, built from views, concat and the kernels of pad.cpp.
#include <string>

#include "graph/autocast.h"
#include "graph/op.h"
#include "ops/as_value.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::checked_axis;
using detail::describe;
using detail::require;

}  // namespace

Array flip(const Input& a, const Axes& axes) {
  Array result = a;
  std::uint32_t seen = 0;
  for (int axis : axes) {
    axis = checked_axis("flip", a, axis);
    if ((seen >> axis & 1u) != 0)
      throw ArgumentError("flip: axis " + std::to_string(axis) + " is named twice, src is " + describe(a));
    seen |= 1u << axis;
    const std::int64_t n = a.shape()[axis];
    if (n > 0) result = slice(result, axis, n - 1, -n - 1, -1);
  }
  require(a.defined(), "flip", "needs an array", a, "src");
  return result;
}

const std::vector<Array> split(const Input& a, std::span<const std::int64_t> sizes, int axis) {
  axis = checked_axis("split", a, axis);
  std::int64_t total = 0;
  bool ok = true;
  std::string text;
  for (const std::int64_t size : sizes) {
    ok = ok && size >= 0 && size <= a.shape()[axis] - total;
    if (ok) total += size;
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  if (!ok || total != a.shape()[axis])
    throw ArgumentError("split: sizes must be 0 or more and add up to axis " + std::to_string(axis) + ", got {" + text +
                        "}, src is " + describe(a));
  std::vector<Array> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(slice(a, axis, start, start + size));
    start += size;
  }
  return parts;
}

const std::vector<Array> split(const Input& a, std::int64_t size, int axis) {
  axis = checked_axis("split", a, axis);
  if (size < 1)
    throw ArgumentError("split: the size must be at least 1, got " + std::to_string(size) + ", src is " + describe(a));
  const std::int64_t n = a.shape()[axis];
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = n; left > 0; left -= std::min(size, left)) sizes.push_back(std::min(size, left));
  if (sizes.empty()) sizes.push_back(0);
  return split(a, sizes, axis);
}

const detail::CastRow kStackCast{"stack", CastRule::widest};
Array stack(const Inputs& arrays, int axis) {
  if (const detail::Casts cast(kStackCast); cast) return stack(cast(arrays), axis);
  if (arrays.empty()) throw ArgumentError("stack: expected at least one array, got none");
  std::vector<Array> rows;
  axis = checked_axis("stack", arrays[0], axis, 1);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array& a = arrays[i];
    if (!a.defined() || a.shape() != arrays[0].shape())
      throw ArgumentError("stack: shapes must agree, array 0 is " + describe(arrays[0]) + ", array " +
                          std::to_string(i) + " is " + describe(a));
    rows.push_back(unsqueeze(a, axis));
  }
  return concat(rows, axis);
}

Array repeat_interleave(const Input& a, std::int64_t repeats, int axis) {
  axis = checked_axis("repeat_interleave", a, axis);
  if (repeats < 0)
    throw ArgumentError("repeat_interleave: repeats must be 0 or more, got " + std::to_string(repeats) + ", src is " +
                        describe(a));
  if (repeats == 1) return detail::as_value(a);
  Shape merged = a.shape();
  merged[axis] = detail::checked_product("repeat_interleave", a, merged[axis], repeats);
  // [outer, n, inner] -> [outer, n, repeats, inner], so that arrays of eight axes have room.
  Shape front{1, a.shape()[axis], 1, 1};
  for (int i = 0; i < axis; ++i) front[0] *= a.shape()[i];
  for (int i = axis + 1; i < a.shape().rank(); ++i) front[3] *= a.shape()[i];
  Shape wide = front;
  wide[2] = repeats;
  return reshape(broadcast_to(reshape(a, front), wide), merged);
}

Array tile(const Input& a, std::span<const std::int64_t> repeats) {
  require(a.defined(), "tile", "needs an array", a, "src");
  if (repeats.size() > static_cast<std::size_t>(Shape::kMaxRank))
    throw ArgumentError("tile: expected at most eight axes, got " + std::to_string(repeats.size()) + " repeats");
  const int count = static_cast<int>(repeats.size()), rank = std::max(count, a.shape().rank());
  Shape shape;  // of a, with ones in front
  for (int i = 0; i < rank; ++i)
    shape.push_back(i < rank - a.shape().rank() ? 1 : a.shape()[i - rank + a.shape().rank()]);
  std::int64_t values = a.size();
  for (const std::int64_t n : repeats) {
    if (n < 0)
      throw ArgumentError("tile: repeats must be 0 or more, got " + std::to_string(n) + ", src is " + describe(a));
    values = detail::checked_product("tile", a, values, n);
  }
  Array result = reshape(a, shape);
  // Three axes at once, the innermost first, of what is [.., n, ..] -> [.., repeats, n, ..]; the others join the one
  // before them.
  constexpr int kTogether = 3;
  for (int end = rank; end > rank - count;) {
    int begin = end;
    for (int found = 0; found < kTogether && begin > rank - count;)
      found += repeats[static_cast<std::size_t>(--begin + count - rank)] != 1;
    Shape narrow, wide;
    for (int i = 0; i < rank; ++i) {
      const bool is_here = i >= begin && i < end;
      const std::int64_t n = is_here ? repeats[static_cast<std::size_t>(i + count - rank)] : 1, size = shape[i];
      if (n == 1 && i > 0) {
        narrow[narrow.rank() - 1] *= size;
        wide[wide.rank() - 1] *= size;
        continue;
      }
      narrow.push_back(1);
      wide.push_back(n);
      narrow.push_back(size);
      wide.push_back(size);
      shape[i] = detail::checked_product("tile", a, size, n);
    }
    result = reshape(broadcast_to(reshape(result, narrow), wide), shape);
    end = begin;
  }
  return result;
}

}  // namespace samebytes
