// Values put at places, combined in a fixed order. Letters: O outer, D the indexed axis, J indices, I inner; arrays are
// dense. CPU: one work-item per group, SCATTER_TILE columns of I each.
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
#define SCATTER_LINES(T, NAME)                                                                            \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(scatter_, NAME)(                   \
      ARRAY(const T, base), ARRAY(const int, index), ARRAY(const T, src), ARRAY(T, dst), const int depth, \
      const long items, const long inner, const int how, const T missing) {                               \
    START(base);                                                                                          \
    START(index);                                                                                         \
    START(src);                                                                                           \
    START(dst);                                                                                           \
    const long tiles = (inner + SCATTER_TILE - 1) / SCATTER_TILE, o = (long)get_group_id(0) / tiles;      \
    const long first = ((long)get_group_id(0) - o * tiles) * SCATTER_TILE;                                \
    const long columns = min((long)SCATTER_TILE, inner - first), at = o * depth * inner + first;          \
    __global T* to = dst + at;                                                                            \
    bool is_spoilt[SCATTER_TILE];                                                                         \
    for (int i = 0; i < SCATTER_TILE; ++i) is_spoilt[i] = false;                                          \
    for (int d = 0; d < depth; ++d)                                                                       \
      for (long i = 0; i < columns; ++i) to[d * inner + i] = base[at + d * inner + i];                    \
    for (long j = 0; j < items; ++j) {                                                                    \
      const long from = (o * items + j) * inner + first;                                                  \
      for (long i = 0; i < columns; ++i) {                                                                \
        const int d = index[from + i];                                                                    \
        if (d >= 0 && d < depth) {                                                                        \
          const T b = to[d * inner + i], v = src[from + i];                                               \
          to[d * inner + i] = SCATTER_COMBINED(b, v, how);                                                \
        } else {                                                                                          \
          is_spoilt[i] = true;                                                                            \
        }                                                                                                 \
      }                                                                                                   \
    }                                                                                                     \
    for (long i = 0; i < columns; ++i)                                                                    \
      for (int d = 0; is_spoilt[i] && d < depth; ++d) to[d * inner + i] = missing;                        \
  }
SCATTER_LINES(real, real)
SCATTER_LINES(int, i32)
#undef SCATTER_LINES
#undef SCATTER_COMBINED
