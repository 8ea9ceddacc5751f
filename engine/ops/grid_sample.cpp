// grid_sample, affine_grid and roi_align: neighbours taken by index and weighted, in public ops, so gradients of any
// order come with them.
#include "samebytes/ops/grid_sample.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "ops/dtypes.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::describe;
using detail::require;

// A neighbour along one axis for all places: its index as a float within the axis, and its weight; an empty handle is a
// weight of one.
struct Neighbour {
  Array index, weight;
};

// Mirrored at the edges, or at the centres, of the outermost of n elements.
Array mirrored(const Array& x, std::int64_t n, bool is_aligned) {
  const double low = is_aligned ? 0 : -0.5, span = static_cast<double>(is_aligned ? n - 1 : n);
  if (span == 0) return x * 0.0;
  return low + span - abs(remainder(x - low, 2 * span) - span);
}

Array within(const Array& x, std::int64_t n) { return clip(x, 0.0, static_cast<double>(n - 1)); }

Array cubic_weight(const Array& distance, bool is_near) {
  constexpr double a = -0.75;  // Keys 1981
  const Array d = abs(distance);
  if (is_near) return ((a + 2) * d - (a + 3)) * d * d + 1.0;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// The neighbours along an axis of n elements at coordinates from -1 to 1.
std::vector<Neighbour> neighbours(const Array& coordinate, std::int64_t n, const GridSampleOptions& o) {
  const double size = static_cast<double>(n);
  const Array at = o.align_corners ? (coordinate + 1.0) * ((size - 1) / 2) : ((coordinate + 1.0) * size - 1.0) * 0.5;
  const auto continued = [&](const Array& x) {
    if (o.padding == GridSamplePadding::zeros) return x;
    return within(o.padding == GridSamplePadding::reflection ? mirrored(x, n, o.align_corners) : x, n);
  };
  const auto neighbour = [&](const Array& place, const Array& weight) {
    if (o.padding != GridSamplePadding::zeros) return Neighbour{within(place, n), weight};
    const Array is_there = astype(logical_and(greater_equal(place, 0.0), less_equal(place, size - 1)), place.dtype());
    return Neighbour{within(place, n), weight.defined() ? weight * is_there : is_there};
  };
  if (o.mode == GridSampleMode::bicubic) {
    const Array base = floor(at), t = at - base;
    std::vector<Neighbour> result;
    for (int k = -1; k <= 2; ++k)
      result.push_back(neighbour(continued(base + double(k)), cubic_weight(t - double(k), k == 0 || k == 1)));
    return result;
  }
  const Array x = continued(at);
  if (o.mode == GridSampleMode::nearest) return {neighbour(round(x), Array())};
  const Array base = floor(x), t = x - base;
  return {neighbour(base, 1.0 - t), neighbour(base + 1.0, t)};
}

// The first of all places of each image, shaped to stand beside an array of `rank` axes.
Array image_starts(std::int64_t images, std::int64_t places, int rank) {
  Shape shape{images};
  while (shape.rank() < rank) shape.push_back(1);
  return reshape(arange(0, static_cast<double>(images), 1, i32) * full({}, static_cast<double>(places), i32), shape);
}

void check_samples(const Array& src, const Array& grid, const GridSampleOptions& o) {
  constexpr const char* kOp = "grid_sample";
  require(src.defined() && is_floating(src.dtype()) && (src.shape().rank() == 4 || src.shape().rank() == 5), kOp,
          "src must be floating [N, H, W, C] or [N, D, H, W, C]", src, "src");
  const int rank = src.shape().rank();
  require(grid.defined() && is_floating(grid.dtype()) && grid.shape().rank() == rank &&
              grid.shape().back() == rank - 2 && grid.shape()[0] == src.shape()[0],
          kOp, rank == 4 ? "grid must be floating [N, OH, OW, 2]" : "grid must be floating [N, OD, OH, OW, 3]", grid,
          "grid");
  require(o.mode != GridSampleMode::bicubic || rank == 4, kOp, "bicubic needs images", src, "src");
  std::int64_t places = src.shape()[0];
  for (int i = 1; i + 1 < rank; ++i) {
    require(src.shape()[i] >= 1, kOp, "src must have at least one place along each axis", src, "src");
    places *= src.shape()[i];
  }
  require(places <= std::numeric_limits<std::int32_t>::max(), kOp, "needs an index that i32 can count", src, "src");
}

}  // namespace

Array grid_sample(const Input& src, const Input& grid, const GridSampleOptions& o) {
  check_samples(src, grid, o);
  if (src.dtype() != f32 && src.dtype() != f64)
    return astype(grid_sample(astype(src, f32), detail::as_dtype(grid, f32), o), src.dtype());
  const Shape &s = src.shape(), &g = grid.shape();
  const int axes = s.rank() - 2;
  Shape result(std::span(g.begin(), g.end() - 1));
  result.push_back(s.back());
  if (src.size() == 0 || grid.size() == 0) return zeros(result, src.dtype());
  const Array at = detail::as_dtype(grid, src.dtype());
  std::vector<std::vector<Neighbour>> near;
  std::int64_t places = 1;
  for (int i = 0; i < axes; ++i) {  // grid has the innermost axis first
    near.push_back(neighbours(squeeze(slice(at, -1, axes - 1 - i, axes - i), -1), s[i + 1], o));
    places *= s[i + 1];
  }
  const Array rows = reshape(src, {s[0] * places, s.back()}), starts = image_starts(s[0], places, g.rank() - 1);
  Array y;
  // All combinations of neighbours, the innermost axis first.
  const std::function<void(int, const Array&, const Array&)> add = [&](int axis, const Array& index,
                                                                       const Array& weight) {
    if (axis == axes) {
      const Array taken = take(rows, index, 0), part = weight.defined() ? taken * unsqueeze(weight, -1) : taken;
      y = y.defined() ? y + part : part;
      return;
    }
    for (const Neighbour& n : near[static_cast<std::size_t>(axis)]) {
      const Array place = astype(n.index, i32);
      const Array inner = index.defined() ? index * full({}, static_cast<double>(s[axis + 1]), i32) + place : place;
      const Array both = !weight.defined() ? n.weight : n.weight.defined() ? weight * n.weight : weight;
      add(axis + 1, axis + 1 == axes ? inner + starts : inner, both);
    }
  };
  add(0, Array(), Array());
  return y;
}

Array affine_grid(const Input& theta, const std::vector<std::int64_t>& sizes, const AffineGridOptions& options) {
  constexpr const char* kOp = "affine_grid";
  const auto axes = std::ssize(sizes);
  if ((axes != 2 && axes != 3) || std::any_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n < 1; }))
    throw ArgumentError(std::string(kOp) + ": expected two or three sizes of at least 1, got " + std::to_string(axes));
  require(theta.defined() && is_floating(theta.dtype()) && theta.shape().rank() == 3 && theta.shape()[1] == axes &&
              theta.shape()[2] == axes + 1,
          kOp, axes == 2 ? "theta must be floating [N, 2, 3]" : "theta must be floating [N, 3, 4]", theta, "theta");
  std::int64_t places = 1;
  for (const std::int64_t size : sizes) places *= size;
  std::vector<double> base;  // [places, axes + 1]: (x, y, 1)
  for (std::int64_t place = 0; place < places; ++place) {
    std::int64_t left = place;
    for (auto i = axes; i-- > 0;) {
      const std::int64_t n = sizes[static_cast<std::size_t>(i)], at = left % n;
      left /= n;
      const auto index = static_cast<double>(at), size = static_cast<double>(n);
      base.push_back(options.align_corners ? (n > 1 ? 2 * index / (size - 1) - 1 : 0.0) : (2 * index + 1) / size - 1);
    }
    base.push_back(1);
  }
  const Dtype dtype = theta.dtype() == f64 ? f64 : f32;
  const Array line = detail::as_dtype(array(std::span<const double>(base), Shape{places, axes + 1}), dtype);
  Shape shape{theta.shape()[0]};
  for (const std::int64_t size : sizes) shape.push_back(size);
  shape.push_back(axes);
  const Array grid = matmul(line, transpose(detail::as_dtype(theta, dtype)));
  return detail::as_dtype(reshape(grid, shape), theta.dtype());
}

}  // namespace samebytes
