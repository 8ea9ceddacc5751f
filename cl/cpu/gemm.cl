// Matrix product of a CPU device: C[z] (m x n) = A[z] (m x k) * B[z] (k x n), any strides, two batch axes.
//
//   gemm: a group computes a tile of C                                  what lies where
//     for a block of at most GEMM_KC values of k:
//       for a panel of GEMM_MR rows of A:                               first-level cache, in place or packed
//         for a panel of GEMM_NR columns of B:                          second-level cache, packed by the first row
//         panel
//           a register tile: GEMM_MR x GEMM_COLS vectors, all of k      registers                     gemm_tile.clh
//           add it to the sums, finish them with the last block         C, or private memory          gemm_store.clh
//
// Why it is fast. The first row panel packs B into private memory (panels [k][GEMM_NR]), a panel just before or while
// it is used: where the columns of B lie side by side the register tile reads them in place and stores what it has
// read, which costs next to nothing; where they do not, a panel is transposed while it waits in the second-level cache,
// for some of whose lines the tile before has asked. The other row panels take the packed panels: a row panel of A
// stays in the first-level cache while the panels of B come from the second. A is read in place (GEMM_DIRECT_A), which
// is free because a row panel's lines are reused; where its rows are a multiple of 4 KiB apart, and would fall into the
// same cache sets, or its values along k 1 KiB or more, and two lines for each would not fit the first-level cache, a
// row panel is packed, too, just before its use ([k][GEMM_A_PITCH]). Every tile first asks for its lines of C. Sums run
// over k in ascending order, in equal blocks that follow from k alone: results depend neither on the tiles nor on the
// number of threads. 16-bit operands are widened as they are packed, A always, and a sum of several blocks stands in
// private memory until it is rounded. Where the CPU multiplies pairs of bf16 in an instruction, they are packed as
// pairs along k instead (gemm_pack.clh); where it multiplies tiles of them, a group is that of gemm_amx.clh.
//
// gemm_panels.cl packs all of a B that many products read, once: with GEMM_PANELS_B they multiply its panels where they
// lie.
//
// gemm_dot: both operands are contiguous along k and one of them has few lines; nothing is packed.
// Program: core
#include "cpu/gemm_group.clh"
#ifdef SAMEBYTES_BF16_TILES
#include "cpu/gemm_amx.clh"
#endif

// The product of gemm_product, of one group. Accumulates in `real`.
SB_APART void gemm_of_group(SB_AT(const stored, a), SB_AT(const stored, b), SB_AT(const real, bias),
                            SB_AT(const stored, residual), SB_AT(stored, c), SB_AT(real, part), const gemm_sizes s,
                            const gemm_shares share, const int flags, const int tile, const int split, const int z,
                            const int batches) {
#ifdef SAMEBYTES_BF16_TILES
  gemm_amx_product(a, b, bias, residual, c, part, s, share, flags, tile, split, z, batches);
#else
  const quantised_rows none = {0, 0, 0};
  gemm_product(a, b, bias, residual, c, part, s, share, flags, 0, none, tile, split, z, batches);
#endif
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm(ARRAY(const stored, a), ARRAY(const stored, b),
                                                                  ARRAY(const real, bias),
                                                                  ARRAY(const stored, residual), ARRAY(stored, c),
                                                                  ARRAY(real, part), const gemm_sizes s,
                                                                  const gemm_shares share, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  START(part);
  gemm_of_group(a, b, bias, residual, c, part, s, share, flags, get_group_id(0), get_group_id(1), get_group_id(2),
                get_num_groups(2));
}

// The last `left` (1 to VW - 1) values of a line of k, zeros in the other lanes; p points at the first of them.
static vreal gemm_dot_tail(__global const stored* p, const int left, const int k) {
  if (k >= VW) return select((vreal)(0), VLOAD(p + left - VW), SB_LANES >= (vmask)(VW - left));
  real padded[VW];
  for (int i = 0; i < VW; ++i) padded[i] = i < left ? LOAD(p + i) : 0;
  return VLOAD(padded);
}

// sums[i][j] = the product of line i of a and line j of b, ROWS x COLS of them, vector by vector.
#define GEMM_DOT(name, ROWS, COLS)                                                                           \
  SB_APART void name(__global const stored* a, const long a_row, __global const stored* b, const long b_col, \
                     const int k, real* sums) {                                                              \
    enum { rows_ = ROWS, cols_ = COLS };                                                                     \
    vreal acc[ROWS][COLS], u[ROWS], v[COLS];                                                                 \
    GEMM_TILE(i, j, acc[i][j] = (vreal)(0))                                                                  \
    int p = 0;                                                                                               \
    for (; p + VW <= k; p += VW) {                                                                           \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) u[i] = VLOAD(a + i * a_row + p);                      \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) v[j] = VLOAD(b + j * b_col + p);                      \
      GEMM_TILE(i, j, acc[i][j] = FMA(u[i], v[j], acc[i][j]))                                                \
    }                                                                                                        \
    if (p < k) {                                                                                             \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) u[i] = gemm_dot_tail(a + i * a_row + p, k - p, k);    \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) v[j] = gemm_dot_tail(b + j * b_col + p, k - p, k);    \
      GEMM_TILE(i, j, acc[i][j] = FMA(u[i], v[j], acc[i][j]))                                                \
    }                                                                                                        \
    GEMM_TILE(i, j, sums[i * COLS + j] = sb_sum(acc[i][j]))                                                  \
  }
GEMM_DOT(gemm_dot_4x4, 4, 4)
GEMM_DOT(gemm_dot_4x1, 4, 1)
GEMM_DOT(gemm_dot_1x4, 1, 4)
GEMM_DOT(gemm_dot_1x1, 1, 1)

// C[z] (m x n, dense) = A[z] * B[z] with the epilogue of `flags` as in gemm, for few rows or few columns of operands
// that are contiguous along k: A(i,p) = a[i*a_row + p], B(p,j) = b[p + j*b_col]. Every weight is read once from memory,
// and nothing is packed. Groups: x = row_tiles*column_tiles, column tile fastest, rows and columns are dealt evenly in
// fours; z = batch. A sum has VW partial sums, added up in pairs at the end.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_dot(ARRAY(const stored, a), ARRAY(const stored, b),
                                                                      ARRAY(const real, bias),
                                                                      ARRAY(const stored, residual), ARRAY(stored, c),
                                                                      const gemm_sizes s, const gemm_dot_tiles tiles,
                                                                      const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  GEMM_NAMES(s);
  const int row_tiles = tiles.row_tiles, column_tiles = tiles.column_tiles, z = get_group_id(2);
  const long row_tile = (int)get_group_id(0) / column_tiles, column_tile = get_group_id(0) - row_tile * column_tiles;
  const long row_fours = ((long)m + 3) / 4, column_fours = ((long)n + 3) / 4;
  const int row0 = (int)(row_fours * row_tile / row_tiles) * 4;
  const int row1 = (int)min((long)m, row_fours * (row_tile + 1) / row_tiles * 4);
  const int col0 = (int)(column_fours * column_tile / column_tiles) * 4;
  const int col1 = (int)min((long)n, column_fours * (column_tile + 1) / column_tiles * 4);
  const int outer = z / batch_inner, inner = z - outer * batch_inner;
  a += outer * a_outer + inner * a_inner;
  b += outer * b_outer + inner * b_inner;
  c += (long)z * m * n;
  residual += (long)z * m * n;
  for (int j = col0; j < col1;) {
    const int cols = col1 - j >= 4 ? 4 : 1;
    for (int i = row0; i < row1;) {
      const int rows = row1 - i >= 4 ? 4 : 1;
      __global const stored *from_a = a + i * a_row, *from_b = b + j * b_col;
      real sums[16];
      if (rows == 4 && cols == 4)
        gemm_dot_4x4(from_a, a_row, from_b, b_col, k, sums);
      else if (rows == 4)
        gemm_dot_4x1(from_a, a_row, from_b, b_col, k, sums);
      else if (cols == 4)
        gemm_dot_1x4(from_a, a_row, from_b, b_col, k, sums);
      else
        gemm_dot_1x1(from_a, a_row, from_b, b_col, k, sums);
      for (int r = 0; r < rows; ++r) {
        for (int s = 0; s < cols; ++s) {
          const long at = (long)(i + r) * n + j + s;
          STORE(gemm_finish(sums[r * cols + s], c + at, bias + j + s, residual + at, flags), c + at);
        }
      }
      i += rows;
    }
    j += cols;
  }
}

// c[i] = epilogue(sum over s, ascending, of part[s*total + i]); total = batch*m*n, bias [n] by i mod n, residual
// [total]. Groups: x = ceil(total/GEMM_REDUCE_BLOCK).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_reduce(
    ARRAY(const real, part), ARRAY(const real, bias), ARRAY(const stored, residual), ARRAY(stored, c), const int n,
    const long total, const int splits, const int flags) {
  START(part);
  START(bias);
  START(residual);
  START(c);
  const long begin = (long)get_group_id(0) * GEMM_REDUCE_BLOCK, end = min(total, begin + GEMM_REDUCE_BLOCK);
  // Piece by piece of rows where there is a bias, so that it is read as vectors, too.
  const int width = flags & GEMM_BIAS ? n : GEMM_REDUCE_BLOCK;
  int column = flags & GEMM_BIAS ? (int)(begin % n) : 0;
  for (long i = begin; i < end; column = 0) {
    const long stop = min(end, i + width - column);
    __global const real* add = bias + column - i;
    for (; i + VW <= stop; i += VW) {
      vreal v = VLOAD(part + i);
      for (int s = 1; s < splits; ++s) v += VLOAD(part + s * total + i);
      if (flags & GEMM_ACCUMULATE) v += VLOAD(c + i);
      if (flags & GEMM_BIAS) v += VLOAD(add + i);
      if (flags & GEMM_RESIDUAL) v = VROUND(v) + VLOAD(residual + i);
      if (flags & GEMM_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      if (flags & GEMM_ACTIVATION) v = sb_activated(VROUND(v), flags & GEMM_RELU6);
      VSTORE(v, c + i);
    }
    for (; i < stop; ++i) {
      real v = part[i];
      for (int s = 1; s < splits; ++s) v += part[s * total + i];
      STORE(gemm_finish(v, c + i, add + i, residual + i, flags), c + i);
    }
  }
}
