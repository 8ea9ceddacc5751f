// pad, roll: one axis of an array continued beyond its ends, GPU. src [outer, n, inner] -> dst [outer, d, inner], where
// position i of dst takes position i - before of the continued axis; d = n turns a circular axis. Elements are moved as
// bits, so one entry serves all types of a size; without `fill` the constant is zero bits. One work-item per element.
#include "shared/pad.h"

// The position of src [0, n) that position i of the continued axis shows, or -1 for the constant. Reflect and circular
// go at most one length of the axis beyond its ends.
long pad_source(long i, const long n, const int mode) {
  if (i >= 0 && i < n) return i;
  if (mode == PAD_REFLECT) return i < 0 ? -i : 2 * (n - 1) - i;
  if (mode == PAD_REPLICATE) return i < 0 ? 0 : n - 1;
  if (mode == PAD_CIRCULAR) return i < 0 ? i + n : i - n;
  return -1;
}

// Geometry: over_elements(outer * d * inner).
#define PAD_BODY(T)                                       \
  START(src);                                             \
  START(fill);                                            \
  START(dst);                                             \
  const long all = outer * d * inner, end = SB_END(all);  \
  for (long i = SB_BEGIN(all); i < end; ++i) {            \
    const long row = i / inner, column = i - row * inner; \
    const long o = row / d, at = row - o * d;             \
    const long from = pad_source(at - before, n, mode);   \
    T value = (T)0;                                       \
    if (from >= 0)                                        \
      value = src[(o * n + from) * inner + column];       \
    else if (has_fill)                                    \
      value = fill[0];                                    \
    dst[i] = value;                                       \
  }

__kernel void pad_fwd_8(ARRAY(const uchar, src), ARRAY(const uchar, fill), ARRAY(uchar, dst), const long outer,
                        const long n, const long d, const long inner, const long before, const int mode,
                        const int has_fill){PAD_BODY(uchar)}

__kernel void pad_fwd_16(ARRAY(const ushort, src), ARRAY(const ushort, fill), ARRAY(ushort, dst), const long outer,
                         const long n, const long d, const long inner, const long before, const int mode,
                         const int has_fill){PAD_BODY(ushort)}

__kernel void pad_fwd_32(ARRAY(const uint, src), ARRAY(const uint, fill), ARRAY(uint, dst), const long outer,
                         const long n, const long d, const long inner, const long before, const int mode,
                         const int has_fill){PAD_BODY(uint)}

__kernel void pad_fwd_64(ARRAY(const ulong, src), ARRAY(const ulong, fill), ARRAY(ulong, dst), const long outer,
                         const long n, const long d, const long inner, const long before, const int mode,
                         const int has_fill) {
  PAD_BODY(ulong)
}
#undef PAD_BODY

// The gradient of reflect, replicate and circular: dx [outer, n, inner] gathers from dy [outer, d, inner] the places
// that show each position, always in ascending order. f32 or f64 sums. Geometry: over_elements(outer * n * inner).
__kernel void pad_bwd(ARRAY(const stored, dy), ARRAY(stored, dx), const long outer, const long n, const long d,
                      const long inner, const long before, const int mode) {
  START(dy);
  START(dx);
  const long all = outer * n * inner, end = SB_END(all);
  for (long i = SB_BEGIN(all); i < end; ++i) {
    const long row = i / inner, column = i - row * inner;
    const long o = row / n, at = row - o * n;
    const __global stored* rows = dy + o * d * inner + column;
    // The places that show this position: a range, and for reflect and circular one on each side of it.
    long first = before + at, last = first, low = -1, high = -1;
    if (mode == PAD_REPLICATE) {
      if (at == 0) first = 0;
      if (at == n - 1) last = d - 1;
    } else if (mode == PAD_REFLECT) {
      if (at > 0) low = before - at;
      if (at < n - 1) high = before + 2 * (n - 1) - at;
    } else {
      low = first - n;
      high = first + n;
    }
    real sum = 0;
    if (low >= 0) sum += LOAD(rows + low * inner);
    for (long q = first; q <= last; ++q) sum += LOAD(rows + q * inner);
    if (high >= 0 && high < d) sum += LOAD(rows + high * inner);
    STORE(sum, dx + i);
  }
}
