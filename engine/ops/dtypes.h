// Arrays as another dtype, for ops that take several.
#pragma once

#include "samebytes/array.h"
#include "samebytes/ops/pointwise.h"

namespace samebytes::detail {

// The array itself where it has that dtype; an empty handle stays one.
inline Array as_dtype(const Array& a, Dtype dtype) { return !a || a.dtype() == dtype ? a : astype(a, dtype); }

}  // namespace samebytes::detail
