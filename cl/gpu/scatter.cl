// Values put at places, combined in a fixed order. Letters: O outer, D the indexed axis, J indices, I inner; arrays are
// dense; a negative index counts from the end. GPU: a group for SCATTER_TILE columns of I, a work-item for each.
#include "shared/indexing.clh"
#include "shared/scatter.h"

#define SCATTER_TILE 64

// The value after v came to one that holds b; NaN wins over numbers.
#define SCATTER_COMBINED(b, v, how)                                 \
  ((how) == SCATTER_REPLACE ? (v)                                   \
   : (how) == SCATTER_PROD  ? (b) * (v)                             \
   : (b) != (b)             ? (b)                                   \
   : (how) == SCATTER_AMAX  ? ((v) > (b) || (v) != (v) ? (v) : (b)) \
                            : ((v) < (b) || (v) != (v) ? (v) : (b)))

// dst [O, D, I] = base [O, D, I] (zeros where null) combined with src [O, J, I] at index [O, J, I], in the order of j.
// A line along D that has an index outside becomes `missing`. Geometry: over_rows, a group for each o and each
// SCATTER_TILE columns of I.
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
    for (int d = 0; d < depth; ++d) to[d * inner] = base ? base[at + d * inner] : 0;                        \
    bool is_spoilt = false;                                                                                 \
    for (long j = 0; j < items; ++j) {                                                                      \
      const long from = (o * items + j) * inner + i;                                                        \
      const int d = INDEXING_PLACE(index[from], depth);                                                     \
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
SCATTER_LINES(long, i64)

// The gradient of SCATTER_REPLACE for src: dsrc [O, J, I] = dy [O, D, I] at index [O, J, I] where no later j of the
// line has the same index, else 0; all 0 in a line that has an index outside. taken [groups, D, SCATTER_TILE] is
// scratch. Geometry as above.
__kernel void scatter_last(ARRAY(const real, dy), ARRAY(const int, index), ARRAY(uchar, taken), ARRAY(real, dsrc),
                           const int depth, const long items, const long inner) {
  START(dy);
  START(index);
  START(taken);
  START(dsrc);
  const long tiles = (inner + SCATTER_TILE - 1) / SCATTER_TILE, o = (long)get_group_id(0) / tiles;
  const long i = ((long)get_group_id(0) - o * tiles) * SCATTER_TILE + (long)get_local_id(0);
  if (i >= inner) return;
  __global uchar* marks = taken + (long)get_group_id(0) * depth * SCATTER_TILE + get_local_id(0);
  for (int d = 0; d < depth; ++d) marks[(long)d * SCATTER_TILE] = 0;
  bool is_spoilt = false;
  for (long j = items - 1; j >= 0; --j) {
    const long from = (o * items + j) * inner + i;
    const int d = INDEXING_PLACE(index[from], depth);
    if (d >= 0 && d < depth) {
      dsrc[from] = marks[(long)d * SCATTER_TILE] ? 0 : dy[(o * depth + d) * inner + i];
      marks[(long)d * SCATTER_TILE] = 1;
    } else {
      is_spoilt = true;
    }
  }
  for (long j = 0; is_spoilt && j < items; ++j) dsrc[(o * items + j) * inner + i] = 0;
}
#undef SCATTER_LINES
#undef SCATTER_COMBINED
