// pad, roll: two axes of an array, or one, continued beyond their ends, GPU. src [outer, high_n, between, n, inner] ->
// dst [outer, high_d, between, d, inner], where position i of the last axis of dst takes position i - before of the
// continued one, and likewise the high one; d = n turns a circular axis. `rows` = outer * high_d * between. Elements
// are moved as bits, so one entry serves all types of a size; without `fill` the constant is zero bits. One work-item
// per element.
#include "shared/pad.clh"

// Geometry: over_elements(rows * d * inner).
#define PAD_BODY(T)                                                               \
  START(src);                                                                     \
  START(fill);                                                                    \
  START(dst);                                                                     \
  const long all = rows * d * inner, end = SB_END(all);                           \
  for (long i = SB_BEGIN(all); i < end; ++i) {                                    \
    const long place = i / inner, column = i - place * inner;                     \
    const long row = place / d, at = place - row * d, above = row / between;      \
    const long from = pad_source(at - before, n, mode);                           \
    const long high = pad_source(above % high_d - high_before, high_n, mode);     \
    const long line = (above / high_d * high_n + high) * between + row % between; \
    T value = (T)0;                                                               \
    if (from >= 0 && high >= 0)                                                   \
      value = src[(line * n + from) * inner + column];                            \
    else if (has_fill)                                                            \
      value = fill[0];                                                            \
    dst[i] = value;                                                               \
  }

__kernel void pad_fwd_8(ARRAY(const uchar, src), ARRAY(const uchar, fill), ARRAY(uchar, dst), const long rows,
                        const long n, const long d, const long inner, const long before, const long high_n,
                        const long high_d, const long high_before, const long between, const int mode,
                        const int has_fill){PAD_BODY(uchar)}

__kernel void pad_fwd_16(ARRAY(const ushort, src), ARRAY(const ushort, fill), ARRAY(ushort, dst), const long rows,
                         const long n, const long d, const long inner, const long before, const long high_n,
                         const long high_d, const long high_before, const long between, const int mode,
                         const int has_fill){PAD_BODY(ushort)}

__kernel
    void pad_fwd_32(ARRAY(const uint, src), ARRAY(const uint, fill), ARRAY(uint, dst), const long rows, const long n,
                    const long d, const long inner, const long before, const long high_n, const long high_d,
                    const long high_before, const long between, const int mode, const int has_fill){PAD_BODY(uint)}

__kernel
    void pad_fwd_64(ARRAY(const ulong, src), ARRAY(const ulong, fill), ARRAY(ulong, dst), const long rows, const long n,
                    const long d, const long inner, const long before, const long high_n, const long high_d,
                    const long high_before, const long between, const int mode, const int has_fill) {
  PAD_BODY(ulong)
}
#undef PAD_BODY

// The gradient of reflect, replicate and circular: dx [outer, high_n, between, n, inner] gathers from dy [outer,
// high_d, between, d, inner] the places that show each position, always in ascending order; `rows` = outer * high_n *
// between. f32 or f64 sums. Geometry: over_elements(rows * n * inner).
__kernel void pad_bwd(ARRAY(const stored, dy), ARRAY(stored, dx), const long rows, const long n, const long d,
                      const long inner, const long before, const long high_n, const long high_d, const long high_before,
                      const long between, const int mode) {
  START(dy);
  START(dx);
  const long all = rows * n * inner, end = SB_END(all);
  for (long i = SB_BEGIN(all); i < end; ++i) {
    const long place = i / inner, column = i - place * inner, row = place / n;
    const long above = row / between, line = row - above * between, o = above / high_n;
    const PadPlaces high = pad_places(above - o * high_n, high_n, high_d, high_before, mode);
    const PadPlaces low = pad_places(place - row * n, n, d, before, mode);
    real sum = 0;
    for (int h = 0; h < high.count; ++h)
      for (int l = 0; l < low.count; ++l)
        sum +=
            LOAD(dy + (((o * high_d + pad_place(high, h)) * between + line) * d + pad_place(low, l)) * inner + column);
    STORE(sum, dx + i);
  }
}
