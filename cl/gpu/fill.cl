// Arrays made of nothing but scalars. dst [n]; geometry: over_elements(n).
// Program: core

__kernel void fill_real(ARRAY(stored, dst), const long n, const real value) {
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; ++i) STORE(value, dst + i);
}

// The low bits of `value`.
__kernel void fill_i32(ARRAY(int, dst), const long n, const ulong value) {
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; ++i) dst[i] = (int)(uint)value;
}

__kernel void fill_u8(ARRAY(uchar, dst), const long n, const ulong value) {
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; ++i) dst[i] = (uchar)value;
}

// dst[i] = start + i * step
__kernel void fill_arange(ARRAY(stored, dst), const long n, const real start, const real step) {
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; ++i) STORE(FMA((real)i, step, start), dst + i);
}

__kernel void fill_arange_i32(ARRAY(int, dst), const long n, const ulong start, const ulong step) {
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; ++i) dst[i] = (int)(uint)(start + (ulong)i * step);
}
