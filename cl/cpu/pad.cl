// pad, roll: two axes of an array, or one, continued beyond their ends, CPU. src [outer, high_n, between, n, inner] ->
// dst [outer, high_d, between, d, inner], where position i of the last axis of dst takes position i - before of the
// continued one, and likewise the high one; d = n turns a circular axis. `rows` = outer * high_d * between. Elements
// are moved as bits, so one entry serves all types of a size; without `fill` the constant is zero bits.
#include "shared/pad.clh"

// The row of src, of n * inner elements, that a row of dst shows, or -1 for the constant.
long pad_row(const long row, const long high_n, const long high_d, const long high_before, const long between,
             const int mode) {
  const long above = row / between, high = pad_source(above % high_d - high_before, high_n, mode);
  return high < 0 ? -1 : (above / high_d * high_n + high) * between + row % between;
}

// How many positions from `at` on one stretch of src, in its order or reversed, one element of it or the constant
// fills.
long pad_run(const long at, const long n, const long d, const long inner, const long before, const int mode) {
  const long i = at - before;
  if (i >= 0 && i < n) return min(n - i, d - at);
  if (inner > 1 && (mode == PAD_REFLECT || mode == PAD_REPLICATE)) return 1;
  return i < 0 ? min(-i, d - at) : d - at;
}

// One run after another. Geometry: over_elements(rows * d * inner).
#define PAD_BODY(T)                                                                      \
  START(src);                                                                            \
  START(fill);                                                                           \
  START(dst);                                                                            \
  const T value = has_fill ? fill[0] : (T)0;                                             \
  const long end = SB_END(rows * d * inner);                                             \
  long i = SB_BEGIN(rows * d * inner);                                                   \
  const long place = i / inner;                                                          \
  long column = i - place * inner, row = place / d;                                      \
  long at = place - row * d;                                                             \
  while (i < end) {                                                                      \
    const long line = pad_row(row, high_n, high_d, high_before, between, mode);          \
    const long row_end = min(end, (row + 1) * d * inner);                                \
    while (i < row_end) {                                                                \
      const long positions = line < 0 ? d - at : pad_run(at, n, d, inner, before, mode); \
      const long count = min(positions * inner - column, row_end - i);                   \
      const long from = pad_source(at - before, n, mode);                                \
      const bool outside = at < before || at >= before + n;                              \
      const __global T* p = src + (line * n + max(from, 0L)) * inner + column;           \
      __global T* to = dst + i;                                                          \
      long k = 0;                                                                        \
      if (line < 0 || (outside && mode == PAD_CONSTANT)) {                               \
        for (; k < count; ++k) to[k] = value;                                            \
      } else if (outside && inner == 1 && mode == PAD_REPLICATE) {                       \
        const T same = p[0];                                                             \
        for (; k < count; ++k) to[k] = same;                                             \
      } else if (outside && inner == 1 && mode == PAD_REFLECT) {                         \
        for (; k < count; ++k) to[k] = p[-k];                                            \
      } else {                                                                           \
        for (; k + 16 <= count; k += 16) sb_store16(sb_load16(p + k), to + k);           \
        for (; k < count; ++k) to[k] = p[k];                                             \
      }                                                                                  \
      i += count;                                                                        \
      column = 0;                                                                        \
      at += positions;                                                                   \
    }                                                                                    \
    at = 0;                                                                              \
    ++row;                                                                               \
  }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_8(
    ARRAY(const uchar, src), ARRAY(const uchar, fill), ARRAY(uchar, dst), const long rows, const long n, const long d,
    const long inner, const long before, const long high_n, const long high_d, const long high_before,
    const long between, const int mode, const int has_fill){PAD_BODY(uchar)}

__kernel
    __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_16(ARRAY(const ushort, src), ARRAY(const ushort, fill),
                                                                   ARRAY(ushort, dst), const long rows, const long n,
                                                                   const long d, const long inner, const long before,
                                                                   const long high_n, const long high_d,
                                                                   const long high_before, const long between,
                                                                   const int mode, const int has_fill){PAD_BODY(ushort)}

__kernel
    __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_32(ARRAY(const uint, src), ARRAY(const uint, fill),
                                                                   ARRAY(uint, dst), const long rows, const long n,
                                                                   const long d, const long inner, const long before,
                                                                   const long high_n, const long high_d,
                                                                   const long high_before, const long between,
                                                                   const int mode, const int has_fill){PAD_BODY(uint)}

__kernel
    __attribute__((reqd_work_group_size(1, 1, 1))) void pad_fwd_64(ARRAY(const ulong, src), ARRAY(const ulong, fill),
                                                                   ARRAY(ulong, dst), const long rows, const long n,
                                                                   const long d, const long inner, const long before,
                                                                   const long high_n, const long high_d,
                                                                   const long high_before, const long between,
                                                                   const int mode, const int has_fill) {
  PAD_BODY(ulong)
}
#undef PAD_BODY

// The gradient of reflect, replicate and circular: dx [outer, high_n, between, n, inner] gathers from dy [outer,
// high_d, between, d, inner] the places that show each position, always in ascending order, so sums do not depend on
// the number of threads; `rows` = outer * high_n * between. f32 or f64 sums. A high axis of one position that is not
// continued stands for none. Geometry: over_elements(rows * n * inner).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pad_bwd(ARRAY(const stored, dy), ARRAY(stored, dx),
                                                                     const long rows, const long n, const long d,
                                                                     const long inner, const long before,
                                                                     const long high_n, const long high_d,
                                                                     const long high_before, const long between,
                                                                     const int mode) {
  START(dy);
  START(dx);
  // Positions in [begin, stop) are shown once, so they are copied as they lie.
  const long after = d - n - before;
  const long begin = mode == PAD_REPLICATE ? 1 : mode == PAD_REFLECT ? before + 1 : after;
  const long stop = mode == PAD_REPLICATE ? n - 1 : mode == PAD_REFLECT ? n - 1 - after : n - before;
  const long end = SB_END(rows * n * inner);
  long i = SB_BEGIN(rows * n * inner);
  const long place = i / inner;
  long column = i - place * inner, row = place / n;
  long at = place - row * n;
  while (i < end) {
    const long above = row / between, line = row - above * between, o = above / high_n;
    const PadPlaces high = pad_places(above - o * high_n, high_n, high_d, high_before, mode);
    const long row_end = min(end, (row + 1) * n * inner);
    while (i < row_end) {
      const long positions = at >= begin && at < stop ? stop - at : 1;
      const long count = min(positions * inner - column, row_end - i);
      const PadPlaces low = pad_places(at, n, d, before, mode);
      const __global stored* first =
          dy + (((o * high_d + pad_place(high, 0)) * between + line) * d + pad_place(low, 0)) * inner + column;
      __global stored* to = dx + i;
      if (high.count == 1 && low.count == 1) {
        for (long k = 0; k < count; k += VW) sb_store(sb_load(first + k, count - k, count - k, 0), to + k, count - k);
      } else {
        for (long k = 0; k < count; k += VW) {
          vreal sum = sb_load(first + k, count - k, count - k, 0);
          for (int h = 0; h < high.count; ++h) {
            const __global stored* q =
                dy + ((o * high_d + pad_place(high, h)) * between + line) * d * inner + column + k;
            for (int l = h == 0; l < low.count; ++l)
              sum += sb_load(q + pad_place(low, l) * inner, count - k, count - k, 0);
          }
          sb_store(sum, to + k, count - k);
        }
      }
      i += count;
      column = 0;
      at += positions;
    }
    at = 0;
    ++row;
  }
}
