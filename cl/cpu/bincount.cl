// How often each number occurs. CPU: each group counts a part of the numbers in tables of its own, whose sums are the
// result: whole numbers add up to the same in any order.

// counts [groups * tables, bins] of index [n], of which each group takes `each`; what lies outside [0, bins) does not
// count. With four tables equal numbers that follow each other do not wait for one another; `tables` is 1 or 4.
// Geometry: over_rows.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void bincount_parts(ARRAY(const int, index), ARRAY(int, counts),
                                                                            const long n, const int bins,
                                                                            const long each, const int tables) {
  START(index);
  START(counts);
  const long line = tables == 4 ? bins : 0, first = (long)get_group_id(0) * each, end = min(n, first + each);
  __global int* mine = counts + (long)get_group_id(0) * tables * bins;
  for (long i = 0; i < (long)tables * bins; ++i) mine[i] = 0;
  long k = first;
  for (; k + 4 <= end; k += 4) {
    const uint a = (uint)index[k], b = (uint)index[k + 1], c = (uint)index[k + 2], d = (uint)index[k + 3];
    if (a < (uint)bins) ++mine[a];
    if (b < (uint)bins) ++mine[line + b];
    if (c < (uint)bins) ++mine[2 * line + c];
    if (d < (uint)bins) ++mine[3 * line + d];
  }
  for (; k < end; ++k)
    if ((uint)index[k] < (uint)bins) ++mine[(uint)index[k]];
}

// dst [bins] = the sums of the columns of counts [rows, bins]. Geometry: over_elements(bins).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void bincount_merge(ARRAY(const int, counts), ARRAY(int, dst),
                                                                            const long rows, const long bins) {
  START(counts);
  START(dst);
  const long begin = SB_BEGIN(bins), end = SB_END(bins);
  for (long i = begin; i < end; ++i) dst[i] = counts[i];
  for (long row = 1; row < rows; ++row)
    for (long i = begin; i < end; ++i) dst[i] += counts[row * bins + i];
}
