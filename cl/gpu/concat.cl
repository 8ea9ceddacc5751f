// concat: rows of one array into its columns of the result. src [rows, width] -> dst [rows, dst_stride] from column
// `start` on. Elements are moved as bits, so one entry serves all types of a size. Geometry: over_elements(rows *
// width).
// Program: transformer

#define CONCAT_BODY(T)                   \
  START(src);                            \
  START(dst);                            \
  const long end = SB_END(rows * width); \
  for (long i = SB_BEGIN(rows * width); i < end; ++i) dst[i / width * dst_stride + start + i % width] = src[i];

__kernel void concat_rows_8(ARRAY(const uchar, src), ARRAY(uchar, dst), const long rows, const long width,
                            const long dst_stride, const long start){CONCAT_BODY(uchar)}

__kernel void concat_rows_16(ARRAY(const ushort, src), ARRAY(ushort, dst), const long rows, const long width,
                             const long dst_stride, const long start){CONCAT_BODY(ushort)}

__kernel void concat_rows_32(ARRAY(const uint, src), ARRAY(uint, dst), const long rows, const long width,
                             const long dst_stride, const long start){CONCAT_BODY(uint)}

__kernel void concat_rows_64(ARRAY(const ulong, src), ARRAY(ulong, dst), const long rows, const long width,
                             const long dst_stride, const long start) {
  CONCAT_BODY(ulong)
}

#undef CONCAT_BODY
