// Matrix product of a GPU: groups of 16 x 16 work-items make a 64 x 64 tile of C, four by four values each, from tiles
// of A and B in local memory. Every work-item takes part in every load and barrier; what lies outside the matrices is
// zero.
// Program: core
#include "shared/gemm.clh"

#define GEMM_TILE_M 64
#define GEMM_TILE_N 64
#define GEMM_STEP 16           // k values in local memory at a time
#define GEMM_PITCH 65          // of a row in local memory; odd, so that a column's values lie in different banks
#define GEMM_DOT_ITEMS 64      // of a group of gemm_dot
#define GEMM_REDUCE_BLOCK 256  // values per group of gemm_reduce

// The values of a work-item for the step at p0, in gemm's names.
#define GEMM_NEXT(p0)                                                                      \
  _Pragma("unroll") for (int q = 0; q < 4; ++q) {                                          \
    const int p = (p0) + a_p + (a_deep ? 0 : 4 * q), i = i0 + a_i + (a_deep ? 16 * q : 0); \
    a_next[q] = p < end && i < m ? LOAD(a + i * a_row + p * a_col) : 0;                    \
  }                                                                                        \
  _Pragma("unroll") for (int q = 0; q < 4; ++q) {                                          \
    const int p = (p0) + b_p + (b_deep ? 0 : 4 * q), j = j0 + b_j + (b_deep ? 16 * q : 0); \
    b_next[q] = p < end && j < n ? LOAD(b + p * b_row + j * b_col) : 0;                    \
  }

// C[z] = A[z] * B[z] (shared/gemm.h) with the epilogue of `flags`, or where part is there, part[split][z] (as C) = the
// product over the split's part of k, without one. Groups: x = ceil(m/64)*ceil(n/64), tiles of 64 x 64, column tile
// fastest; y = splits; z = batch. Accumulates in `real`. A work-item holds rows ly + 16 r and columns lx + 16 s,
// so neighbours write neighbours.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void gemm(ARRAY(const stored, a), ARRAY(const stored, b),
                                                                    ARRAY(const real, bias),
                                                                    ARRAY(const stored, residual), ARRAY(stored, c),
                                                                    ARRAY(real, part), const gemm_sizes s,
                                                                    const gemm_strips share, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  START(part);
  GEMM_NAMES(s);
  const int column_tiles = share.column_tiles, split_k = share.split_k, is_part = part != 0;
  __local real a_tile[GEMM_STEP * GEMM_PITCH];
  __local real b_tile[GEMM_STEP * GEMM_PITCH];
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int i0 = (int)(get_group_id(0) / column_tiles) * GEMM_TILE_M;
  const int j0 = (int)(get_group_id(0) % column_tiles) * GEMM_TILE_N;
  const int begin = (int)get_group_id(1) * split_k, end = min(k, begin + split_k);
  const long z = get_group_id(2);
  a += z / batch_inner * a_outer + z % batch_inner * a_inner;
  b += z / batch_inner * b_outer + z % batch_inner * b_inner;
  c += z * m * n;
  part += ((long)get_group_id(1) * get_num_groups(2) + z) * m * n;
  residual += z * m * n;
  // Work-items that are neighbours load along the axis that is contiguous: 16 x 16 with k fastest, or 64 x 4 with k
  // slowest.
  const int a_deep = a_col == 1, b_deep = b_row == 1 && b_col != 1;
  const int a_p = a_deep ? item % 16 : item / 64, a_i = a_deep ? item / 16 : item % 64;
  const int b_p = b_deep ? item % 16 : item / 64, b_j = b_deep ? item / 16 : item % 64;

  real acc[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int s = 0; s < 4; ++s) acc[r][s] = 0;
  }
  real a_next[4], b_next[4];  // the next step's values, on their way while this one's are multiplied
  GEMM_NEXT(begin)
  for (int p0 = begin; p0 < end; p0 += GEMM_STEP) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      a_tile[(a_p + (a_deep ? 0 : 4 * q)) * GEMM_PITCH + a_i + (a_deep ? 16 * q : 0)] = a_next[q];
      b_tile[(b_p + (b_deep ? 0 : 4 * q)) * GEMM_PITCH + b_j + (b_deep ? 16 * q : 0)] = b_next[q];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    GEMM_NEXT(p0 + GEMM_STEP)
#pragma unroll
    for (int p = 0; p < GEMM_STEP; ++p) {
      real av[4], bv[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) av[r] = a_tile[p * GEMM_PITCH + ly + 16 * r];
#pragma unroll
      for (int s = 0; s < 4; ++s) bv[s] = b_tile[p * GEMM_PITCH + lx + 16 * s];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int s = 0; s < 4; ++s) acc[r][s] = FMA(av[r], bv[s], acc[r][s]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i = i0 + ly + 16 * r;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const int j = j0 + lx + 16 * s;
      if (i < m && j < n) {
        const long at = (long)i * n + j;
        if (is_part)
          part[at] = acc[r][s];
        else
          STORE(gemm_finish(acc[r][s], c + at, bias + j, residual + at, flags), c + at);
      }
    }
  }
}

// C[z] (m x n, dense) = A[z] * B[z] with the epilogue of `flags` as in gemm, for few rows or few columns of operands
// that are contiguous along k: A(i,p) = a[i*a_row + p], B(p,j) = b[p + j*b_col]. Groups: x = row_tiles*column_tiles,
// column tile fastest, rows and columns are dealt evenly in fours; z = batch. The work-items of a group share each sum
// over k and add theirs up in pairs.
__kernel __attribute__((reqd_work_group_size(GEMM_DOT_ITEMS, 1, 1))) void gemm_dot(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), const gemm_sizes s, const gemm_dot_tiles tiles, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  GEMM_NAMES(s);
  const int row_tiles = tiles.row_tiles, column_tiles = tiles.column_tiles;
  __local real scratch[GEMM_DOT_ITEMS];
  const int item = get_local_id(0);
  const long z = get_group_id(2);
  const long row_tile = get_group_id(0) / column_tiles, column_tile = get_group_id(0) - row_tile * column_tiles;
  const long row_fours = ((long)m + 3) / 4, column_fours = ((long)n + 3) / 4;
  const int row0 = (int)(row_fours * row_tile / row_tiles) * 4;
  const int row1 = (int)min((long)m, row_fours * (row_tile + 1) / row_tiles * 4);
  const int col0 = (int)(column_fours * column_tile / column_tiles) * 4;
  const int col1 = (int)min((long)n, column_fours * (column_tile + 1) / column_tiles * 4);
  a += z / batch_inner * a_outer + z % batch_inner * a_inner;
  b += z / batch_inner * b_outer + z % batch_inner * b_inner;
  for (int j = col0; j < col1; ++j) {
    for (int i = row0; i < row1; ++i) {
      real sum = 0;
      for (int p = item; p < k; p += GEMM_DOT_ITEMS) sum = FMA(LOAD(a + i * a_row + p), LOAD(b + j * b_col + p), sum);
      sum = sb_lanes_sum(sum, scratch, GEMM_DOT_ITEMS);
      if (item == 0) {
        const long at = (z * m + i) * n + j;
        STORE(gemm_finish(sum, c + at, bias + j, residual + at, flags), c + at);
      }
    }
  }
}

// c[i] = epilogue of the sum over s, ascending, of part[s*total + i]; bias[i % n], residual[i]. Groups: x =
// ceil(total/256), one value per work-item.
__kernel __attribute__((reqd_work_group_size(GEMM_REDUCE_BLOCK, 1, 1))) void gemm_reduce(
    ARRAY(const real, part), ARRAY(const real, bias), ARRAY(const stored, residual), ARRAY(stored, c), const int n,
    const long total, const int splits, const int flags) {
  START(part);
  START(bias);
  START(residual);
  START(c);
  const long i = get_global_id(0);
  if (i < total) {
    real v = part[i];
    for (int s = 1; s < splits; ++s) v += part[s * total + i];
    STORE(gemm_finish(v, c + i, bias + i % n, residual + i, flags), c + i);
  }
}
