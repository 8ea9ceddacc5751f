// Arrays made of nothing but scalars. dst [n]; geometry: over_elements(n).
// Program: core

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void fill_real(ARRAY(stored, dst), const long n,
                                                                       const real value) {
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; i += VW) sb_store((vreal)(value), dst + i, end - i);
}

// The low bits of `value`.
#define FILL_WHOLE(SUFFIX, T, U)                                                       \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(fill_, SUFFIX)( \
      ARRAY(T, dst), const long n, const ulong value) {                                \
    START(dst);                                                                        \
    const long end = SB_END(n);                                                        \
    for (long i = SB_BEGIN(n); i < end; ++i) dst[i] = (T)(U)value;                     \
  }
FILL_WHOLE(i32, int, uint)
FILL_WHOLE(i64, long, ulong)
FILL_WHOLE(u8, uchar, uchar)

// dst[i] = start + i * step
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void fill_arange(ARRAY(stored, dst), const long n,
                                                                         const real start, const real step) {
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; ++i) STORE(FMA((real)i, step, start), dst + i);
}

#define FILL_WHOLE_ARANGE(SUFFIX, T, U)                                                       \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(fill_arange_, SUFFIX)( \
      ARRAY(T, dst), const long n, const ulong start, const ulong step) {                     \
    START(dst);                                                                               \
    const long end = SB_END(n);                                                               \
    for (long i = SB_BEGIN(n); i < end; ++i) dst[i] = (T)(U)(start + (ulong)i * step);        \
  }
FILL_WHOLE_ARANGE(i32, int, uint)
FILL_WHOLE_ARANGE(i64, long, ulong)
#undef FILL_WHOLE
#undef FILL_WHOLE_ARANGE
