// Triangles of matrices, moved as bits, one family for all types of a size: dst [matrices, rows, columns] is src on one
// side of a diagonal and 0 on the other. What becomes 0 is not read.

// A row r keeps its columns from r + diagonal on or, where is_lower is set, those before it. Geometry: over_rows,
// rows_per_group of all `lines` = matrices * rows each.
#define TRIANGLE(bits, T)                                                                                             \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(triangle_, bits)(                              \
      ARRAY(const T, src), ARRAY(T, dst), const long lines, const long rows, const long columns, const long diagonal, \
      const int is_lower, const int rows_per_group) {                                                                 \
    START(src);                                                                                                       \
    START(dst);                                                                                                       \
    const long first = (long)get_group_id(0) * rows_per_group, end = min(lines, first + rows_per_group);              \
    long row = first % rows;                                                                                          \
    for (long line = first; line < end; ++line) {                                                                     \
      const long edge = clamp(row + diagonal, 0L, columns);                                                           \
      const long begin = is_lower ? 0 : edge, stop = is_lower ? edge : columns;                                       \
      const __global T* from = src + line * columns;                                                                  \
      __global T* to = dst + line * columns;                                                                          \
      for (long i = 0; i < begin; ++i) to[i] = 0;                                                                     \
      long i = begin;                                                                                                 \
      for (; i + 16 <= stop; i += 16) sb_store16(sb_load16(from + i), to + i);                                        \
      for (; i < stop; ++i) to[i] = from[i];                                                                          \
      for (i = stop; i < columns; ++i) to[i] = 0;                                                                     \
      if (++row == rows) row = 0;                                                                                     \
    }                                                                                                                 \
  }

TRIANGLE(8, uchar)
TRIANGLE(16, ushort)
TRIANGLE(32, uint)
TRIANGLE(64, ulong)
#undef TRIANGLE
