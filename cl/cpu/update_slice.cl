// src [outer, count] written into dst [outer, line] from element start * inner of each line on. A group takes a range of
// src (SB_BEGIN to SB_END of total = outer * count).
// Program: transformer
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void update_slice(ARRAY(const real, src), ARRAY(real, dst),
                                                                          const long total, const long count,
                                                                          const long line, const long inner,
                                                                          const long start) {
  START(src);
  START(dst);
  const long end = SB_END(total);
  for (long i = SB_BEGIN(total); i < end;) {
    const long outer = i / count, stop = min(end, (outer + 1) * count);
    __global real* to = dst + outer * line + start * inner - outer * count;
    for (; i + VW <= stop; i += VW) VSTORE(VLOAD(src + i), to + i);
    for (; i < stop; ++i) to[i] = src[i];
  }
}
