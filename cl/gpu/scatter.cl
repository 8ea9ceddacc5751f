// Values put at places, combined in a fixed order. Letters: O outer, D the indexed axis, J indices, I inner; arrays are
// dense. GPU: a group for SCATTER_TILE columns of I, a work-item for each.
#include "shared/scatter.h"

#define SCATTER_TILE 64

// The value after v came to one that holds b; NaN wins over numbers.
#define SCATTER_COMBINED(b, v, how)                                 \
  ((how) == SCATTER_REPLACE ? (v)                                   \
   : (how) == SCATTER_PROD  ? (b) * (v)                             \
   : (b) != (b)             ? (b)                                   \
   : (how) == SCATTER_AMAX  ? ((v) > (b) || (v) != (v) ? (v) : (b)) \
                            : ((v) < (b) || (v) != (v) ? (v) : (b)))

// dst [O, D, I] = base [O, D, I] combined with src [O, J, I] at index [O, J, I], in the order of j. A line along D that
// has an index outside becomes `missing`. Geometry: over_rows, a group for each o and each SCATTER_TILE columns of I.
#define SCATTER_LINES(T, NAME)                                                                              \
  __kernel void SB_JOIN(scatter_, NAME)(ARRAY(const T, base), ARRAY(const int, index), ARRAY(const T, src), \
                                        ARRAY(T, dst), const int depth, const long items, const long inner, \
                                        const int how, const T missing) {                                   \
    START(base);                                                                                            \
    START(index);                                                                                           \
    START(src);                                                                                             \
    START(dst);                                                                                             \
    const long tiles = (inner + SCATTER_TILE - 1) / SCATTER_TILE, o = (long)get_group_id(0) / tiles;        \
    const long i = ((long)get_group_id(0) - o * tiles) * SCATTER_TILE + (long)get_local_id(0);              \
    if (i >= inner) return;                                                                                 \
    const long at = o * depth * inner + i;                                                                  \
    __global T* to = dst + at;                                                                              \
    for (int d = 0; d < depth; ++d) to[d * inner] = base[at + d * inner];                                   \
    bool is_spoilt = false;                                                                                 \
    for (long j = 0; j < items; ++j) {                                                                      \
      const long from = (o * items + j) * inner + i;                                                        \
      const int d = index[from];                                                                            \
      if (d >= 0 && d < depth) {                                                                            \
        const T b = to[d * inner], v = src[from];                                                           \
        to[d * inner] = SCATTER_COMBINED(b, v, how);                                                        \
      } else {                                                                                              \
        is_spoilt = true;                                                                                   \
      }                                                                                                     \
    }                                                                                                       \
    for (int d = 0; is_spoilt && d < depth; ++d) to[d * inner] = missing;                                   \
  }
SCATTER_LINES(real, real)
SCATTER_LINES(int, i32)
#undef SCATTER_LINES
#undef SCATTER_COMBINED
