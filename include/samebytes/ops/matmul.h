// Matrix products: engine/ops/matmul.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// a [..., M, K] x b [..., K, N] -> [..., M, N]; batch axes broadcast. Accumulates in f32 (f64 for f64).
Array matmul(const Input& a, const Input& b);
// x [..., in] x transpose(weight [out, in]) + bias [out]; bias may be an empty handle and is added in f32: an f32 bias
// does not widen a 16-bit result.
Array linear(const Input& x, const Input& weight, const Input& bias = {});

}  // namespace samebytes
