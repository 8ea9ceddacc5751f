// What the kernels of matrix products (gemm, gemm_small) and the code that launches them (engine/ops/gemm.cpp) both
// say: the problem, flags, and how a product is shared. Read by C++ and by OpenCL C, so that it is written once.
#ifdef __cplusplus
#pragma once

#include <cstdint>

namespace samebytes::detail {
typedef std::int64_t gemm_stride;
#else
typedef long gemm_stride;
#endif

// C[z] (m x n, dense) = A[z] (m x k) * B[z] (k x n): A(i,p) = a[i*a_row + p*a_col], B(p,j) = b[p*b_row + j*b_col].
// z = outer*inner + i, i < inner, picks the matrices by the strides of the two batch axes.
typedef struct {
  gemm_stride a_row, a_col, b_row, b_col;
  gemm_stride a_outer, a_inner, b_outer, b_inner;
  int m, n, k, inner;
} gemm_sizes;

// The epilogue, in this order: + what c holds, + bias [n], + residual (as c), ReLU, ReLU6 or hard swish (of a
// result of 16 bits, as it is stored), which NaN passes. GEMM_DIRECT_A: a CPU device reads rows of A in place.
// GEMM_PANELS_B: B lies in panels (gemm_panels), which it multiplies where they lie.
enum {
  GEMM_ACCUMULATE = 1,
  GEMM_BIAS = 2,
  GEMM_RELU = 4,
  GEMM_RESIDUAL = 8,
  GEMM_DIRECT_A = 16,
  GEMM_HARD_SWISH = 32,
  GEMM_PANELS_B = 64,
  GEMM_RELU6 = 128,
  GEMM_ACTIVATION = GEMM_HARD_SWISH | GEMM_RELU6
};

// The panels of a product in tiles of AMX (cl/cpu/gemm_amx.clh), the most of them that a group has, and the most k
// values of a block.
enum {
  GEMM_AMX_ROWS = 32,
  GEMM_AMX_COLUMNS = 32,
  GEMM_AMX_ROW_PANELS = 16,
  GEMM_AMX_COLUMN_PANELS = 8,
  GEMM_AMX_KC = 512
};

// How a CPU device shares a product: the panels of rows and columns are dealt evenly to the tiles; a split sums split_k
// values of k. gemm_dot deals fours of rows and columns.
typedef struct {
  int row_tiles, column_tiles, split_k;
} gemm_shares;

// How a GPU does: tiles of 64 x 64, the column tile fastest.
typedef struct {
  int column_tiles, split_k;
} gemm_strips;

// The rows and columns of gemm_dot, dealt evenly in fours to groups, column tile fastest.
typedef struct {
  int row_tiles, column_tiles;
} gemm_dot_tiles;

#ifdef __cplusplus
}  // namespace samebytes::detail
#else
// The short names of the sizes.
#define GEMM_NAMES(s)                                                            \
  const int m = s.m, n = s.n, k = s.k, batch_inner = s.inner;                    \
  const long a_row = s.a_row, a_col = s.a_col, b_row = s.b_row, b_col = s.b_col; \
  const long a_outer = s.a_outer, a_inner = s.a_inner, b_outer = s.b_outer, b_inner = s.b_inner
#endif
