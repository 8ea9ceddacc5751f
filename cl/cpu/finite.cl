// Whether all values are finite: an element is not where its exponent has all bits set. Exact for every dtype; nothing
// is summed, so nothing overflows.
// Program: core

// src [n], dst [first + parts]: whether part g, src[g * per_part, ...), is finite. T holds the bits of an element,
// `mask` its exponent. Geometry: over_rows(parts). Writes one element of dst for each group.
#define FINITE_PARTS(bits, T)                                                                                      \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(finite_parts_, bits)(                       \
      ARRAY(const T, src), ARRAY(int, dst), const long n, const long per_part, const int first, const long mask) { \
    START(src);                                                                                                    \
    START(dst);                                                                                                    \
    const int part = (int)get_group_id(0);                                                                         \
    const long begin = part * per_part, end = min(n, begin + per_part);                                            \
    const T exponent = (T)mask;                                                                                    \
    SB_JOIN(T, 16) least = (SB_JOIN(T, 16))(exponent);                                                             \
    long i = begin;                                                                                                \
    for (; i + 16 <= end; i += 16) least = min(least, (sb_load16(src + i) & exponent) ^ exponent);                 \
    T lanes[16], one = exponent;                                                                                   \
    vstore16(least, 0, lanes);                                                                                     \
    for (int k = 0; k < 16; ++k) one = min(one, lanes[k]);                                                         \
    for (; i < end; ++i) one = min(one, (T)((src[i] & exponent) ^ exponent));                                      \
    dst[first + part] = one != 0;                                                                                  \
  }
FINITE_PARTS(16, ushort)
FINITE_PARTS(32, uint)
FINITE_PARTS(64, ulong)
#undef FINITE_PARTS

// dst [1]: whether all of src [n] are true. Geometry: over_rows(1).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void finite_all(ARRAY(const int, src), ARRAY(uchar, dst),
                                                                        const int n) {
  START(src);
  START(dst);
  int all = 1;
  for (int i = 0; i < n; ++i) all &= src[i];
  dst[0] = (uchar)all;
}
