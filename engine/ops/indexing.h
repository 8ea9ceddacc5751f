// What other ops need from gather beyond the public function.
#pragma once

#include <string>

#include "samebytes/array.h"

namespace samebytes::detail {

class NodeWriter;

// Indices, labels, ids and lengths as i32. What i32 does not hold becomes 2^31 - 1 or its negative, which are outside
// of every axis.
Array as_i32(const Array& numbers);

// gather(a, axis, index) with 0 <= axis and an i32 index that fits. `is_distinct`: no index occurs twice in a line
// along the axis, so the gradient is moved back instead of added up; and none counts from the end: a negative one has
// no element.
Array gather_at(const Array& a, int axis, const Array& index, bool is_distinct);

// What the scatters check and normalise: i32 indices, a and src reduced to what the index
// reaches. `axis` counts from the front. Throws ArgumentError.
struct ScatterParts {
  Array a, index, src;
  int axis = 0;
  int beyond = -1;  // an axis along which `a` has more places than the index, which stay as they are
};
ScatterParts scatter_parts(const char* op, const Array& a, int axis, const Array& index, const Array& src);

// A node of inputs index, src and perhaps a base (else zeros) as ScatterElements; `index` is the first one, unless it
// is given in src's shape.
void write_scatter(NodeWriter& w, int axis, const char* reduction, const std::string& index = "");

// scatter() into zeros of `shape`, which is that of index and src but along `axis`, where depth and an i32 index fit.
Array put_at(const Shape& shape, int axis, const Array& index, const Array& src);

}  // namespace samebytes::detail
