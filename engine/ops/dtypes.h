// Arrays as another dtype, for ops that take several.
#pragma once

#include "samebytes/array.h"
#include "samebytes/ops/pointwise.h"

namespace samebytes::detail {

// The array itself if it has that dtype, else a cast; an empty handle stays one.
inline Array as_dtype(const Array& a, Dtype dtype) { return !a.defined() || a.dtype() == dtype ? a : astype(a, dtype); }

// Whether labels, ids and indices may have it.
constexpr bool is_label(Dtype dtype) { return dtype == Dtype::i32 || dtype == Dtype::i64 || dtype == Dtype::u8; }

// The dtype in which a product of two floating dtypes is computed: the common one if they agree, else at least f32.
inline Dtype wider(Dtype a, Dtype b) {
  if (a == b) return a;
  return a == Dtype::f64 || b == Dtype::f64 ? Dtype::f64 : Dtype::f32;
}

}  // namespace samebytes::detail
