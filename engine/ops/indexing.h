// What other ops need from gather beyond the public function.
#pragma once

#include "samebytes/array.h"

namespace samebytes::detail {

// gather(a, axis, index) with 0 <= axis and an i32 index that fits. `is_distinct`: no index occurs twice in a line
// along the axis, so the gradient is moved back instead of added up.
Array gather_at(const Array& a, int axis, const Array& index, bool is_distinct);

}  // namespace samebytes::detail
