// Stable sorting of the rows of src [R, n] by keys: unsigned numbers in the order of the elements, NaN the largest, -0
// equal to 0. Blocks of SORT_BLOCK elements are sorted by their digits (H. Hollerith's radix sort, lowest digit first),
// then neighbouring runs are merged, a pass for each doubling. What comes out is index [R, n], places within the row.
// The first few in order need no sorting: each block keeps its own, and those of all blocks are gone through once more.
#include "shared/sort.clh"

#define SORT_BLOCK 65536  // elements of a row sorted by one group; a multiple of SORT_MERGE
#define SORT_MERGE 16384  // elements of a merge that one group writes
#define SORT_SMALL 32     // up to here by insertion
#define SORT_TOP_BLOCK 16384  // elements of a row of which one group finds the first ones, at least SORT_TOP_MOST
#define SORT_TOP_MOST 64      // the most that are found so: kMostFound of sort.cpp
#define SORT_TOP_STRETCH 64   // elements passed at once where none is among the first

#define SORT_DIGITS(K) ((int)sizeof(K))

// keys, index [R, n] = each block of `block` elements in order; keys_spare and index_spare are of the same size.
// Geometry: over_rows, a group for each block of each row.
#define SORT_BLOCKS(suffix, T, K)                                                                           \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(sort_blocks_, suffix)(               \
      ARRAY(const T, src), ARRAY(K, keys), ARRAY(int, index), const int columns, const int block,           \
      const int descending, ARRAY(K, keys_spare), ARRAY(int, index_spare)) {                                \
    START(src);                                                                                             \
    START(keys);                                                                                            \
    START(index);                                                                                           \
    START(keys_spare);                                                                                      \
    START(index_spare);                                                                                     \
    const long blocks = (columns + block - 1) / block, row = (long)get_group_id(0) / blocks;                \
    const int first = (int)((long)get_group_id(0) - row * blocks) * block, n = min(block, columns - first); \
    const long at = row * columns + first;                                                                  \
    const K flip = descending ? ~(K)0 : 0;                                                                  \
    if (n > SORT_SMALL) {                                                                                   \
      for (int i = 0; i < n; ++i) keys[at + i] = SB_JOIN(sort_key_, suffix)(src[at + i]) ^ flip;            \
      sort_digits(keys + at, index + at, keys_spare + at, index_spare + at, n, first);                      \
      return;                                                                                               \
    }                                                                                                       \
    for (int i = 0; i < n; ++i) {                                                                           \
      const K key = SB_JOIN(sort_key_, suffix)(src[at + i]) ^ flip;                                         \
      int j = i;                                                                                            \
      for (; j > 0 && keys[at + j - 1] > key; --j) {                                                        \
        keys[at + j] = keys[at + j - 1];                                                                    \
        index[at + j] = index[at + j - 1];                                                                  \
      }                                                                                                     \
      keys[at + j] = key;                                                                                   \
      index[at + j] = first + i;                                                                            \
    }                                                                                                       \
  }

// keys [n] in order with the places first .. first + n - 1 that they came from; a digit that all keys share is passed.
#define SORT_BY_DIGITS(K)                                                                       \
  SB_OVERLOAD void sort_digits(__global K* keys, __global int* index, __global K* keys_spare,   \
                               __global int* index_spare, const int n, const int first) {       \
    int counts[SORT_DIGITS(K) * 256];                                                           \
    for (int i = 0; i < SORT_DIGITS(K) * 256; ++i) counts[i] = 0;                               \
    for (int i = 0; i < n; ++i) {                                                               \
      const K key = keys[i];                                                                    \
      for (int d = 0; d < SORT_DIGITS(K); ++d) ++counts[d * 256 + (int)(key >> (8 * d) & 255)]; \
      index[i] = first + i;                                                                     \
    }                                                                                           \
    __global K *from = keys, *to = keys_spare;                                                  \
    __global int *index_from = index, *index_to = index_spare;                                  \
    for (int d = 0; d < SORT_DIGITS(K); ++d) {                                                  \
      int* starts = counts + d * 256;                                                           \
      if (starts[(int)(from[0] >> (8 * d) & 255)] == n) continue;                               \
      int sum = 0;                                                                              \
      for (int i = 0; i < 256; ++i) {                                                           \
        const int count = starts[i];                                                            \
        starts[i] = sum;                                                                        \
        sum += count;                                                                           \
      }                                                                                         \
      for (int i = 0; i < n; ++i) {                                                             \
        const K key = from[i];                                                                  \
        const int place = starts[(int)(key >> (8 * d) & 255)]++;                                \
        to[place] = key;                                                                        \
        index_to[place] = index_from[i];                                                        \
      }                                                                                         \
      __global K* other = from;                                                                 \
      from = to;                                                                                \
      to = other;                                                                               \
      __global int* index_other = index_from;                                                   \
      index_from = index_to;                                                                    \
      index_to = index_other;                                                                   \
    }                                                                                           \
    if (from == keys) return;                                                                   \
    for (int i = 0; i < n; ++i) {                                                               \
      keys[i] = from[i];                                                                        \
      index[i] = index_from[i];                                                                 \
    }                                                                                           \
  }
SORT_BY_DIGITS(uint)
SORT_BY_DIGITS(ulong)
#undef SORT_BY_DIGITS

SORT_BLOCKS(real, real, sort_key_of_real)
SORT_BLOCKS(i32, int, uint)
SORT_BLOCKS(i64, long, ulong)

// Runs of `width` elements merged in pairs, the first one's elements before equal ones of the second. Geometry:
// over_rows, a group for each SORT_MERGE elements of each row; where its part begins is found by bisection (S. Odeh et
// al., "Merge path", 2012).
#define SORT_MERGES(bits, K)                                                                                     \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(sort_merge_, bits)(                       \
      ARRAY(const K, keys), ARRAY(const int, index), ARRAY(K, keys_to), ARRAY(int, index_to), const int columns, \
      const int width) {                                                                                         \
    START(keys);                                                                                                 \
    START(index);                                                                                                \
    START(keys_to);                                                                                              \
    START(index_to);                                                                                             \
    const long parts = (columns + SORT_MERGE - 1) / SORT_MERGE, row = (long)get_group_id(0) / parts;             \
    const int first = (int)((long)get_group_id(0) - row * parts) * SORT_MERGE;                                   \
    const int begin = first / (2 * width) * (2 * width), middle = min(columns, begin + width);                   \
    const int end = min(columns, begin + 2 * width), last = min(end, first + SORT_MERGE);                        \
    const __global K* k = keys + row * columns;                                                                  \
    const __global int* x = index + row * columns;                                                               \
    /* How many of the elements before `first` are of the first run. */                                          \
    const int before = first - begin;                                                                            \
    int low = max(0, before - (end - middle)), high = min(before, middle - begin);                               \
    while (low < high) {                                                                                         \
      const int half_way = (low + high) / 2;                                                                     \
      if (k[begin + half_way] <= k[middle + before - 1 - half_way]) {                                            \
        low = half_way + 1;                                                                                      \
      } else {                                                                                                   \
        high = half_way;                                                                                         \
      }                                                                                                          \
    }                                                                                                            \
    int a = begin + low, b = middle + before - low;                                                              \
    for (int i = first; i < last; ++i) {                                                                         \
      const bool is_first = a < middle && (b >= end || k[a] <= k[b]);                                            \
      const int from = is_first ? a++ : b++;                                                                     \
      keys_to[row * columns + i] = k[from];                                                                      \
      index_to[row * columns + i] = x[from];                                                                     \
    }                                                                                                            \
  }
SORT_MERGES(32, uint)
SORT_MERGES(64, ulong)
#undef SORT_MERGES

// Puts (key, place) into its place among the first k, behind equal keys.
#define SORT_TOP_PUT(K)                                                                   \
  SB_OVERLOAD int sort_top_put(K* best, int* places, int count, const int k, const K key, \
                               const int place) {                                         \
    if (count == k && key >= best[k - 1]) return count;                                   \
    int j = count < k ? count++ : k - 1;                                                  \
    for (; j > 0 && best[j - 1] > key; --j) {                                             \
      best[j] = best[j - 1];                                                              \
      places[j] = places[j - 1];                                                          \
    }                                                                                     \
    best[j] = key;                                                                        \
    places[j] = place;                                                                    \
    return count;                                                                         \
  }
SORT_TOP_PUT(uint)
SORT_TOP_PUT(ulong)
#undef SORT_TOP_PUT

// keys, index [R, blocks, k] = the first k of each block of `block` elements, in order; a last block of fewer has the
// largest keys behind them. Geometry: over_rows, a group for each block of each row.
#define SORT_TOP(suffix, T, K)                                                                               \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(sort_top_, suffix)(                   \
      ARRAY(const T, src), ARRAY(K, keys), ARRAY(int, index), const int columns, const int block,            \
      const int k, const int descending) {                                                                   \
    START(src);                                                                                              \
    START(keys);                                                                                             \
    START(index);                                                                                            \
    const long blocks = (columns + block - 1) / block, row = (long)get_group_id(0) / blocks;                 \
    const int first = (int)((long)get_group_id(0) - row * blocks) * block, n = min(block, columns - first);  \
    const __global T* from = src + row * columns + first;                                                    \
    const K flip = descending ? ~(K)0 : 0;                                                                   \
    K best[SORT_TOP_MOST];                                                                                   \
    int places[SORT_TOP_MOST];                                                                               \
    int count = 0;                                                                                           \
    for (int i = 0; i < n;) {                                                                                \
      const int end = min(n, i + SORT_TOP_STRETCH);                                                          \
      int some = count < k || end - i < SORT_TOP_STRETCH;                                                    \
      if (!some) {                                                                                           \
        const K worst = best[k - 1];                                                                         \
        for (int j = 0; j < SORT_TOP_STRETCH; ++j)                                                           \
          some |= (SB_JOIN(sort_key_, suffix)(from[i + j]) ^ flip) < worst;                                  \
      }                                                                                                      \
      for (int j = i; some && j < end; ++j)                                                                  \
        count = sort_top_put(best, places, count, k, SB_JOIN(sort_key_, suffix)(from[j]) ^ flip, first + j); \
      i = end;                                                                                               \
    }                                                                                                        \
    const long at = (long)get_group_id(0) * k;                                                               \
    for (int j = 0; j < k; ++j) {                                                                            \
      keys[at + j] = j < count ? best[j] : ~(K)0;                                                            \
      index[at + j] = j < count ? places[j] : -1;                                                            \
    }                                                                                                        \
  }

SORT_TOP(real, real, sort_key_of_real)
SORT_TOP(i32, int, uint)
SORT_TOP(i64, long, ulong)

// index_to [R, k] = the places of the first k of keys [R, candidates]. Geometry: over_rows, a group for each row.
#define SORT_TOP_MERGES(bits, K)                                                                                \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(sort_top_merge_, bits)(                  \
      ARRAY(const K, keys), ARRAY(const int, index), ARRAY(int, index_to), const int candidates, const int k) { \
    START(keys);                                                                                                \
    START(index);                                                                                               \
    START(index_to);                                                                                            \
    const long row = get_group_id(0);                                                                           \
    K best[SORT_TOP_MOST];                                                                                      \
    int places[SORT_TOP_MOST];                                                                                  \
    int count = 0;                                                                                              \
    for (int i = 0; i < candidates; ++i)                                                                        \
      count = sort_top_put(best, places, count, k, keys[row * candidates + i], index[row * candidates + i]);    \
    for (int j = 0; j < k; ++j) index_to[row * k + j] = places[j];                                              \
  }
SORT_TOP_MERGES(32, uint)
SORT_TOP_MERGES(64, ulong)
#undef SORT_TOP_MERGES

#undef SORT_TOP
#undef SORT_BLOCKS
