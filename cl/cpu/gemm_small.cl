// Matrix products of a CPU device for which gemm.cl's panels cost more than they save: one row times a matrix, which is
// read once as it lies, and many products of a few rows and columns, several of which are one group's work.
// Program: core
#include "cpu/gemm_pack.clh"
#include "shared/gemm.clh"

// Vectors of columns of gemm_small_row that are summed at a time, at most and where these are too many: the longer the
// pieces of B's lines, the nearer to the bandwidth.
#define GEMM_ROW_VECTORS 32
#define GEMM_ROW_FEW 8
#define GEMM_ROW_AHEAD 2  // lines of B that are asked for before they are used
#define GEMM_TINY_COLUMNS 8
#define GEMM_TINY_DEPTH 64

// C (1 x COLS vectors) = a (1 x k, a_col apart) * B, contiguous along a line; sums run over k in blocks of GEMM_KC.
#define GEMM_ROW(name, COLS)                                                                                 \
  SB_APART void name(__global const stored* a, const long a_col, __global const stored* b, const long b_row, \
                     const int k, real* sums) {                                                              \
    vreal acc[COLS];                                                                                         \
    for (int p0 = 0; p0 < k; p0 += GEMM_KC) {                                                                \
      const int end = min(k, p0 + GEMM_KC);                                                                  \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[j] = (vreal)(0);                                  \
      for (int p = p0; p < end; ++p, a += a_col, b += b_row) {                                               \
        const vreal value = (vreal)(LOAD(a));                                                                \
        _Pragma("unroll") for (int j = 0; j < COLS; ++j) {                                                   \
          GEMM_ASK(b + GEMM_ROW_AHEAD * b_row + j * VW);                                                     \
          acc[j] = FMA(value, VLOAD(b + j * VW), acc[j]);                                                    \
        }                                                                                                    \
      }                                                                                                      \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j)                                                       \
          VSTORE(p0 > 0 ? VLOAD(sums + j * VW) + acc[j] : acc[j], sums + j * VW);                            \
    }                                                                                                        \
  }
GEMM_ROW(gemm_row_wide, GEMM_ROW_VECTORS)
GEMM_ROW(gemm_row_few, GEMM_ROW_FEW)
GEMM_ROW(gemm_row_narrow, 1)
#undef GEMM_ROW

// C[z] (1 x n, dense) = A[z] * B[z] with the epilogue of `flags` as in gemm: A(p) = a[p*a_col], B(p,j) = b[p*b_row +
// j]. Groups: x = ceil(n / columns_per_group), which is GEMM_ROW_VECTORS * VW at most; z = batch. A value does not
// depend on the groups.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_small_row(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), const gemm_sizes s, const int columns_per_group, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  GEMM_NAMES(s);
  const int z = get_group_id(2), outer = z / batch_inner, inner = z - outer * batch_inner;
  a += outer * a_outer + inner * a_inner;
  b += outer * b_outer + inner * b_inner;
  c += (long)z * n;
  residual += (long)z * n;
  const int first = (int)get_group_id(0) * columns_per_group, last = min(n, first + columns_per_group);
  real sums[GEMM_ROW_VECTORS * VW] __attribute__((aligned(64)));
  int j = first;
  for (; j + GEMM_ROW_VECTORS * VW <= last; j += GEMM_ROW_VECTORS * VW)
    gemm_row_wide(a, a_col, b + j, b_row, k, sums + j - first);
  for (; j + GEMM_ROW_FEW * VW <= last; j += GEMM_ROW_FEW * VW)
    gemm_row_few(a, a_col, b + j, b_row, k, sums + j - first);
  for (; j + VW <= last; j += VW) gemm_row_narrow(a, a_col, b + j, b_row, k, sums + j - first);
  for (; j < last; ++j) {
    real all = 0;
    for (int p0 = 0; p0 < k; p0 += GEMM_KC) {
      real sum = 0;
      for (int p = p0; p < min(k, p0 + GEMM_KC); ++p) sum = FMA(LOAD(a + p * a_col), LOAD(b + p * b_row + j), sum);
      all += sum;
    }
    sums[j - first] = all;
  }
  for (j = first; j < last; ++j) STORE(gemm_finish(sums[j - first], c + j, bias + j, residual + j, flags), c + j);
}

// C[z] (m x n, dense) = A[z] * B[z] with the epilogue of `flags` as in gemm, any strides, n at most GEMM_TINY_COLUMNS,
// k at most GEMM_TINY_DEPTH. B is copied to lines of GEMM_TINY_COLUMNS. Groups: x = batch / products_per_group.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_small_batch(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), const gemm_sizes s, const int batch, const int products_per_group, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  GEMM_NAMES(s);
  const int first = (int)get_group_id(0) * products_per_group, last = min(batch, first + products_per_group);
  real panel[GEMM_TINY_COLUMNS * GEMM_TINY_DEPTH] __attribute__((aligned(64)));
  real out[GEMM_TINY_COLUMNS] __attribute__((aligned(64)));
  for (int i = 0; i < GEMM_TINY_COLUMNS * k; ++i) panel[i] = 0;
  for (int z = first; z < last; ++z) {
    const int outer = z / batch_inner, inner = z - outer * batch_inner;
    __global const stored *from_a = a + outer * a_outer + inner * a_inner,
                          *from_b = b + outer * b_outer + inner * b_inner;
    __global stored* to = c + (long)z * m * n;
    __global const stored* more = residual + (long)z * m * n;
#ifndef SAMEBYTES_STORE_16
    if (n == 8 && b_col == 1) {
      for (int p = 0; p < k; ++p) *(SB_REAL(8)*)(panel + p * GEMM_TINY_COLUMNS) = vload8(0, from_b + p * b_row);
    } else
#endif
    {
      for (int p = 0; p < k; ++p) {
        for (int j = 0; j < n; ++j) panel[p * GEMM_TINY_COLUMNS + j] = LOAD(from_b + p * b_row + j * b_col);
      }
    }
    for (int i = 0; i < m; ++i) {
      SB_REAL(8) sum = 0;
      for (int p = 0; p < k; ++p)
        sum = FMA((SB_REAL(8))(LOAD(from_a + i * a_row + p * a_col)),
                  *(const SB_REAL(8)*)(panel + p * GEMM_TINY_COLUMNS), sum);
#ifndef SAMEBYTES_STORE_16
      if (n == 8 && flags == 0) {
        vstore8(sum, i, to);
        continue;
      }
#endif
      *(SB_REAL(8)*)out = sum;
      for (int j = 0; j < n; ++j)
        STORE(gemm_finish(out[j], to + i * n + j, bias + j, more + i * n + j, flags), to + i * n + j);
    }
  }
}
