// Elements by their numbers. Letters: O outer, D the indexed axis, J indices, I inner; arrays are dense. A negative
// index counts from the end, where `from_end` is D and not 0. What is outside [0, D) then has no element: moves put
// `missing` there, sums leave it out.
// Program: transformer
#include "shared/indexing.clh"

#define INDEXING_ITEMS 256  // work-items of indexing_sort
#define INDEXING_TILE 64    // columns, and work-items, of one group of indexing_scatter_add

// Moves of elements as bits, one family for all types of a size. Geometry: over_elements(O * J * I).
// indexing_take: dst [O, J, I] = src [O, index[j], I], index [J].
// indexing_gather: dst [O, J, I] = src [O, index[o, j, i], I], index [O, J, I].
#define INDEXING_MOVES(bits, T)                                                                                        \
  __kernel void SB_JOIN(indexing_take_, bits)(ARRAY(const T, src), ARRAY(const int, index), ARRAY(T, dst),             \
                                              const long outer, const int depth, const long items, const long inner,   \
                                              const int missing, const int from_end) {                                 \
    START(src);                                                                                                        \
    START(index);                                                                                                      \
    START(dst);                                                                                                        \
    const long n = outer * items * inner, end = SB_END(n);                                                             \
    for (long e = SB_BEGIN(n); e < end; ++e) {                                                                         \
      const long row = e / inner, i = e - row * inner, o = row / items;                                                \
      const int d = INDEXING_PLACE(index[row - o * items], from_end);                                                  \
      dst[e] = d >= 0 && d < depth ? src[(o * depth + d) * inner + i] : (T)missing;                                    \
    }                                                                                                                  \
  }                                                                                                                    \
  __kernel void SB_JOIN(indexing_gather_, bits)(ARRAY(const T, src), ARRAY(const int, index), ARRAY(T, dst),           \
                                                const long outer, const int depth, const long items, const long inner, \
                                                const int missing, const int from_end) {                               \
    START(src);                                                                                                        \
    START(index);                                                                                                      \
    START(dst);                                                                                                        \
    const long n = outer * items * inner, end = SB_END(n);                                                             \
    for (long e = SB_BEGIN(n); e < end; ++e) {                                                                         \
      const long row = e / inner, i = e - row * inner, o = row / items;                                                \
      const int d = INDEXING_PLACE(index[e], from_end);                                                                \
      dst[e] = d >= 0 && d < depth ? src[(o * depth + d) * inner + i] : (T)missing;                                    \
    }                                                                                                                  \
  }

INDEXING_MOVES(8, uchar)
INDEXING_MOVES(16, ushort)
INDEXING_MOVES(32, uint)
INDEXING_MOVES(64, ulong)

// A stable counting sort: order [J] holds the places of the index by their values, equal ones in ascending order, and
// starts [D + 2] where each value begins in it; value D stands for what lies outside [0, D) or is `left_out`. ranks [J]
// is scratch. Geometry: one group for all. It takes its size of indices at a time: an item's rank among equal ones is
// what came in earlier blocks and the earlier items of its own block, so no atomics are needed and the order is fixed.
__kernel __attribute__((reqd_work_group_size(INDEXING_ITEMS, 1, 1))) void indexing_sort(
    ARRAY(const int, index), ARRAY(int, order), ARRAY(int, starts), ARRAY(int, ranks), const int items, const int depth,
    const int left_out, const int from_end) {
  START(index);
  START(order);
  START(starts);
  START(ranks);
  __local int block[INDEXING_ITEMS];
  const int l = (int)get_local_id(0);
  for (int d = l; d < depth + 2; d += INDEXING_ITEMS) starts[d] = 0;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int first = 0; first < items; first += INDEXING_ITEMS) {
    const int j = first + l;
    int value = -1;
    if (j < items) {
      value = INDEXING_PLACE(index[j], from_end);
      if (value < 0 || value >= depth || value == left_out) value = depth;
    }
    block[l] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    int rank = 0;
    bool is_last = true;
    for (int k = 0; k < INDEXING_ITEMS; ++k) {
      const bool same = block[k] == value;
      rank += same && k < l;
      is_last = is_last && !(same && k > l);
    }
    if (j < items) {
      rank += starts[value + 1];
      ranks[j] = rank;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (j < items && is_last) starts[value + 1] = rank + 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  // Counts to starts: each item adds up a stretch of them.
  const int share = (depth + INDEXING_ITEMS) / INDEXING_ITEMS;
  const int begin = min(depth + 2, 1 + l * share), end = min(depth + 2, begin + share);
  int sum = 0;
  for (int d = begin; d < end; ++d) sum += starts[d];
  block[l] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  int before = 0;
  for (int k = 0; k < l; ++k) before += block[k];
  for (int d = begin; d < end; ++d) {
    before += starts[d];
    starts[d] = before;
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int j = l; j < items; j += INDEXING_ITEMS) {
    const int d = INDEXING_PLACE(index[j], from_end);
    order[starts[d >= 0 && d < depth && d != left_out ? d : depth] + ranks[j]] = j;
  }
}

// dst [O, D, I] = base (zeros where null) plus the sums of src [O, J, I] over the places of each value, in the order of
// indexing_sort. Where `spoils` is set and there are places without a value, all of dst is NaN. Each row of I
// elements is written once. Geometry: over_rows, rows_per_group (a power of two) of the O * D rows each, its items
// shared equally among them.
__kernel void indexing_sum(ARRAY(const int, order), ARRAY(const int, starts), ARRAY(const stored, src),
                           ARRAY_INPLACE(const stored, base), ARRAY_INPLACE(stored, dst), const long outer,
                           const int depth, const long items, const long inner, const int rows_per_group,
                           const int spoils) {
  START(order);
  START(starts);
  START(src);
  START(base);
  START(dst);
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long row = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  if (row >= outer * depth) return;
  const real start = spoils && starts[depth + 1] > starts[depth] ? NAN : 0;
  const long o = row / depth, d = row - o * depth;
  const __global stored* from = src + o * items * inner;
  const int begin = starts[d], stop = starts[d + 1];
  for (long i = lane; i < inner; i += lanes) {
    real a = base ? start + LOAD(base + row * inner + i) : start;
    for (int k = begin; k < stop; ++k) a += LOAD(from + order[k] * inner + i);
    STORE(a, dst + row * inner + i);
  }
}

// dst [O, D, I] = base [O, D, I] (zeros where null) with src [O, J, I] added at index [O, J, I], in the order of j.
// index_line is from the indices of one o to those of the next: J * I, or 0 where all o have the same. base may lie
// where dst lies. Where `spoils` is set, a line along D that has an index outside becomes NaN. Geometry: over_rows, a
// group of INDEXING_TILE work-items for each o and each INDEXING_TILE columns of I.
__kernel void indexing_scatter_add(ARRAY_INPLACE(const real, base), ARRAY(const int, index), ARRAY(const real, src),
                                   ARRAY_INPLACE(real, dst), const int depth, const long items, const long inner,
                                   const long index_line, const int spoils) {
  START(base);
  START(index);
  START(src);
  START(dst);
  const long tiles = (inner + INDEXING_TILE - 1) / INDEXING_TILE, o = (long)get_group_id(0) / tiles;
  const long i = ((long)get_group_id(0) - o * tiles) * INDEXING_TILE + (long)get_local_id(0);
  if (i >= inner) return;
  const long at = o * depth * inner + i;
  __global real* to = dst + at;
  for (int d = 0; d < depth; ++d) to[d * inner] = base ? base[at + d * inner] : 0;
  bool is_outside = false;
  for (long j = 0; j < items; ++j) {
    const long from = (o * items + j) * inner + i;
    const int d = INDEXING_PLACE(index[o * index_line + j * inner + i], depth);
    if (d >= 0 && d < depth) {
      to[d * inner] += src[from];
    } else {
      is_outside = true;
    }
  }
  if (spoils && is_outside)
    for (int d = 0; d < depth; ++d) to[d * inner] = NAN;
}

// dst [O, index[o, j, i], I] = src [O, J, I], where no index is negative or comes twice in a line along D: each element
// is written once. Geometry: over_elements(O * J * I).
__kernel void indexing_put(ARRAY(const int, index), ARRAY(const stored, src), ARRAY(stored, dst), const long outer,
                           const int depth, const long items, const long inner) {
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
