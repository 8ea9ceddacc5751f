// Values put at places, combined in a fixed order. Letters: O outer, D the indexed axis, J indices, I inner; arrays are
// dense; a negative index counts from the end. CPU: one work-item per group, SCATTER_TILE columns of I each.
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
    const bool is_whole = columns == inner; /* then the columns of all d are one stretch */               \
    const long runs = is_whole ? 1 : depth, length = is_whole ? depth * inner : columns;                  \
    for (long r = 0; r < runs; ++r) {                                                                     \
      const long left = r * inner;                                                                        \
      if (base) {                                                                                         \
        for (long i = 0; i < length; ++i) to[left + i] = base[at + left + i];                             \
      } else {                                                                                            \
        for (long i = 0; i < length; ++i) to[left + i] = 0;                                               \
      }                                                                                                   \
    }                                                                                                     \
    bool is_spoilt[SCATTER_TILE];                                                                         \
    for (int i = 0; i < SCATTER_TILE; ++i) is_spoilt[i] = false;                                          \
    const __global int* places = index + o * items * inner + first;                                       \
    const __global T* from = src + o * items * inner + first;                                             \
    for (long j = 0; j < items; ++j, places += inner, from += inner) {                                    \
      for (long i = 0; i < columns; ++i) {                                                                \
        const int d = INDEXING_PLACE(places[i], depth);                                                   \
        if ((uint)d < (uint)depth) {                                                                      \
          __global T* there = to + (d * inner + i);                                                       \
          const T v = from[i];                                                                            \
          if (how == SCATTER_REPLACE) {                                                                   \
            *there = v;                                                                                   \
          } else {                                                                                        \
            const T b = *there;                                                                           \
            *there = SCATTER_COMBINED(b, v, how);                                                         \
          }                                                                                               \
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
SCATTER_LINES(long, i64)

// The gradient of SCATTER_REPLACE for src: dsrc [O, J, I] = dy [O, D, I] at index [O, J, I] where no later j of the
// line has the same index, else 0; all 0 in a line that has an index outside. taken [groups, D, SCATTER_TILE] is
// scratch. Geometry as above.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void scatter_last(ARRAY(const real, dy),
                                                                          ARRAY(const int, index), ARRAY(uchar, taken),
                                                                          ARRAY(real, dsrc), const int depth,
                                                                          const long items, const long inner) {
  START(dy);
  START(index);
  START(taken);
  START(dsrc);
  const long tiles = (inner + SCATTER_TILE - 1) / SCATTER_TILE, o = (long)get_group_id(0) / tiles;
  const long first = ((long)get_group_id(0) - o * tiles) * SCATTER_TILE;
  const long columns = min((long)SCATTER_TILE, inner - first), at = o * items * inner + first;
  const __global real* from = dy + o * depth * inner + first;
  __global uchar* marks = taken + (long)get_group_id(0) * depth * SCATTER_TILE;
  const long length = depth * columns;
  for (long i = 0; i < length; ++i) marks[i] = 0;
  bool is_spoilt[SCATTER_TILE];
  for (int i = 0; i < SCATTER_TILE; ++i) is_spoilt[i] = false;
  bool is_any_spoilt = false;
  for (long j = items - 1; j >= 0; --j) {
    const __global int* places = index + at + j * inner;
    __global real* to = dsrc + at + j * inner;
    for (long i = 0; i < columns; ++i) {
      const int d = INDEXING_PLACE(places[i], depth);
      if ((uint)d < (uint)depth) {
        __global uchar* mark = marks + (d * columns + i);
        to[i] = *mark ? 0 : from[d * inner + i];
        *mark = 1;
      } else {
        is_spoilt[i] = is_any_spoilt = true;
      }
    }
  }
  for (long j = 0; is_any_spoilt && j < items; ++j)
    for (long i = 0; i < columns; ++i)
      if (is_spoilt[i]) dsrc[at + j * inner + i] = 0;
}
#undef SCATTER_LINES
#undef SCATTER_COMBINED
