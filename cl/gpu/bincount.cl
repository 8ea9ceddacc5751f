// How often each number occurs. GPU: each group counts a part of the numbers in a table of its own by atomic additions,
// and the sums of the tables are the result: whole numbers add up to the same in any order.

#define BINCOUNT_ITEMS 256  // work-items of bincount_parts

// counts [groups, bins] of index [n], of which each group takes `each`; what lies outside [0, bins) does not count.
// Geometry: over_rows.
__kernel __attribute__((reqd_work_group_size(BINCOUNT_ITEMS, 1, 1))) void bincount_parts(ARRAY(const int, index),
                                                                                         ARRAY(int, counts),
                                                                                         const long n, const int bins,
                                                                                         const long each) {
  START(index);
  START(counts);
  const long first = (long)get_group_id(0) * each, end = min(n, first + each);
  __global int* mine = counts + (long)get_group_id(0) * bins;
  for (long i = get_local_id(0); i < bins; i += BINCOUNT_ITEMS) mine[i] = 0;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (long k = first + get_local_id(0); k < end; k += BINCOUNT_ITEMS)
    if ((uint)index[k] < (uint)bins) atomic_inc(mine + index[k]);
}

// dst [bins] = the sums of the columns of counts [rows, bins]. Geometry: over_elements(bins).
__kernel void bincount_merge(ARRAY(const int, counts), ARRAY(int, dst), const long rows, const long bins) {
  START(counts);
  START(dst);
  const long end = SB_END(bins);
  for (long i = SB_BEGIN(bins); i < end; ++i) {
    int sum = 0;
    for (long row = 0; row < rows; ++row) sum += counts[row * bins + i];
    dst[i] = sum;
  }
}
