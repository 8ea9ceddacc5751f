// Matrix products: engine/ops/matmul.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <string_view>

#include "samebytes/array.h"

namespace samebytes {

// a [..., M, K] x b [..., K, N] -> [..., M, N]; batch axes broadcast. Accumulates in f32 (f64 for f64).
Array matmul(const Input& a, const Input& b);
// x [..., in] x transpose(weight [out, in]) + bias [out]; bias may be an empty handle and is added in f32: an f32 bias
// does not widen a 16-bit result.
Array linear(const Input& x, const Input& weight, const Input& bias = {});
// Sums of products by Einstein's convention, as NumPy's: einsum("bij,bjk->bik", {a, b}). Without an arrow the result
// has the letters that occur once, in the order of the alphabet. From the left, two arrays at a time, each by a matmul.
// A letter that occurs twice in an array takes its diagonal: "ii->i", and "ii" the trace. Dots stand for the axes that
// have no letter, the last ones of all arrays together, and broadcast: "...ij,...jk->...ik"; a result that leaves them
// out sums them up, as PyTorch does. Throws where sizes of a letter differ, and for a result with a letter twice.
Array einsum(std::string_view equation, const Inputs& arrays);

}  // namespace samebytes
