// The update of Adafactor (samebytes/optim/adafactor.h) over flat cells in which every parameter is a segment.
// engine/ops/adafactor.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "samebytes/array.h"

namespace samebytes::detail {

// Where the parameters lie in the arena, and their statistics in the cells of rows and columns. Immutable; made once
// for a layout.
class AdafactorLayout {
 public:
  // Parameters of two or more axes are factored over the last two, [..., R, C]; the others are vectors. Throws
  // ArgumentError unless offsets rise in steps of 16 elements and all parameters lie in [0, n).
  AdafactorLayout(std::span<const std::int64_t> offsets, std::span<const Shape> shapes, std::int64_t n);
  std::int64_t n() const { return n_; }
  std::int64_t rows() const { return rows_; }        // elements of the cell of rows, at least 1
  std::int64_t columns() const { return columns_; }  // ... of columns, at least 1
  std::int64_t sums() const { return sums_; }        // elements of the temporary sums of columns
  const Array& tiles() const { return tiles_; }      // i32 [tiles, 16]
  const Array& blocks() const { return blocks_; }    // i32 [blocks, 8]; of columns; may be empty

 private:
  std::int64_t n_, rows_ = 0, columns_ = 0, sums_ = 0;
  Array tiles_, blocks_;
};

struct AdafactorStep {
  double rate = 0.0;         // rho: min(rate, 1 / sqrt(t))
  double rest = 0.0;         // 1 - beta2: t^beta2_decay
  double eps = 0.0;          // eps1; its square is the least second moment
  double least_scale = 0.0;  // eps2: of the root mean square of a parameter
  double clip = 1.0;         // d: the largest root mean square of an update
  double keep = 1.0;         // 1 - rate weight_decay
};
// Nodes that overwrite the cells p [n], rows [rows], columns [columns]: four launches for all parameters together. The
// result is the new p; formulas in samebytes/optim/adafactor.h. control [3] has what only the
// device knows where a scaler may skip steps: [0] is 0 where this one is skipped and no cell changes, [1] and [2] stand
// for rest and rate. Throws ArgumentError for arrays of other shapes or types than these, f32 or f64.
Array adafactor_update(const Array& p, const Array& rows, const Array& columns, const Array& gradient,
                       const AdafactorLayout& layout, const AdafactorStep& step, const Array& control = {});

}  // namespace samebytes::detail
