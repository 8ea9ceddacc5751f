// The identity, equally spaced numbers, grids of coordinates.
#include <algorithm>
#include <string>
#include <vector>

#include "graph/op.h"
#include "samebytes/ops.h"

namespace samebytes {
Array linspace(double start, double stop, std::int64_t count, Dtype dtype) {
  if (count < 0) throw ArgumentError("linspace: expected a count of 0 or more, got " + std::to_string(count));
  if (!is_floating(dtype))
    throw ArgumentError("linspace: expected a floating dtype, got " + std::string(name_of(dtype)));
  // In double, so that the last value is `stop` in any type.
  const double last = static_cast<double>(std::max<std::int64_t>(count - 1, 1));
  const Array place = arange(0, static_cast<double>(count), 1, f64) / last;
  return astype(place * stop + (1.0 - place) * start, dtype);
}

Array eye(std::int64_t rows, std::int64_t columns, Dtype dtype) {
  if (columns == -1) columns = rows;
  if (rows < 0 || columns < 0)
    throw ArgumentError("eye: expected sizes of 0 or more, got " + std::to_string(rows) + " and " +
                        std::to_string(columns));
  const Array row = reshape(arange(0, static_cast<double>(rows), 1, i32), {rows, 1});
  return astype(equal(row, arange(0, static_cast<double>(columns), 1, i32)), dtype);
}

const std::vector<Array> meshgrid(const Inputs& arrays) {
  Shape shape;
  for (const Array& a : arrays) {
    detail::require(a.defined() && a.shape().rank() == 1, "meshgrid", "needs arrays of one axis", a, "one of them");
    shape.push_back(a.size());
  }
  std::vector<Array> grids;
  for (const Array& a : arrays) {
    Shape line = shape;
    for (int i = 0; i < line.rank(); ++i)
      if (i != static_cast<int>(grids.size())) line[i] = 1;
    grids.push_back(broadcast_to(reshape(a, line), shape));
  }
  return grids;
}

}  // namespace samebytes
