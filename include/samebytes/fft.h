// Discrete Fourier transforms, computed by the host over the same bytes. A complex array has a last axis of 2: real and
// imaginary part. Not in place; gradients flow, and are transforms again. f32 and f64; f32 is computed in f32. All
// throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

// a [..., N, 2] -> [..., N, 2]: y[k] = sum over n of a[n] exp(-2 pi j k n / N), as NumPy's along its last axis.
Array fft(const Input& a);
// Its inverse, with 1 / N.
Array ifft(const Input& a);
// a [..., N], real -> [..., N / 2 + 1, 2]: the first half of the spectrum; the other one is its mirror image.
Array rfft(const Input& a);
// The inverse of rfft: a [..., N / 2 + 1, 2] -> [..., N], real. Without n it is 2 (N / 2), the even one of two lengths.
// The imaginary parts of the first value, and of the last one of an even length, count as 0.
Array irfft(const Input& a, std::int64_t n = 0);

}  // namespace samebytes
