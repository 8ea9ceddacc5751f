// Elements by their numbers. Letters: O outer, D the indexed axis, J indices, I inner; arrays are dense. A negative
// index counts from the end, where `from_end` is D and not 0. What is outside [0, D) then has no element: moves put
// `missing` there, sums leave it out.
// Program: transformer
#include "shared/indexing.clh"

#define INDEXING_TILE 256  // columns of one group of indexing_scatter_add

// Where inner is 1: elements [e, end) of dst line by line, line o from src's, by the index from `at` on. What is read
// for an index outside does not count, and masks choose, so that every compiler makes vectors of the loop.
#define INDEXING_LINES(T, at, from_end)                                      \
  while (inner == 1 && depth > 0 && e < end) {                               \
    const long count = min(items - j, end - e);                              \
    const __global T* line = src + o * depth;                                \
    const __global int* places = index + (at);                               \
    __global T* to = dst + e;                                                \
    for (long k = 0; k < count; ++k) {                                       \
      const int place = places[k], d = place + ((from_end) & (place >> 31)); \
      const int known = -((uint)d < (uint)depth);                            \
      to[k] = (T)((line[d & known] & (T)known) | ((T)missing & (T)~known));  \
    }                                                                        \
    e += count;                                                              \
    j = 0;                                                                   \
    ++o;                                                                     \
  }

// Moves of elements as bits, one family for all types of a size. Geometry: over_elements(O * J * I).
// indexing_take: dst [O, J, I] = src [O, index[j], I], index [J].
// indexing_gather: dst [O, J, I] = src [O, index[o, j, i], I], index [O, J, I].
#define INDEXING_MOVES(bits, T)                                                                       \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(indexing_take_, bits)(         \
      ARRAY(const T, src), ARRAY(const int, index), ARRAY(T, dst), const long outer, const int depth, \
      const long items, const long inner, const int missing, const int from_end) {                    \
    START(src);                                                                                       \
    START(index);                                                                                     \
    START(dst);                                                                                       \
    const long n = outer * items * inner, end = SB_END(n);                                            \
    long e = SB_BEGIN(n);                                                                             \
    const long row = e / inner;                                                                       \
    long i = e - row * inner, o = row / items;                                                        \
    long j = row - o * items;                                                                         \
    INDEXING_LINES(T, j, from_end)                                                                    \
    while (e < end) {                                                                                 \
      const long count = min(inner - i, end - e);                                                     \
      const int d = INDEXING_PLACE(index[j], from_end);                                               \
      __global T* to = dst + e;                                                                       \
      long k = 0;                                                                                     \
      if (d >= 0 && d < depth) {                                                                      \
        const __global T* from = src + (o * depth + d) * inner + i;                                   \
        const int after = INDEXING_PLACE(index[min((long)j + 1, items - 1)], from_end);               \
        const __global T* next = src + (o * depth + clamp(after, 0, depth - 1)) * inner + i;          \
        for (; k + 16 <= count; k += 16) {                                                            \
          SB_FETCH(next + k);                                                                         \
          sb_store16(sb_load16(from + k), to + k);                                                    \
        }                                                                                             \
        for (; k < count; ++k) to[k] = from[k];                                                       \
      } else {                                                                                        \
        for (; k < count; ++k) to[k] = (T)missing;                                                    \
      }                                                                                               \
      e += count;                                                                                     \
      i = 0;                                                                                          \
      if (++j == items) {                                                                             \
        j = 0;                                                                                        \
        ++o;                                                                                          \
      }                                                                                               \
    }                                                                                                 \
  }                                                                                                   \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(indexing_gather_, bits)(       \
      ARRAY(const T, src), ARRAY(const int, index), ARRAY(T, dst), const long outer, const int depth, \
      const long items, const long inner, const int missing, const int from_end) {                    \
    START(src);                                                                                       \
    START(index);                                                                                     \
    START(dst);                                                                                       \
    const long n = outer * items * inner, end = SB_END(n);                                            \
    long e = SB_BEGIN(n);                                                                             \
    const long row = e / inner;                                                                       \
    long i = e - row * inner, o = row / items;                                                        \
    long j = row - o * items;                                                                         \
    INDEXING_LINES(T, e, from_end)                                                                    \
    while (e < end) {                                                                                 \
      const __global T* from = src + o * depth * inner;                                               \
      for (; i < inner && e < end; ++i, ++e) {                                                        \
        const int d = INDEXING_PLACE(index[e], from_end);                                             \
        dst[e] = d >= 0 && d < depth ? from[d * inner + i] : (T)missing;                              \
      }                                                                                               \
      i = 0;                                                                                          \
      if (++j == items) {                                                                             \
        j = 0;                                                                                        \
        ++o;                                                                                          \
      }                                                                                               \
    }                                                                                                 \
  }

INDEXING_MOVES(8, uchar)
INDEXING_MOVES(16, ushort)
INDEXING_MOVES(32, uint)
INDEXING_MOVES(64, ulong)

// A stable counting sort: order [J] holds the places of the index by their values, equal ones in ascending order, and
// starts [D + 2] where each value begins in it; value D stands for what lies outside [0, D) or is `left_out`. ranks [J]
// is scratch. Geometry: one work-item for all; it costs D + 2 J steps.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void indexing_sort(ARRAY(const int, index), ARRAY(int, order),
                                                                           ARRAY(int, starts), ARRAY(int, ranks),
                                                                           const int items, const int depth,
                                                                           const int left_out, const int from_end) {
  START(index);
  START(order);
  START(starts);
  START(ranks);
  for (int d = 0; d < depth + 2; ++d) starts[d] = 0;
  for (int j = 0; j < items; ++j) {
    const int d = INDEXING_PLACE(index[j], from_end);
    ranks[j] = starts[(d >= 0 && d < depth && d != left_out ? d : depth) + 1]++;
  }
  for (int d = 0; d < depth + 1; ++d) starts[d + 1] += starts[d];
  for (int j = 0; j < items; ++j) {
    const int d = INDEXING_PLACE(index[j], from_end);
    order[starts[d >= 0 && d < depth && d != left_out ? d : depth] + ranks[j]] = j;
  }
}

// dst [O, D, I] = base (zeros where null) plus the sums of src [O, J, I] over the places of each value, in the order of
// indexing_sort. Where `spoils` is set and there are places without a value, all of dst is NaN. Each row of I
// elements is written once. Geometry: over_rows, rows_per_group of the O * D rows each.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void indexing_sum(
    ARRAY(const int, order), ARRAY(const int, starts), ARRAY(const stored, src), ARRAY_INPLACE(const stored, base),
    ARRAY_INPLACE(stored, dst), const long outer, const int depth, const long items, const long inner,
    const int rows_per_group, const int spoils) {
  START(order);
  START(starts);
  START(src);
  START(base);
  START(dst);
  const long rows = outer * depth, first = (long)get_group_id(0) * rows_per_group;
  const long end = min(rows, first + rows_per_group);
  const real start = spoils && starts[depth + 1] > starts[depth] ? NAN : 0;
  long o = first / depth, d = first - o * depth;
  for (long row = first; row < end; ++row) {
    const __global stored* from = src + o * items * inner;
    const __global stored* under = base + row * inner;
    __global stored* to = dst + row * inner;
    const int begin = starts[d], stop = starts[d + 1];
    long i = 0;
    for (; i + 4 * VW <= inner; i += 4 * VW) {
      vreal a = start, b = start, c = start, e = start;
      if (base) {
        a += VLOAD(under + i);
        b += VLOAD(under + i + VW);
        c += VLOAD(under + i + 2 * VW);
        e += VLOAD(under + i + 3 * VW);
      }
      for (int k = begin; k < stop; ++k) {
        const __global stored* p = from + order[k] * inner + i;
        a += VLOAD(p);
        b += VLOAD(p + VW);
        c += VLOAD(p + 2 * VW);
        e += VLOAD(p + 3 * VW);
      }
      VSTORE(a, to + i);
      VSTORE(b, to + i + VW);
      VSTORE(c, to + i + 2 * VW);
      VSTORE(e, to + i + 3 * VW);
    }
    for (; i + VW <= inner; i += VW) {
      vreal a = start;
      if (base) a += VLOAD(under + i);
      for (int k = begin; k < stop; ++k) a += VLOAD(from + order[k] * inner + i);
      VSTORE(a, to + i);
    }
    for (; i < inner; ++i) {
      real a = base ? start + LOAD(under + i) : start;
      for (int k = begin; k < stop; ++k) a += LOAD(from + order[k] * inner + i);
      STORE(a, to + i);
    }
    if (++d == depth) {
      d = 0;
      ++o;
    }
  }
}

// dst [O, D, I] = base [O, D, I] (zeros where null) with src [O, J, I] added at index [O, J, I], in the order of j.
// index_line is from the indices of one o to those of the next: J * I, or 0 where all o have the same. base may lie
// where dst lies. Where `spoils` is set, a line along D that has an index outside becomes NaN. Geometry: over_rows, a
// group for each o and each INDEXING_TILE columns of I.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void indexing_scatter_add(
    ARRAY_INPLACE(const real, base), ARRAY(const int, index), ARRAY(const real, src), ARRAY_INPLACE(real, dst),
    const int depth, const long items, const long inner, const long index_line, const int spoils) {
  START(base);
  START(index);
  START(src);
  START(dst);
  const long tiles = (inner + INDEXING_TILE - 1) / INDEXING_TILE, o = (long)get_group_id(0) / tiles;
  const long first = ((long)get_group_id(0) - o * tiles) * INDEXING_TILE;
  const long columns = min((long)INDEXING_TILE, inner - first);
  const long at = o * depth * inner + first;
  __global real* to = dst + at;
  const bool is_whole = columns == inner;  // then the columns of all d are one stretch
  const long runs = is_whole ? 1 : depth, length = is_whole ? depth * inner : columns;
  for (long r = 0; r < runs; ++r) {
    const long left = r * inner;
    if (base) {
      for (long i = 0; i < length; ++i) to[left + i] = base[at + left + i];
    } else {
      for (long i = 0; i < length; ++i) to[left + i] = 0;
    }
  }
  const __global int* places = index + o * index_line + first;
  const __global real* from = src + o * items * inner + first;
  if (inner == 1) {
    int is_outside = 0;
    for (long j = 0; j < items; ++j) {
      const int d = INDEXING_PLACE(places[j], depth);
      if ((uint)d < (uint)depth)
        to[d] += from[j];
      else
        is_outside = 1;
    }
    for (int d = 0; spoils && is_outside && d < depth; ++d) to[d] = NAN;
    return;
  }
  bool spoilt[INDEXING_TILE];
  for (int i = 0; i < INDEXING_TILE; ++i) spoilt[i] = false;
  for (long j = 0; j < items; ++j, places += inner, from += inner) {
    for (long i = 0; i < columns; ++i) {
      const int d = INDEXING_PLACE(places[i], depth);
      if (d >= 0 && d < depth) {
        to[d * inner + i] += from[i];
      } else {
        spoilt[i] = true;
      }
    }
  }
  for (long i = 0; spoils && i < columns; ++i)
    for (int d = 0; spoilt[i] && d < depth; ++d) to[d * inner + i] = NAN;
}

// dst [O, index[o, j, i], I] = src [O, J, I], where no index is negative or comes twice in a line along D: each element
// is written once. Geometry: over_elements(O * J * I).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void indexing_put(ARRAY(const int, index),
                                                                          ARRAY(const stored, src), ARRAY(stored, dst),
                                                                          const long outer, const int depth,
                                                                          const long items, const long inner) {
  START(index);
  START(src);
  START(dst);
  const long n = outer * items * inner, end = SB_END(n);
  for (long e = SB_BEGIN(n); e < end; ++e) {
    const long row = e / inner, i = e - row * inner, o = row / items;
    const int d = index[e];
    if (d >= 0 && d < depth) dst[(o * depth + d) * inner + i] = src[e];
  }
}

#undef INDEXING_MOVES
#undef INDEXING_LINES
