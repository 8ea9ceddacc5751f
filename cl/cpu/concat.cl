// concat: rows of one array into its columns of the result. src [rows, width] -> dst [rows, dst_stride] from column
// `start` on. Elements are moved as bits, so one entry serves all types of a size. Geometry: over_elements(rows *
// width).
// Program: transformer

#define CONCAT_BODY(T)                                                      \
  START(src);                                                               \
  START(dst);                                                               \
  const long end = SB_END(rows * width);                                    \
  long i = SB_BEGIN(rows * width);                                          \
  const long row = i / width;                                               \
  long column = i - row * width;                                            \
  __global T* line = dst + row * dst_stride + start;                        \
  if (width == 1)                                                           \
    for (; i < end; ++i, line += dst_stride) line[0] = src[i];              \
  for (; i < end; line += dst_stride) {                                     \
    const long n = min(width - column, end - i);                            \
    const __global T* from = src + i;                                       \
    __global T* to = line + column;                                         \
    long k = 0;                                                             \
    for (; k + 16 <= n; k += 16) sb_store16(sb_load16(from + k), to + k);   \
    for (; k < n; ++k) to[k] = from[k];                                     \
    i += n;                                                                 \
    column = 0;                                                             \
  }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void concat_rows_8(ARRAY(const uchar, src), ARRAY(uchar, dst),
                                                                           const long rows, const long width,
                                                                           const long dst_stride,
                                                                           const long start){CONCAT_BODY(uchar)}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void concat_rows_16(ARRAY(const ushort, src),
                                                                            ARRAY(ushort, dst), const long rows,
                                                                            const long width, const long dst_stride,
                                                                            const long start){CONCAT_BODY(ushort)}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void concat_rows_32(ARRAY(const uint, src), ARRAY(uint, dst),
                                                                            const long rows, const long width,
                                                                            const long dst_stride,
                                                                            const long start){CONCAT_BODY(uint)}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void concat_rows_64(ARRAY(const ulong, src), ARRAY(ulong, dst),
                                                                            const long rows, const long width,
                                                                            const long dst_stride, const long start) {
  CONCAT_BODY(ulong)
}

#undef CONCAT_BODY
