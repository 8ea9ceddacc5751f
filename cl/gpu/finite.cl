// Whether all values are finite: an element is not where its exponent has all bits set. Exact for every dtype; nothing
// is summed, so nothing overflows. Groups of FINITE_GROUP.
// Program: core

#define FINITE_GROUP 256

// src [n], dst [first + parts]: whether part g, src[g * per_part, ...), is finite. T holds the bits of an element,
// `mask` its exponent. Geometry: over_rows(parts). Writes one element of dst for each group.
#define FINITE_PARTS(bits, T)                                                                                         \
  __kernel void SB_JOIN(finite_parts_, bits)(ARRAY(const T, src), ARRAY(int, dst), const long n, const long per_part, \
                                             const int first, const long mask) {                                      \
    START(src);                                                                                                       \
    START(dst);                                                                                                       \
    __local int scratch[FINITE_GROUP];                                                                                \
    const int part = (int)get_group_id(0), item = (int)get_local_id(0);                                               \
    const long begin = part * per_part, end = min(n, begin + per_part);                                               \
    const T exponent = (T)mask;                                                                                       \
    int all = 1;                                                                                                      \
    for (long i = begin + item; i < end; i += FINITE_GROUP) all &= (T)(src[i] & exponent) != exponent;                \
    all = finite_of_group(all, scratch);                                                                              \
    if (item == 0) dst[first + part] = all;                                                                           \
  }

static inline int finite_of_group(const int mine, __local int* scratch) {
  const int item = (int)get_local_id(0);
  scratch[item] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = FINITE_GROUP / 2; step > 0; step /= 2) {
    if (item < step) scratch[item] &= scratch[item + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return scratch[0];
}

FINITE_PARTS(16, ushort)
FINITE_PARTS(32, uint)
FINITE_PARTS(64, ulong)
#undef FINITE_PARTS

// dst [1]: whether all of src [n] are true. Geometry: over_rows(1).
__kernel void finite_all(ARRAY(const int, src), ARRAY(uchar, dst), const int n) {
  START(src);
  START(dst);
  __local int scratch[FINITE_GROUP];
  const int item = (int)get_local_id(0);
  int all = 1;
  for (int i = item; i < n; i += FINITE_GROUP) all &= src[i];
  all = finite_of_group(all, scratch);
  if (item == 0) dst[0] = (uchar)all;
}
