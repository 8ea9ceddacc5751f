// The update of Adafactor over a flat arena. Kernels: cl/*/adafactor.cl.
#include "ops/adafactor.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "graph/launch.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "shared/arena.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kAdafactorUnit = ADAFACTOR_UNIT, kTileFields = ADAFACTOR_FIELDS;
constexpr std::int64_t kBlockFields = 8;       // as in cl/*/adafactor.cl
constexpr int kAdafactorGroup = 64;            // ADAFACTOR_GROUP
constexpr std::int64_t kTileElements = 8192;   // a few microseconds of work
constexpr std::int64_t kLeastTileRows = 16;    // of a tile: at most one of this many elements is a column sum
constexpr std::int64_t kTilesOfMatrix = 1024;  // at most: each tile adds up the sums of all
constexpr std::int64_t kBlockColumns = 256;

class WithoutGradient : public Op {
 public:
  using Op::Op;
  std::vector<Array> gradient(const GradientRequest&) const override {
    throw ArgumentError("adafactor_update has no gradient");
  }
};

// Inputs gradient, p, tiles and the cell of rows; results parts [2, tiles], sums of columns, rows. Scalar: rest.
class AdafactorRows final : public WithoutGradient {
 public:
  AdafactorRows() : WithoutGradient({.is_state = {3}, .in_place = {.result = 2, .input = 3}}) {}
  std::string_view name() const override { return "adafactor_rows"; }
  void launch(Launch& run) const override {
    const std::int64_t tiles = run.src_shape(2)[0];
    run.kernel("adafactor_rows", run.dst_dtype())
        .args(run.src(0), run.src(1), run.src(2), run.dst(0), run.dst(1), run.dst(2), tiles, DynamicReal{0},
              run.optional_src(4), int{run.src_count() > 4})
        .cpu_args(run.src_shape(0).size())
        .over_rows(tiles, kAdafactorGroup);
  }
};

// Inputs sums of columns, blocks and the cell of columns; result columns. Scalar: rest.
class AdafactorColumns final : public WithoutGradient {
 public:
  AdafactorColumns() : WithoutGradient({.is_state = {2}, .in_place = {.result = 0, .input = 2}}) {}
  std::string_view name() const override { return "adafactor_columns"; }
  void launch(Launch& run) const override {
    run.kernel("adafactor_columns", run.dst_dtype())
        .args(run.src(0), run.src(1), run.dst(), DynamicReal{0}, run.optional_src(3), int{run.src_count() > 3})
        .over_rows(run.src_shape(1)[0], kAdafactorGroup);
  }
};

// Inputs gradient, the cell of rows as the launch that made the parts left it, columns, parts, tiles; result norms
// [tiles]. Scalar: eps.
class AdafactorNorms final : public WithoutGradient {
 public:
  AdafactorNorms() : WithoutGradient({.is_state = {1}}) {}
  std::string_view name() const override { return "adafactor_norms"; }
  void launch(Launch& run) const override {
    run.kernel("adafactor_norms", run.dst_dtype())
        .args(run.src(0), run.src(1), run.src(2), run.src(3), run.src(4), run.dst(), DynamicReal{0})
        .cpu_args(run.src_shape(0).size())
        .over_rows(run.dst_shape().size(), kAdafactorGroup);
  }
};

// Inputs gradient, the cell of rows, columns, parts, norms, tiles and the cell p; result p. Scalars eps, rate,
// least_scale, clip, keep.
class AdafactorUpdate final : public WithoutGradient {
 public:
  AdafactorUpdate() : WithoutGradient({.is_state = {1, 6}, .in_place = {.result = 0, .input = 6}}) {}
  std::string_view name() const override { return "adafactor_update"; }
  void launch(Launch& run) const override {
    const std::int64_t tiles = run.src_shape(4).size();
    run.kernel("adafactor_update", run.dst_dtype())
        .args(run.src(0), run.src(1), run.src(2), run.src(3), run.src(4), run.src(5), run.dst(), tiles, DynamicReal{0},
              DynamicReal{1}, DynamicReal{2}, DynamicReal{3}, DynamicReal{4}, run.optional_src(7),
              int{run.src_count() > 7})
        .cpu_args(run.dst_shape().size())
        .over_rows(tiles, kAdafactorGroup);
  }
};

void require_cell(const Array& a, std::int64_t size, Dtype dtype, const char* name) {
  require(is_cell(a) && a.shape() == Shape{size} && a.dtype() == dtype && (dtype == f32 || dtype == f64),
          "adafactor_update", "needs flat cells of one type, f32 or f64, as long as the layout says", a, name);
}

// One parameter as matrices [R, C], or as one vector.
struct Matrices {
  std::int64_t count = 1, rows = 1, width = 1;
  bool is_vector = true;
};
Matrices matrices_of(const Shape& shape) {
  Matrices m;
  const int rank = shape.rank();
  m.is_vector = rank < 2;
  if (m.is_vector) {
    m.rows = shape.size();
    return m;
  }
  m.rows = shape[rank - 2];
  m.width = shape[rank - 1];
  for (int axis = 0; axis < rank - 2; ++axis) m.count *= shape[axis];
  return m;
}

}  // namespace

AdafactorLayout::AdafactorLayout(std::span<const std::int64_t> offsets, std::span<const Shape> shapes, std::int64_t n)
    : n_(n) {
  if (offsets.empty() || offsets.size() != shapes.size())
    throw ArgumentError("adafactor_layout: expected one shape per offset, got " + std::to_string(offsets.size()) +
                        " offsets and " + std::to_string(shapes.size()) + " shapes");
  std::vector<std::int32_t> tiles, blocks;
  const auto narrow = [](std::int64_t value) {
    if (value > std::numeric_limits<std::int32_t>::max())
      throw ArgumentError("adafactor_layout: a part of the statistics lies at " + std::to_string(value) +
                          ", which is too far");
    return static_cast<std::int32_t>(value);
  };
  std::int64_t end = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < end || offsets[i] % kAdafactorUnit != 0 || offsets[i] + shapes[i].size() > n)
      throw ArgumentError("adafactor_layout: parameters must rise without overlap in steps of 16 within " +
                          std::to_string(n) + " elements, got " + std::to_string(offsets[i]));
    end = offsets[i] + shapes[i].size();
    if (shapes[i].size() == 0) continue;
    const Matrices m = matrices_of(shapes[i]);
    std::int64_t length = ceil_div(kTileElements, m.width);
    length = std::max({length, std::min(kLeastTileRows, m.rows), ceil_div(m.rows, kTilesOfMatrix)});
    if (m.is_vector) length = ceil_div(length, kAdafactorUnit) * kAdafactorUnit;
    length = std::min(length, m.rows);
    const std::int64_t per_matrix = ceil_div(m.rows, length), first = std::ssize(tiles) / kTileFields;
    for (std::int64_t matrix = 0; matrix < m.count; ++matrix) {
      const std::int64_t column = m.is_vector ? -1 : columns_ + matrix * m.width, sums = sums_;
      const std::int64_t of_matrix = first + matrix * per_matrix;
      for (std::int64_t row = 0; row < m.rows; row += length) {
        for (const std::int64_t field :
             {offsets[i] / kAdafactorUnit, matrix * m.rows + row, std::min(length, m.rows - row), m.width, rows_,
              column, of_matrix, per_matrix, first, per_matrix * m.count, m.rows, m.rows * m.count, sums_,
              std::int64_t{0}, std::int64_t{0}, std::int64_t{0}})
          tiles.push_back(narrow(field));
        if (!m.is_vector) sums_ += m.width;
      }
      for (std::int64_t c = 0; c < m.width && !m.is_vector; c += kBlockColumns)
        for (const std::int64_t field : {column + c, std::min(kBlockColumns, m.width - c), sums + c, per_matrix,
                                         m.width, m.rows, std::int64_t{0}, std::int64_t{0}})
          blocks.push_back(narrow(field));
    }
    rows_ += m.rows * m.count;
    if (!m.is_vector) columns_ += m.width * m.count;
  }
  rows_ = std::max<std::int64_t>(rows_, 1);
  columns_ = std::max<std::int64_t>(columns_, 1);
  sums_ = std::max<std::int64_t>(sums_, 1);
  tiles_ = array(std::span<const std::int32_t>(tiles), Shape{std::ssize(tiles) / kTileFields, kTileFields});
  blocks_ = array(std::span<const std::int32_t>(blocks), Shape{std::ssize(blocks) / kBlockFields, kBlockFields});
}

Array adafactor_update(const Array& p, const Array& rows, const Array& columns, const Array& gradient,
                       const AdafactorLayout& layout, const AdafactorStep& step, const Array& control) {
  require(is_cell(p), "adafactor_update", "needs cells", p, "p");
  const Dtype dtype = p.dtype();
  require_cell(p, layout.n(), dtype, "p");
  require_cell(rows, layout.rows(), dtype, "rows");
  require_cell(columns, layout.columns(), dtype, "columns");
  require(gradient.defined() && gradient.shape() == p.shape() && gradient.dtype() == dtype, "adafactor_update",
          "needs a gradient of the shape and type of p", gradient, "gradient");
  if (control.defined())
    require(control.shape() == Shape{3} && control.dtype() == dtype, "adafactor_update",
            "needs control of the cells' type and 3 elements", control, "control");
  const auto with_control = [&](std::initializer_list<Array> inputs) {
    std::vector<Array> all(inputs);
    if (control.defined()) all.push_back(control);
    return all;
  };
  const std::int64_t count = layout.tiles().shape()[0];
  if (count == 0) return p;
  const std::vector<Array> for_rows = with_control({gradient, p, layout.tiles(), rows});
  const Result results[] = {{Shape{2, count}, dtype}, {Shape{layout.sums()}, dtype}, {rows.shape(), dtype}};
  const std::vector<Array> by_row = make_arrays(make_op<AdafactorRows>(), results, for_rows, {step.rest});
  Array by_column = columns;
  if (layout.blocks().size() > 0) {
    const std::vector<Array> for_columns = with_control({by_row[1], layout.blocks(), columns});
    by_column = make_array(make_op<AdafactorColumns>(), columns.shape(), dtype, for_columns, {step.rest});
  }
  const Array for_norms[] = {gradient, rows, by_column, by_row[0], layout.tiles()};
  const Array norms = make_array(make_op<AdafactorNorms>(), Shape{count}, dtype, for_norms, {step.eps});
  const std::vector<Array> for_update = with_control({gradient, rows, by_column, by_row[0], norms, layout.tiles(), p});
  return make_array(make_op<AdafactorUpdate>(), p.shape(), dtype, for_update,
                    {step.eps, step.rate, step.least_scale, step.clip, step.keep});
}

}  // namespace samebytes::detail
