// Stable sorting of the rows of src [R, n] by keys: unsigned numbers in the order of the elements, NaN the largest, -0
// equal to 0. Blocks of SORT_BLOCK elements are sorted in local memory (K. Batcher's bitonic sort, by key and place,
// which makes it stable), then neighbouring runs are merged, a pass for each doubling. What comes out is index [R, n],
// places within the row. The first few in order need no sorting: each block keeps its own, and those of all blocks are
// gone through once more.
#include "shared/sort.clh"

#define SORT_BLOCK 1024  // elements of a row sorted by one group
#define SORT_MERGE 1024  // elements of a merge that one group reads
#define SORT_TOP_BLOCK 4096  // elements of a row of which one group finds the first ones
#define SORT_TOP_ITEMS 64    // items of such a group

// block_keys, block_index [size], a power of two, in ascending order of both. Every item of the group calls it.
#define SORT_BITONIC(K)                                                                            \
  SB_OVERLOAD void sort_bitonic(__local K* block_keys, __local int* block_index, const int size) { \
    const int item = (int)get_local_id(0), items = (int)get_local_size(0);                         \
    for (int run = 2; run <= size; run *= 2)                                                       \
      for (int step = run / 2; step > 0; step /= 2) {                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        for (int t = item; t < size / 2; t += items) {                                             \
          const int a = (t & ~(step - 1)) * 2 | (t & (step - 1)), b = a + step;                    \
          const K key_a = block_keys[a], key_b = block_keys[b];                                    \
          const int index_a = block_index[a], index_b = block_index[b];                            \
          const bool is_above = key_a > key_b || (key_a == key_b && index_a > index_b);            \
          if (is_above == ((a & run) == 0)) {                                                      \
            block_keys[a] = key_b;                                                                 \
            block_keys[b] = key_a;                                                                 \
            block_index[a] = index_b;                                                              \
            block_index[b] = index_a;                                                              \
          }                                                                                        \
        }                                                                                          \
      }                                                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
  }
SORT_BITONIC(uint)
SORT_BITONIC(ulong)
#undef SORT_BITONIC

// keys, index [R, n] = each block of `block` elements in order.
// Geometry: over_rows, a group for each block of each row.
#define SORT_BLOCKS(suffix, T, K)                                                                           \
  __kernel void SB_JOIN(sort_blocks_, suffix)(ARRAY(const T, src), ARRAY(K, keys), ARRAY(int, index),       \
                                              const int columns,                                            \
                                              const int block, const int descending) {                      \
    START(src);                                                                                             \
    START(keys);                                                                                            \
    START(index);                                                                                           \
    __local K block_keys[SORT_BLOCK];                                                                       \
    __local int block_index[SORT_BLOCK];                                                                    \
    const long blocks = (columns + block - 1) / block, row = (long)get_group_id(0) / blocks;                \
    const int first = (int)((long)get_group_id(0) - row * blocks) * block, n = min(block, columns - first); \
    const long at = row * columns + first;                                                                  \
    const K flip = descending ? ~(K)0 : 0;                                                                  \
    const int item = (int)get_local_id(0), items = (int)get_local_size(0);                                  \
    int size = 1;                                                                                           \
    while (size < n) size *= 2;                                                                             \
    for (int i = item; i < size; i += items) {                                                              \
      block_keys[i] = i < n ? SB_JOIN(sort_key_, suffix)(src[at + i]) ^ flip : ~(K)0;                       \
      block_index[i] = first + i; /* what fills the block up lies behind every equal key */                 \
    }                                                                                                       \
    sort_bitonic(block_keys, block_index, size);                                                            \
    for (int i = item; i < n; i += items) {                                                                 \
      keys[at + i] = block_keys[i];                                                                         \
      index[at + i] = block_index[i];                                                                       \
    }                                                                                                       \
  }

SORT_BLOCKS(real, real, sort_key_of_real)
SORT_BLOCKS(i32, int, uint)
SORT_BLOCKS(i64, long, ulong)

// Runs of `width` elements merged in pairs, the first one's elements before equal ones of the second: an element's
// place is its own in its run and the number of elements of the other run before it. Geometry: over_rows, a group for
// each SORT_MERGE elements of each row.
#define SORT_MERGES(bits, K)                                                                                 \
  __kernel void SB_JOIN(sort_merge_, bits)(ARRAY(const K, keys), ARRAY(const int, index), ARRAY(K, keys_to), \
                                           ARRAY(int, index_to), const int columns, const int width) {       \
    START(keys);                                                                                             \
    START(index);                                                                                            \
    START(keys_to);                                                                                          \
    START(index_to);                                                                                         \
    const long parts = (columns + SORT_MERGE - 1) / SORT_MERGE, row = (long)get_group_id(0) / parts;         \
    const int first = (int)((long)get_group_id(0) - row * parts) * SORT_MERGE;                               \
    const int last = min(columns, first + SORT_MERGE), begin = first / (2 * width) * (2 * width);            \
    const int middle = min(columns, begin + width), end = min(columns, begin + 2 * width);                   \
    const __global K* k = keys + row * columns;                                                              \
    for (int i = first + (int)get_local_id(0); i < last; i += (int)get_local_size(0)) {                      \
      const K key = k[i];                                                                                    \
      const bool is_first = i < middle;                                                                      \
      int low = is_first ? middle : begin, high = is_first ? end : middle;                                   \
      while (low < high) { /* the first element of the other run that does not come before this one */       \
        const int half_way = (low + high) / 2;                                                               \
        if (is_first ? k[half_way] < key : k[half_way] <= key) {                                             \
          low = half_way + 1;                                                                                \
        } else {                                                                                             \
          high = half_way;                                                                                   \
        }                                                                                                    \
      }                                                                                                      \
      const int place = is_first ? i + low - middle : i - middle + low;                                      \
      keys_to[row * columns + place] = key;                                                                  \
      index_to[row * columns + place] = index[row * columns + i];                                            \
    }                                                                                                        \
  }
SORT_MERGES(32, uint)
SORT_MERGES(64, ulong)
#undef SORT_MERGES

// Of each item's (key, place) the first one in order, in item_keys[0], item_places[0]. Every item of the group calls it.
#define SORT_TOP_REDUCE(K)                                                                    \
  SB_OVERLOAD void sort_top_reduce(__local K* item_keys, __local int* item_places) {          \
    const int item = (int)get_local_id(0);                                                    \
    for (int step = SORT_TOP_ITEMS / 2; step > 0; step /= 2) {                                \
      barrier(CLK_LOCAL_MEM_FENCE);                                                           \
      if (item < step) {                                                                      \
        const K key = item_keys[item + step];                                                 \
        const int place = item_places[item + step];                                           \
        if (key < item_keys[item] || (key == item_keys[item] && place < item_places[item])) { \
          item_keys[item] = key;                                                              \
          item_places[item] = place;                                                          \
        }                                                                                     \
      }                                                                                       \
    }                                                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                             \
  }
SORT_TOP_REDUCE(uint)
SORT_TOP_REDUCE(ulong)
#undef SORT_TOP_REDUCE

// k rounds, each of which finds the first element in order behind the one before: KEY(i) of element i of n, and
// PUT(j, key, i) for the j-th; where there is none, i is INT_MAX and the key the largest.
#define SORT_TOP_ROUNDS(K, n, k, KEY, PUT)                                   \
  __local K item_keys[SORT_TOP_ITEMS];                                       \
  __local int item_places[SORT_TOP_ITEMS];                                   \
  const int item = (int)get_local_id(0);                                     \
  K last_key = 0;                                                            \
  int last = -1;                                                             \
  for (int j = 0; j < k; ++j) {                                              \
    K best = ~(K)0;                                                          \
    int place = INT_MAX;                                                     \
    for (int i = item; i < n; i += SORT_TOP_ITEMS) {                         \
      const K key = KEY(i);                                                  \
      const bool is_later = key > last_key || (key == last_key && i > last); \
      if (is_later && (key < best || (key == best && i < place))) {          \
        best = key;                                                          \
        place = i;                                                           \
      }                                                                      \
    }                                                                        \
    item_keys[item] = best;                                                  \
    item_places[item] = place;                                               \
    sort_top_reduce(item_keys, item_places);                                 \
    last_key = item_keys[0];                                                 \
    last = item_places[0];                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                            \
    if (item == 0) PUT(j, last_key, last);                                   \
  }

// keys, index [R, blocks, k] = the first k of each block of `block` elements, in order; a last block of fewer has the
// largest keys behind them. Geometry: over_rows, a group of SORT_TOP_ITEMS for each block of each row.
#define SORT_TOP(suffix, T, K)                                                                                      \
  __kernel void SB_JOIN(sort_top_, suffix)(ARRAY(const T, src), ARRAY(K, keys), ARRAY(int, index),                  \
                                           const int columns, const int block, const int k, const int descending) { \
    START(src);                                                                                                     \
    START(keys);                                                                                                    \
    START(index);                                                                                                   \
    const long blocks = (columns + block - 1) / block, row = (long)get_group_id(0) / blocks;                        \
    const int first = (int)((long)get_group_id(0) - row * blocks) * block, n = min(block, columns - first);         \
    const __global T* from = src + row * columns + first;                                                           \
    const K flip = descending ? ~(K)0 : 0;                                                                          \
    const long at = (long)get_group_id(0) * k;                                                                      \
    SORT_TOP_ROUNDS(K, n, k, SORT_TOP_KEY_##suffix, SORT_TOP_KEEP)                                                  \
  }
#define SORT_TOP_KEY_real(i) (sort_key_real(from[i]) ^ flip)
#define SORT_TOP_KEY_i32(i) (sort_key_i32(from[i]) ^ flip)
#define SORT_TOP_KEY_i64(i) (sort_key_i64(from[i]) ^ flip)
#define SORT_TOP_KEEP(j, key, i)                  \
  {                                               \
    keys[at + (j)] = key;                         \
    index[at + (j)] = (i) < n ? first + (i) : -1; \
  }

SORT_TOP(real, real, sort_key_of_real)
SORT_TOP(i32, int, uint)
SORT_TOP(i64, long, ulong)

// index_to [R, k] = the places of the first k of keys [R, candidates]. Geometry: over_rows, a group of SORT_TOP_ITEMS
// for each row.
#define SORT_TOP_CANDIDATE(i) keys[row * candidates + (i)]
#define SORT_TOP_PLACE(j, key, i) index_to[row * k + (j)] = index[row * candidates + (i)]
#define SORT_TOP_MERGES(bits, K)                                                                          \
  __kernel void SB_JOIN(sort_top_merge_, bits)(ARRAY(const K, keys), ARRAY(const int, index),             \
                                               ARRAY(int, index_to), const int candidates, const int k) { \
    START(keys);                                                                                          \
    START(index);                                                                                         \
    START(index_to);                                                                                      \
    const long row = get_group_id(0);                                                                     \
    SORT_TOP_ROUNDS(K, candidates, k, SORT_TOP_CANDIDATE, SORT_TOP_PLACE)                                 \
  }
SORT_TOP_MERGES(32, uint)
SORT_TOP_MERGES(64, ulong)
#undef SORT_TOP_MERGES

#undef SORT_TOP
#undef SORT_TOP_ROUNDS
#undef SORT_TOP_KEY_real
#undef SORT_TOP_KEY_i32
#undef SORT_TOP_KEY_i64
#undef SORT_TOP_KEEP
#undef SORT_TOP_CANDIDATE
#undef SORT_TOP_PLACE
#undef SORT_BLOCKS
