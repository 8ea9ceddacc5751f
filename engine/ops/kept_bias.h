// The bias of a product or convolution under Autocast.
#pragma once

#include "graph/autocast.h"
#include "samebytes/array.h"

namespace samebytes::detail {

// Kernels add a bias to sums in f32, so that of a 16-bit op stays f32: a cast would be a launch, its gradient another.
inline Array kept_bias(const Casts& cast, const Array& bias, Dtype op) {
  return bias.defined() && bias.dtype() == f32 && (op == f16 || op == bf16) ? bias : cast(bias);
}

}  // namespace samebytes::detail
