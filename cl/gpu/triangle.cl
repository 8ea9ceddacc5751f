// Triangles of matrices, moved as bits, one family for all types of a size: dst [matrices, rows, columns] is src on one
// side of a diagonal and 0 on the other.

// A row r keeps its columns from r + diagonal on or, where is_lower is set, those before it. Geometry: over_rows, a
// group for rows_per_group (a power of two) of all `lines` = matrices * rows, its items shared equally among them.
#define TRIANGLE(bits, T)                                                                                       \
  __kernel void SB_JOIN(triangle_, bits)(ARRAY(const T, src), ARRAY(T, dst), const long lines, const long rows, \
                                         const long columns, const long diagonal, const int is_lower,           \
                                         const int rows_per_group) {                                            \
    START(src);                                                                                                 \
    START(dst);                                                                                                 \
    const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);       \
    const long line = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;                         \
    if (line >= lines) return;                                                                                  \
    const long edge = line % rows + diagonal;                                                                   \
    for (long i = lane; i < columns; i += lanes)                                                                \
      dst[line * columns + i] = (i < edge) == (is_lower != 0) ? src[line * columns + i] : 0;                    \
  }

TRIANGLE(8, uchar)
TRIANGLE(16, ushort)
TRIANGLE(32, uint)
TRIANGLE(64, ulong)
#undef TRIANGLE
