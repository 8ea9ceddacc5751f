// grid_sample and affine_grid. The samples, their derivatives for a coordinate and what goes back to src are three ops
// (kernels: cl/*/grid_sample.cl), whose gradients are these three again, so that they can be differentiated at will.
#include "samebytes/ops/grid_sample.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/dtypes.h"
#include "ops/rows.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "shared/grid_sample.h"

namespace samebytes {
namespace detail {
namespace {

static_assert(static_cast<int>(GridSampleMode::bilinear) == GRID_LINEAR &&
                  static_cast<int>(GridSampleMode::nearest) == GRID_NEAREST &&
                  static_cast<int>(GridSampleMode::bicubic) == GRID_CUBIC &&
                  static_cast<int>(GridSamplePadding::zeros) == GRID_ZEROS &&
                  static_cast<int>(GridSamplePadding::border) == GRID_BORDER &&
                  static_cast<int>(GridSamplePadding::reflection) == GRID_REFLECTION,
              "the kernels' words");

// How src is sampled, and how often the samples are differentiated for each coordinate: x, y and z.
struct Sampling {
  GridSampleOptions options;
  std::array<int, 3> order{};

  void hash(Hasher& hasher) const {
    hasher.add(static_cast<std::uint64_t>(options.mode) << 8 | static_cast<std::uint64_t>(options.padding) << 1 |
               std::uint64_t{options.align_corners});
    for (const int n : order) hasher.add(static_cast<std::uint64_t>(n));
  }
  Sampling differentiated(int coordinate) const {
    Sampling more = *this;
    ++more.order[static_cast<std::size_t>(coordinate)];
    return more;
  }
  bool is_nearest() const { return options.mode == GridSampleMode::nearest; }
  InputSet flat(int grid) const { return is_nearest() ? InputSet{grid} : InputSet{}; }
  grid_sample_sizes sizes(const Shape& src) const {
    const bool is_volume = src.rank() == 5;
    return {is_volume ? i32_of(src[1]) : 1,
            i32_of(src[-3]),
            i32_of(src[-2]),
            i32_of(src[-1]),
            src.rank() - 2,
            static_cast<int>(options.mode),
            static_cast<int>(options.padding),
            int{options.align_corners},
            order[0],
            order[1],
            order[2]};
  }
  // The neighbours of a place are 2 to the power of this.
  int shift(int axes) const {
    const int of_axis = is_nearest() ? 0 : options.mode == GridSampleMode::bilinear ? 1 : 2;
    return of_axis * axes;
  }
};

// All places of a grid, and those of one image.
struct GridPlaces {
  std::int64_t all, of_image;
  explicit GridPlaces(const Shape& grid) : all(grid.size() / grid[-1]), of_image(all / grid[0]) {}
};

Array sampled(const Sampling& how, const Array& src, const Array& grid);
Array spread(const Sampling& how, const Array& dy, const Array& grid, const Shape& src);
Array slopes(const Sampling& how, const Array& dy, const Array& src, const Array& grid);

// Inputs src and grid: the samples.
class GridSample final : public Op, public Written {
 public:
  explicit GridSample(const Sampling& how) : Op({.is_flat = how.flat(1)}), how_(how) {}
  std::string_view name() const override { return "grid_sample"; }
  void hash(Hasher& hasher) const override { how_.hash(hasher); }
  void launch(Launch& run) const override {
    const Shape &src = run.src_shape(0), &grid = run.src_shape(1);
    const GridPlaces places(grid);
    const RowShare share = share_rows(run, places.all, src[-1] << how_.shift(src.rank() - 2));
    run.kernel("grid_sample_fwd", run.dst_dtype())
        .args(run.src(0), run.src(1), run.dst(), how_.sizes(src), places.of_image, places.all, share.rows_per_group)
        .over_rows(share.groups, share.group);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &dy = request.dy[0], &src = request.src[0], &grid = request.src[1];
    std::vector<Array> result(2);
    if (request.wanted[0]) result[0] = spread(how_, dy, grid, src.shape());
    if (request.wanted[1] && !how_.is_nearest()) result[1] = slopes(how_, dy, src, grid);
    return result;
  }
  void write(NodeWriter& w) const override {
    if (w.shape(0).rank() != 4) w.refuse("the operator samples images alone");
    if (how_.order != std::array<int, 3>{}) w.refuse("it is a derivative of samples");
    constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
    constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
    const auto x = w.turned(w.in(0), {0, 3, 1, 2});
    const auto y = w.put("GridSample", {x, w.in(1)},
                         {{"mode", std::string(kModes[static_cast<std::size_t>(how_.options.mode)])},
                          {"padding_mode", std::string(kPaddings[static_cast<std::size_t>(how_.options.padding)])},
                          {"align_corners", std::int64_t{how_.options.align_corners}}});
    w.give(w.turned(y, {0, 2, 3, 1}));
  }

 private:
  Sampling how_;
};

// Inputs dy and grid: the gradient of samples for src.
class GridSpread final : public Op {
 public:
  explicit GridSpread(const Sampling& how) : Op({.is_flat = how.flat(1)}), how_(how) {}
  std::string_view name() const override { return "grid_sample_gradient"; }
  void hash(Hasher& hasher) const override { how_.hash(hasher); }
  void launch(Launch& run) const override {
    const Shape& dst = run.dst_shape();
    const Dtype dtype = run.dst_dtype();
    const GridPlaces places(run.src_shape(1));
    const int shift = how_.shift(dst.rank() - 2);
    const std::int64_t items = places.all << shift, rows = dst.size() / dst[-1];
    const Operand index = run.temp(items, i32), weight = run.temp(items, dtype);
    run.kernel("grid_sample_places", dtype)
        .args(run.src(1), index, weight, how_.sizes(dst), places.of_image, places.all)
        .over_elements(places.all)
        .prepares();
    const Operand order = run.temp(items, i32), starts = run.temp(rows + 2, i32), ranks = run.temp(items, i32);
    constexpr int kSorters = 256, kNone = -1;  // INDEXING_ITEMS of cl/gpu/indexing.cl; no index is left out
    run.kernel("indexing_sort", dtype)
        .args(index, order, starts, ranks, i32_of(items), i32_of(rows), kNone, 0)
        .over_rows(1, kSorters)
        .prepares();
    const RowShare share = share_rows(run, rows, dst[-1] * (1 + items / rows));
    run.kernel("grid_sample_sum", dtype)
        .args(order, starts, weight, run.src(0), run.dst(), rows, i32_of(dst[-1]), shift, share.rows_per_group)
        .over_rows(share.groups, share.group);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &u = request.dy[0], &dy = request.src[0], &grid = request.src[1];
    std::vector<Array> result(2);
    if (request.wanted[0]) result[0] = sampled(how_, u, grid);
    if (request.wanted[1] && !how_.is_nearest()) result[1] = slopes(how_, dy, u, grid);
    return result;
  }

 private:
  Sampling how_;
};

// Inputs dy, src and grid: the gradient of samples for the grid.
class GridSlope final : public Op {
 public:
  explicit GridSlope(const Sampling& how) : how_(how) {}
  std::string_view name() const override { return "grid_sample_slope"; }
  void hash(Hasher& hasher) const override { how_.hash(hasher); }
  void launch(Launch& run) const override {
    const GridPlaces places(run.dst_shape());
    run.kernel("grid_sample_slope", run.dst_dtype())
        .args(run.src(0), run.src(1), run.src(2), run.dst(), how_.sizes(run.src_shape(1)), places.of_image, places.all)
        .over_elements(places.all);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &v = request.dy[0], &dy = request.src[0], &src = request.src[1], &grid = request.src[2];
    std::vector<Array> result(3);
    const auto add = [&](std::size_t i, const Array& part) {
      result[i] = result[i].defined() ? result[i] + part : part;
    };
    for (int k = 0; k < grid.shape()[-1]; ++k) {
      const Array of_coordinate = slice(v, -1, k, k + 1), weighted = of_coordinate * dy;
      const Sampling more = how_.differentiated(k);
      if (request.wanted[0]) add(0, of_coordinate * sampled(more, src, grid));
      if (request.wanted[1]) add(1, spread(more, weighted, grid, src.shape()));
      if (request.wanted[2]) add(2, slopes(more, weighted, src, grid));
    }
    return result;
  }

 private:
  Sampling how_;
};

Array sampled(const Sampling& how, const Array& src, const Array& grid) {
  const Shape& g = grid.shape();
  Shape shape(std::span(g.begin(), g.end() - 1));
  shape.push_back(src.shape().back());
  const Array inputs[] = {src, grid};
  return make_array(make_op<GridSample>(how), shape, src.dtype(), inputs);
}

Array spread(const Sampling& how, const Array& dy, const Array& grid, const Shape& src) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  require(GridPlaces(grid.shape()).all <= kMost >> how.shift(src.rank() - 2), "grid_sample",
          "the gradient needs neighbours of all places that i32 can count", grid, "grid");
  const Array inputs[] = {dy, grid};
  return make_array(make_op<GridSpread>(how), src, dy.dtype(), inputs);
}

Array slopes(const Sampling& how, const Array& dy, const Array& src, const Array& grid) {
  const Array inputs[] = {dy, src, grid};
  return make_array(make_op<GridSlope>(how), grid.shape(), dy.dtype(), inputs);
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
  constexpr std::int64_t kMostExact = std::int64_t{1} << 24;  // places that f32 counts one by one
  std::int64_t places = src.shape()[0];
  for (int i = 1; i + 1 < rank; ++i) {
    require(src.shape()[i] >= 1, kOp, "src must have at least one place along each axis", src, "src");
    require(src.dtype() == f64 || src.shape()[i] <= kMostExact, kOp, "more than 2^24 places along an axis need f64",
            src, "src");
    places *= src.shape()[i];
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() - 2;
  require(places <= kMost && src.shape().back() <= kMost, kOp, "needs an index that i32 can count", src, "src");
}

// The places of a grid of these sizes (depth,) height, width: rows x, y(, z) in -1 to 1 and a row of ones.
template <class T>
Array affine_base(const std::vector<std::int64_t>& sizes, bool align_corners) {
  std::int64_t places = 1;
  for (const std::int64_t size : sizes) places *= size;
  std::vector<T> base;
  base.reserve((sizes.size() + 1) * static_cast<std::size_t>(places));
  std::int64_t inner = 1;
  for (auto axis = std::ssize(sizes); axis-- > 0;) {
    const std::int64_t n = sizes[static_cast<std::size_t>(axis)];
    const double size = static_cast<double>(n);
    std::vector<T> line;
    for (std::int64_t at = 0; at < n; ++at) {
      const double index = static_cast<double>(at);
      line.push_back(
          static_cast<T>(align_corners ? (n > 1 ? 2 * index / (size - 1) - 1 : 0.0) : (2 * index + 1) / size - 1));
    }
    for (std::int64_t outer = places / (n * inner); outer-- > 0;)
      for (const T value : line) base.insert(base.end(), static_cast<std::size_t>(inner), value);
    inner *= n;
  }
  base.insert(base.end(), static_cast<std::size_t>(places), T{1});
  return array(std::span<const T>(base), {std::ssize(sizes) + 1, places});
}

}  // namespace
}  // namespace detail

using detail::require;

Array grid_sample(const Input& src, const Input& grid, const GridSampleOptions& o) {
  detail::check_samples(src, grid, o);
  if (src.dtype() != f32 && src.dtype() != f64)
    return astype(grid_sample(astype(src, f32), detail::as_dtype(grid, f32), o), src.dtype());
  if (src.size() == 0 || grid.size() == 0) {
    Shape shape(std::span(grid.shape().begin(), grid.shape().end() - 1));
    shape.push_back(src.shape().back());
    return zeros(shape, src.dtype());
  }
  return detail::sampled({o}, src, detail::as_dtype(grid, src.dtype()));
}

Array affine_grid(const Input& theta, const std::vector<std::int64_t>& sizes, const AffineGridOptions& options) {
  constexpr const char* kOp = "affine_grid";
  const auto axes = std::ssize(sizes);
  if ((axes != 2 && axes != 3) || std::any_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n < 1; }))
    throw ArgumentError(std::string(kOp) + ": expected two or three sizes of at least 1, got " + std::to_string(axes));
  require(theta.defined() && is_floating(theta.dtype()) && theta.shape().rank() == 3 && theta.shape()[1] == axes &&
              theta.shape()[2] == axes + 1,
          kOp, axes == 2 ? "theta must be floating [N, 2, 3]" : "theta must be floating [N, 3, 4]", theta, "theta");
  const std::int64_t batch = theta.shape()[0];
  std::int64_t places = 1;
  Shape shape{batch};
  for (const std::int64_t size : sizes) {
    shape.push_back(size);  // throws where the product is too large
    places *= size;
  }
  shape.push_back(axes);
  detail::require_table(kOp, places, axes + 1);
  const Dtype dtype = theta.dtype() == f64 ? f64 : f32;
  const Array base = dtype == f64 ? detail::affine_base<double>(sizes, options.align_corners)
                                  : detail::affine_base<float>(sizes, options.align_corners);
  // Places are neighbours in the product, which is wide then: one row for each image and coordinate.
  const Array rows = matmul(reshape(detail::as_dtype(theta, dtype), {batch * axes, axes + 1}), base);
  const Array grid = transpose(reshape(rows, {batch, axes, places}), {0, 2, 1});
  return detail::as_dtype(reshape(grid, shape), theta.dtype());
}

}  // namespace samebytes
