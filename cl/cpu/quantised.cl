// Products with a matrix of quantised rows (shared/quantised.h): the group of gemm.cl, whose panels of B are
// dequantised while they are packed. The first row panel of a group packs each panel once and the others use it, so
// that with some hundred rows of A a product takes as long as one in f32, and no wider copy of the matrix is ever in
// memory.
//
//   forward    B(p,j) = W[j,p]   k within rows: 16 rows are dequantised 16 values at a time and transposed in registers
//   gradient   B(p,j) = W[p,j]   k over rows: a panel's part of each row is dequantised where it belongs
//
// quantised_few sums a few rows of A, as a step of generation has them, in 16 lanes along the rows of W; its arrays are
// of f32 alone.
// Program: quantised
#define GEMM_PACK_BLOCKS(blocks, layout, k0, kc, j, n, packed) quantised_pack(blocks, layout, k0, kc, j, n, packed)
#include "cpu/quantised_unpack.clh"

static void quantised_pack(__global const uchar* blocks, const quantised_rows* layout, const int k0, const int kc,
                           const int j, const int n, real* packed);
#include "cpu/gemm_group.clh"

// Stores 16 values as reals, whole: vstore16 would store four parts, and the load behind it would wait for all.
#ifdef SAMEBYTES_F64
typedef double16 quantised_reals __attribute__((aligned(8)));
#define QUANTISED_REALS(v) convert_double16(v)
#else
typedef float16 quantised_reals __attribute__((aligned(4)));
#define QUANTISED_REALS(v) (v)
#endif
QUANTISED_INLINE void quantised_put(const float16 v, real* p) { *(quantised_reals*)p = QUANTISED_REALS(v); }

// One type: the compiler then has no question inside the loops.
QUANTISED_INLINE void quantised_pack_type(__global const uchar* blocks, const quantised_rows* layout, const int k0,
                                          const int kc, const int j, const int n, real* packed, const int type) {
  const long row_bytes = layout->row_bytes;
  if (layout->is_transposed) {
    for (int p = 0; p < kc; ++p) {
      __global const uchar* row = blocks + (k0 + p) * row_bytes;
      real values[QUANTISED_STEP];
#if GEMM_NR >= QUANTISED_STEP
      for (int l = 0; l < GEMM_NR && j + l < n; l += QUANTISED_STEP) {
        quantised_put(quantised_16(row, (j + l) / QUANTISED_STEP, type), values);
        for (int i = 0; i < QUANTISED_STEP; i += VW) VSTORE(VLOAD(values + i), packed + p * GEMM_NR + l + i);
      }
#else
      quantised_put(quantised_16(row, j / QUANTISED_STEP, type), values);
      for (int l = 0; l < GEMM_NR; l += VW) VSTORE(VLOAD(values + j % QUANTISED_STEP + l), packed + p * GEMM_NR + l);
#endif
    }
    return;
  }
  for (int l = 0; l < GEMM_NR; l += VW) {
    for (int p = 0; p < kc; p += 2 * QUANTISED_STEP) {
      const int pair = (k0 + p) / (2 * QUANTISED_STEP);
      real values[VW][2 * QUANTISED_STEP];
#pragma unroll
      for (int i = 0; i < VW; ++i) {
        __global const uchar* row = blocks + min(j + l + i, n - 1) * row_bytes;
        const quantised_pair v = quantised_32(row, pair, type);
        quantised_put(v.first * v.scale - v.least, values[i]);
        quantised_put(v.second * v.scale - v.least, values[i] + QUANTISED_STEP);
        // A line of the row that comes in its place next, for every second pair.
        if (pair % 2 == 0) GEMM_ASK(row + VW * row_bytes + pair * QUANTISED_PAIR_BYTES(type));
      }
      real* out = packed + p * GEMM_NR + l;
      for (int part = 0; part < 2 * QUANTISED_STEP; part += VW) {
        vreal r[VW];
#pragma unroll
        for (int i = 0; i < VW; ++i) r[i] = VLOAD(values[i] + part);
        sb_transpose(r);
#pragma unroll
        for (int i = 0; i < VW; ++i) {
          VSTORE(r[i], out);
          out += GEMM_NR;
          SB_HIDE(out);
        }
      }
    }
  }
}

// Packs the values k0 to k0 + kc - 1 of the columns from j on as [kc][GEMM_NR]; in place of columns beyond n is
// anything.
SB_APART void quantised_pack(__global const uchar* blocks, const quantised_rows* layout, const int k0, const int kc,
                             const int j, const int n, real* packed) {
#ifdef SAMEBYTES_F64
  quantised_pack_type(blocks, layout, k0, kc, j, n, packed, layout->type);  // rare: one text compiles faster than six
#else
#define QUANTISED_CASE(type)                                         \
  case type:                                                         \
    quantised_pack_type(blocks, layout, k0, kc, j, n, packed, type); \
    break
  switch (layout->type) {
    QUANTISED_CASE(QUANTISED_Q8_0);
    QUANTISED_CASE(QUANTISED_Q4_0);
    QUANTISED_CASE(QUANTISED_Q4_K);
    QUANTISED_CASE(QUANTISED_Q5_K);
    QUANTISED_CASE(QUANTISED_Q6_K);
    QUANTISED_CASE(QUANTISED_NF4);
  }
#endif
}

// c [m][n] = a [m][k] * B with the epilogue of `flags`, or part as gemm_product says.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void quantised_product(
    ARRAY(const stored, a), ARRAY(const uchar, blocks), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), ARRAY(real, part), const quantised_rows layout, const gemm_sizes s, const gemm_shares share,
    const int flags) {
  START(a);
  START(blocks);
  START(bias);
  START(residual);
  START(c);
  START(part);
  gemm_product(a, 0, bias, residual, c, part, s, share, flags, blocks, layout, get_group_id(0), get_group_id(1),
               get_group_id(2), get_num_groups(2));
}

// Of f32 alone (launch_gemm_quantised): others take panels.
#if !defined(SAMEBYTES_F64) && !defined(SAMEBYTES_STORE_16)
QUANTISED_INLINE float quantised_lanes(const float16 v) {
  const float8 eight = v.lo + v.hi;
  const float4 four = eight.lo + eight.hi;
  const float2 two = four.lo + four.hi;
  return two.x + two.y;
}

// c [rows i0 to i0 + ROWS - 1][columns j to j + COLUMNS - 1]; rows and columns beyond the last are the last once more.
// A lane's sum runs over k, so a value depends on its own row and column alone. Rows lie one behind the other, so the
// lines of the next columns are asked for while these are summed: a row alone is too short for the CPU to see a stream.
#define QUANTISED_FEW(name, ROWS, COLUMNS)                                                                            \
  QUANTISED_INLINE void name(__global const float* a, const long a_row, __global const uchar* blocks,                 \
                             const quantised_rows layout, __global const float* bias, __global const float* residual, \
                             __global float* c, const int m, const int n, const int k, const int i0, const int j,     \
                             const int flags, const int type) {                                                       \
    __global const float* x[ROWS];                                                                                    \
    __global const uchar* w[COLUMNS];                                                                                 \
    float16 sums[ROWS][COLUMNS];                                                                                      \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) x[i] = a + min(i0 + i, m - 1) * a_row;                           \
    _Pragma("unroll") for (int r = 0; r < COLUMNS; ++r) w[r] = blocks + min(j + r, n - 1) * (long)layout.row_bytes;   \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                                \
      _Pragma("unroll") for (int r = 0; r < COLUMNS; ++r) sums[i][r] = (float16)(0);                                  \
    }                                                                                                                 \
    const int turn = COLUMNS * QUANTISED_PAIR_BYTES(type);                                                            \
    __global const uchar* next = blocks + (j + COLUMNS) * (long)layout.row_bytes;                                     \
    for (int pair = 0; pair < k / (2 * QUANTISED_STEP); ++pair, next += turn) {                                       \
      GEMM_ASK(next);                                                                                                 \
      GEMM_ASK(next + 64);                                                                                            \
      if (turn > 128) GEMM_ASK(next + 128);                                                                           \
      quantised_pair v[COLUMNS];                                                                                      \
      _Pragma("unroll") for (int r = 0; r < COLUMNS; ++r) v[r] = quantised_32(w[r], pair, type);                      \
      _Pragma("unroll") for (int r = 0; r < COLUMNS; ++r) {                                                           \
        v[r].first = v[r].first * v[r].scale - v[r].least;                                                            \
        v[r].second = v[r].second * v[r].scale - v[r].least;                                                          \
      }                                                                                                               \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                              \
        const float16 first = vload16(2 * pair, x[i]), second = vload16(2 * pair + 1, x[i]);                          \
        _Pragma("unroll") for (int r = 0; r < COLUMNS; ++r) sums[i][r] =                                              \
            fma(v[r].second, second, fma(v[r].first, first, sums[i][r]));                                             \
      }                                                                                                               \
    }                                                                                                                 \
    for (int i = 0; i < ROWS && i0 + i < m; ++i) {                                                                    \
      for (int r = 0; r < COLUMNS && j + r < n; ++r) {                                                                \
        const long at = (long)(i0 + i) * n + j + r;                                                                   \
        c[at] = gemm_finish(quantised_lanes(sums[i][r]), c + at, bias + j + r, residual + at, flags);                 \
      }                                                                                                               \
    }                                                                                                                 \
  }
#define QUANTISED_ONE_COLUMNS 4
#define QUANTISED_SOME_ROWS 4
#define QUANTISED_SOME_COLUMNS 2
QUANTISED_FEW(quantised_one, 1, QUANTISED_ONE_COLUMNS)
QUANTISED_FEW(quantised_some, QUANTISED_SOME_ROWS, QUANTISED_SOME_COLUMNS)

QUANTISED_INLINE void quantised_few_type(__global const float* a, const long a_row, __global const uchar* blocks,
                                         const quantised_rows layout, __global const float* bias,
                                         __global const float* residual, __global float* c, const int m, const int n,
                                         const int k, const int first, const int last, const int flags,
                                         const int type) {
  if (m == 1) {
    for (int j = first; j < last; j += QUANTISED_ONE_COLUMNS)
      quantised_one(a, a_row, blocks, layout, bias, residual, c, m, n, k, 0, j, flags, type);
    return;
  }
  for (int j = first; j < last; j += QUANTISED_SOME_COLUMNS) {
    for (int i = 0; i < m; i += QUANTISED_SOME_ROWS)
      quantised_some(a, a_row, blocks, layout, bias, residual, c, m, n, k, i, j, flags, type);
  }
}

// c [m][n] = a [m][k], contiguous along k, times W' with the epilogue of `flags`. Groups: columns_per_group columns, a
// multiple of QUANTISED_ONE_COLUMNS.
SB_APART void quantised_few_group(SB_AT(const float, a), SB_AT(const uchar, blocks), SB_AT(const float, bias),
                                  SB_AT(const float, residual), SB_AT(float, c), const quantised_rows layout,
                                  const gemm_sizes s, const int columns_per_group, const int flags, const int group) {
  const int first = group * columns_per_group, last = min(s.n, first + columns_per_group);
#define QUANTISED_CASE_FEW(type)                                                                                \
  case type:                                                                                                    \
    quantised_few_type(a, s.a_row, blocks, layout, bias, residual, c, s.m, s.n, s.k, first, last, flags, type); \
    break
  switch (layout.type) {
    QUANTISED_CASE_FEW(QUANTISED_Q8_0);
    QUANTISED_CASE_FEW(QUANTISED_Q4_0);
    QUANTISED_CASE_FEW(QUANTISED_Q4_K);
    QUANTISED_CASE_FEW(QUANTISED_Q5_K);
    QUANTISED_CASE_FEW(QUANTISED_Q6_K);
    QUANTISED_CASE_FEW(QUANTISED_NF4);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void quantised_few(
    ARRAY(const float, a), ARRAY(const uchar, blocks), ARRAY(const float, bias), ARRAY(const float, residual),
    ARRAY(float, c), const quantised_rows layout, const gemm_sizes s, const int columns_per_group, const int flags) {
  START(a);
  START(blocks);
  START(bias);
  START(residual);
  START(c);
  quantised_few_group(a, blocks, bias, residual, c, layout, s, columns_per_group, flags, get_group_id(0));
}
#endif

// dst [rows][columns] = the values of the rows. Groups: a contiguous share of the rows each.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void quantised_values(ARRAY(const uchar, blocks),
                                                                              ARRAY(real, dst),
                                                                              const quantised_rows layout,
                                                                              const long rows, const long columns,
                                                                              const int rows_per_group) {
  START(blocks);
  START(dst);
  const long first = (long)get_group_id(0) * rows_per_group, last = min(first + rows_per_group, rows);
  for (long row = first; row < last; ++row) {
    for (int i = 0; i < columns; i += QUANTISED_STEP) {
      real values[QUANTISED_STEP];
      quantised_put(quantised_16(blocks + row * layout.row_bytes, i / QUANTISED_STEP, layout.type), values);
      for (int l = 0; l < QUANTISED_STEP; l += VW) VSTORE(VLOAD(values + l), dst + row * columns + i + l);
    }
  }
}
