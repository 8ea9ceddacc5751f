// pad, roll: one axis of an array continued beyond its ends, CPU. src [outer, n, inner] -> dst [outer, d, inner], where
// position i of dst takes position i - before of the continued axis; d = n turns a circular axis. Elements are moved as
// bits, so one entry serves all types of a size; without `fill` the constant is zero bits.
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

// How many positions from `at` on one stretch of src, in its order or reversed, one element of it or the constant
// fills.
long pad_run(const long at, const long n, const long d, const long inner, const long before, const int mode) {
  const long i = at - before;
  if (i >= 0 && i < n) return min(n - i, d - at);
  if (inner > 1 && (mode == PAD_REFLECT || mode == PAD_REPLICATE)) return 1;
  return i < 0 ? min(-i, d - at) : d - at;
}

// One run after another. Geometry: over_elements(outer * d * inner).
#define PAD_BODY(T)                                                          \
  START(src);                                                                \
  START(fill);                                                               \
  START(dst);                                                                \
  const T value = has_fill ? fill[0] : (T)0;                                 \
  const long end = SB_END(outer * d * inner);                                \
  long i = SB_BEGIN(outer * d * inner);                                      \
  const long row = i / inner;                                                \
  long column = i - row * inner, o = row / d;                                \
  long at = row - o * d;                                                     \
  while (i < end) {                                                          \
    const long positions = pad_run(at, n, d, inner, before, mode);           \
    const long count = min(positions * inner - column, end - i);             \
    const long from = pad_source(at - before, n, mode);                      \
    const bool outside = at < before || at >= before + n;                    \
    const __global T* p = src + (o * n + max(from, 0L)) * inner + column;    \
    __global T* to = dst + i;                                                \
    long k = 0;                                                              \
    if (outside && mode == PAD_CONSTANT) {                                   \
      for (; k < count; ++k) to[k] = value;                                  \
    } else if (outside && inner == 1 && mode == PAD_REPLICATE) {             \
      const T same = p[0];                                                   \
      for (; k < count; ++k) to[k] = same;                                   \
    } else if (outside && inner == 1 && mode == PAD_REFLECT) {               \
      for (; k < count; ++k) to[k] = p[-k];                                  \
    } else {                                                                 \
      for (; k + 16 <= count; k += 16) sb_store16(sb_load16(p + k), to + k); \
      for (; k < count; ++k) to[k] = p[k];                                   \
    }                                                                        \
    i += count;                                                              \
    column = 0;                                                              \
    at += positions;                                                         \
    if (at == d) {                                                           \
      at = 0;                                                                \
      ++o;                                                                   \
    }                                                                        \
  }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_8(
    ARRAY(const uchar, src), ARRAY(const uchar, fill), ARRAY(uchar, dst), const long outer, const long n, const long d,
    const long inner, const long before, const int mode, const int has_fill){PAD_BODY(uchar)}

__kernel
    __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_16(ARRAY(const ushort, src), ARRAY(const ushort, fill),
                                                                   ARRAY(ushort, dst), const long outer, const long n,
                                                                   const long d, const long inner, const long before,
                                                                   const int mode, const int has_fill){PAD_BODY(ushort)}

__kernel
    __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_32(ARRAY(const uint, src), ARRAY(const uint, fill),
                                                                   ARRAY(uint, dst), const long outer, const long n,
                                                                   const long d, const long inner, const long before,
                                                                   const int mode, const int has_fill){PAD_BODY(uint)}

__kernel
    __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_64(ARRAY(const ulong, src), ARRAY(const ulong, fill),
                                                                   ARRAY(ulong, dst), const long outer, const long n,
                                                                   const long d, const long inner, const long before,
                                                                   const int mode, const int has_fill) {
  PAD_BODY(ulong)
}
#undef PAD_BODY

// The gradient of reflect, replicate and circular: dx [outer, n, inner] gathers from dy [outer, d, inner] the places
// that show each position, always in ascending order, so sums do not depend on the number of threads. f32 or f64 sums.
// Geometry: over_elements(outer * n * inner).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pad_bwd(ARRAY(const stored, dy), ARRAY(stored, dx),
                                                                     const long outer, const long n, const long d,
                                                                     const long inner, const long before,
                                                                     const int mode) {
  START(dy);
  START(dx);
  // Positions in [begin, stop) are shown once, so they are copied as they lie.
  const long after = d - n - before;
  const long begin = mode == PAD_REPLICATE ? 1 : mode == PAD_REFLECT ? before + 1 : after;
  const long stop = mode == PAD_REPLICATE ? n - 1 : mode == PAD_REFLECT ? n - 1 - after : n - before;
  const long end = SB_END(outer * n * inner);
  long i = SB_BEGIN(outer * n * inner);
  const long row = i / inner;
  long column = i - row * inner, o = row / n;
  long at = row - o * n;
  while (i < end) {
    const __global stored* rows = dy + o * d * inner + column;
    const long positions = at >= begin && at < stop ? stop - at : 1;
    const long count = min(positions * inner - column, end - i);
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
    const int has_low = low >= 0, has_high = high >= 0 && high < d;
    for (long k = 0; k < count; k += VW) {
      const long left = count - k;
      vreal sum = (vreal)0;
      if (has_low) sum += sb_load(rows + low * inner + k, left, left, 0);
      for (long q = first; q <= last; ++q) sum += sb_load(rows + q * inner + k, left, left, 0);
      if (has_high) sum += sb_load(rows + high * inner + k, left, left, 0);
      sb_store(sum, dx + i + k, left);
    }
    i += count;
    column = 0;
    at += positions;
    if (at == n) {
      at = 0;
      ++o;
    }
  }
}
