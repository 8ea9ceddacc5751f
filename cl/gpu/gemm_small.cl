// Matrix products of a GPU for which gemm.cl's tiles of 64 x 64 are too large: one row times a matrix, and many
// products of a few rows and columns. A work-item makes one value.
// Program: core
#include "shared/gemm.clh"

#define GEMM_ROW_ITEMS 64  // columns of a group of gemm_small_row, values of one of gemm_small_batch
#define GEMM_TINY_COLUMNS 8
#define GEMM_TINY_DEPTH 64

// C[z] (1 x n, dense) = A[z] * B[z] with the epilogue of `flags` as in gemm: A(p) = a[p*a_col], B(p,j) = b[p*b_row +
// j]. Groups: x = ceil(n / GEMM_ROW_ITEMS); z = batch.
__kernel __attribute__((reqd_work_group_size(GEMM_ROW_ITEMS, 1, 1))) void gemm_small_row(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), const gemm_sizes s, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  GEMM_NAMES(s);
  const int j = get_global_id(0);
  const long z = get_group_id(2);
  if (j >= n) return;
  a += z / batch_inner * a_outer + z % batch_inner * a_inner;
  b += z / batch_inner * b_outer + z % batch_inner * b_inner + j;
  real sum = 0;
  for (int p = 0; p < k; ++p) sum = FMA(LOAD(a + p * a_col), LOAD(b + p * b_row), sum);
  STORE(gemm_finish(sum, c + z * n + j, bias + j, residual + z * n + j, flags), c + z * n + j);
}

// C[z] (m x n, dense) = A[z] * B[z] with the epilogue of `flags` as in gemm, any strides. Groups: x = ceil(batch*m*n /
// GEMM_ROW_ITEMS).
__kernel __attribute__((reqd_work_group_size(GEMM_ROW_ITEMS, 1, 1))) void gemm_small_batch(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), const gemm_sizes s, const int batch, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  GEMM_NAMES(s);
  const long at = get_global_id(0);
  if (at >= (long)batch * m * n) return;
  const long z = at / ((long)m * n), i = at / n % m, j = at % n;
  a += z / batch_inner * a_outer + z % batch_inner * a_inner + i * a_row;
  b += z / batch_inner * b_outer + z % batch_inner * b_inner + j * b_col;
  real sum = 0;
  for (int p = 0; p < k; ++p) sum = FMA(LOAD(a + p * a_col), LOAD(b + p * b_row), sum);
  STORE(gemm_finish(sum, c + at, bias + j, residual + at, flags), c + at);
}
