// What other ops ask of gather beside the public one.
#pragma once

#include "samebytes/array.h"

namespace samebytes::detail {

// gather(a, axis, index) with 0 <= axis and an i32 index that fits. Where no index comes twice in a line along the
// axis, `is_distinct` lets the gradient be moved back instead of added up.
Array gather_at(const Array& a, int axis, const Array& index, bool is_distinct);

}  // namespace samebytes::detail
