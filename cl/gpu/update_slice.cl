// src [outer, count] written into dst [outer, line] from element start * inner of each line on. A work-item takes one
// element of total = outer * count.
// Program: transformer
__kernel void update_slice(ARRAY(const real, src), ARRAY(real, dst), const long total, const long count,
                           const long line, const long inner, const long start) {
  START(src);
  START(dst);
  for (long i = SB_BEGIN(total); i < SB_END(total); ++i) {
    const long outer = i / count;
    dst[outer * line + start * inner + i - outer * count] = src[i];
  }
}
