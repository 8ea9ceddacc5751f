// Large matrix products of a GPU: groups of 16 x 16 work-items make a 128 x 128 tile of C, eight by eight values each.
// Every value in local memory is read eight times less often than it is multiplied, where gemm's tile of 64 x 64 reads
// it four times less often; the next step's values are on their way from memory while this one's are multiplied. Every
// work-item takes part in every load and barrier; what lies outside the matrices is zero. Sums are those of gemm, in
// the same order.
// Of this personality alone.
// Program: products
#include "shared/gemm.clh"

#define GEMM_WIDE_TILE 128  // rows and columns of a tile
#ifdef SAMEBYTES_F64
#define GEMM_WIDE_STEP 4  // k values in local memory at a time, twice
typedef double4 gemm_wide_four;
#else
#define GEMM_WIDE_STEP 8
typedef float4 gemm_wide_four;
#endif
#define GEMM_WIDE_PITCH 132  // of a row there: four values that are read at once stay aligned
#define GEMM_WIDE_LOADS (GEMM_WIDE_TILE * GEMM_WIDE_STEP / 256)  // of a work-item from each matrix, for a step

// In gemm_wide's names: a work-item's values of a matrix for the step at p0, of both; their way into local memory; and
// a row of its sums.
#define GEMM_WIDE_LOAD(next, from, step, is_deep, lines, own_p, along, p0)                     \
  {                                                                                            \
    const __global stored* at = from;                                                          \
    const int p_left = end - (p0)-own_p;                                                       \
    const int count = is_deep ? (p_left > 0 ? lines : 0) : (lines > 0 ? (p_left + 1) / 2 : 0); \
    _Pragma("unroll") for (int q = 0; q < GEMM_WIDE_LOADS; ++q) {                              \
      next[q] = q < count ? LOAD(at) : 0;                                                      \
      at += step;                                                                              \
    }                                                                                          \
    from += GEMM_WIDE_STEP * along;                                                            \
  }
#define GEMM_WIDE_LOADS_OF(p0)                                             \
  GEMM_WIDE_LOAD(a_next, a_from, a_step, a_deep, a_lines, a_p, a_col, p0); \
  GEMM_WIDE_LOAD(b_next, b_from, b_step, b_deep, b_lines, b_p, b_row, p0)
#define GEMM_WIDE_STORES                                                                        \
  _Pragma("unroll") for (int q = 0; q < GEMM_WIDE_LOADS; ++q) {                                 \
    a_tiles[at_half + (a_p + a_step_p * q) * GEMM_WIDE_PITCH + a_i + a_step_i * q] = a_next[q]; \
    b_tiles[at_half + (b_p + b_step_p * q) * GEMM_WIDE_PITCH + b_j + b_step_j * q] = b_next[q]; \
  }
#define GEMM_WIDE_ROW(r, v)                            \
  acc[r][0] = FMA((gemm_wide_four)(v), b0, acc[r][0]); \
  acc[r][1] = FMA((gemm_wide_four)(v), b1, acc[r][1]);
#define GEMM_WIDE_LEAVE                                                                  \
  _Pragma("unroll") for (int r = 0; r < 8; ++r) {                                        \
    const int i = i0 + 4 * ly + r % 4 + r / 4 * 64;                                      \
    _Pragma("unroll") for (int h = 0; h < 2; ++h) {                                      \
      const gemm_wide_four sums = acc[r][h];                                             \
      const real each[4] = {sums.x, sums.y, sums.z, sums.w};                             \
      _Pragma("unroll") for (int s = 0; s < 4; ++s) {                                    \
        const int j = j0 + 4 * lx + s + 64 * h;                                          \
        if (i < m && j < n) {                                                            \
          const long at = (long)i * n + j;                                               \
          if (is_part)                                                                   \
            part[at] = each[s];                                                          \
          else                                                                           \
            STORE(gemm_finish(each[s], c + at, bias + j, residual + at, flags), c + at); \
        }                                                                                \
      }                                                                                  \
    }                                                                                    \
  }

// C[z] = A[z] * B[z] as gemm's, its arguments and results too. Groups: x = ceil(m/128)*ceil(n/128), column tile
// fastest; y = splits; z = batch. A work-item holds rows 4 ly + {0..3} and 64 more, columns 4 lx + {0..3} and 64 more.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void gemm_wide(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), ARRAY(real, part), const gemm_sizes s, const gemm_strips share, const int flags) {
  START(a);
  START(b);
  GEMM_NAMES(s);
  const int column_tiles = share.column_tiles, split_k = share.split_k;
  __local real a_tiles[2 * GEMM_WIDE_STEP * GEMM_WIDE_PITCH] __attribute__((aligned(32)));
  __local real b_tiles[2 * GEMM_WIDE_STEP * GEMM_WIDE_PITCH] __attribute__((aligned(32)));
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int i0 = (int)(get_group_id(0) / column_tiles) * GEMM_WIDE_TILE;
  const int j0 = (int)(get_group_id(0) % column_tiles) * GEMM_WIDE_TILE;
  const int begin = (int)get_group_id(1) * split_k, end = min(k, begin + split_k);
  const long z = get_group_id(2);
  a += z / batch_inner * a_outer + z % batch_inner * a_inner;
  b += z / batch_inner * b_outer + z % batch_inner * b_inner;
  // Work-items that are neighbours load along the axis that is contiguous: 8 x 32 with k fastest, or 128 x 2 with k
  // slowest.
  const int a_deep = a_col == 1, b_deep = b_row == 1 && b_col != 1;
  const int a_p = a_deep ? item % GEMM_WIDE_STEP : item / 128, a_i = a_deep ? item / GEMM_WIDE_STEP : item % 128;
  const int b_p = b_deep ? item % GEMM_WIDE_STEP : item / 128, b_j = b_deep ? item / GEMM_WIDE_STEP : item % 128;
  const int a_step_p = a_deep ? 0 : 2, a_step_i = a_deep ? 256 / GEMM_WIDE_STEP : 0;
  const int b_step_p = b_deep ? 0 : 2, b_step_j = b_deep ? 256 / GEMM_WIDE_STEP : 0;
  const long a_step = a_step_i * a_row + a_step_p * a_col, b_step = b_step_j * b_col + b_step_p * b_row;
  const __global stored* a_from = a + (i0 + a_i) * a_row + (begin + a_p) * a_col;
  const __global stored* b_from = b + (j0 + b_j) * b_col + (begin + b_p) * b_row;

  // Loads of a work-item within the matrix: where k is fastest its lines are, else its values of k are below.
  const int a_left = m - i0 - a_i, b_left = n - j0 - b_j;
  const int a_lines = a_deep ? (a_left + a_step_i - 1) / (256 / GEMM_WIDE_STEP) : a_left;
  const int b_lines = b_deep ? (b_left + b_step_j - 1) / (256 / GEMM_WIDE_STEP) : b_left;
  real a_next[GEMM_WIDE_LOADS], b_next[GEMM_WIDE_LOADS];
  gemm_wide_four acc[8][2];
#pragma unroll
  for (int r = 0; r < 8; ++r) acc[r][0] = acc[r][1] = (gemm_wide_four)(0);
  int at_half = 0;  // which of the two steps in local memory
  GEMM_WIDE_LOADS_OF(begin);
  GEMM_WIDE_STORES
  for (int p0 = begin; p0 < end; p0 += GEMM_WIDE_STEP) {
    barrier(CLK_LOCAL_MEM_FENCE);  // this step is there for all, and the one before it has been read by all
    GEMM_WIDE_LOADS_OF(p0 + GEMM_WIDE_STEP);
#pragma unroll
    for (int p = 0; p < GEMM_WIDE_STEP; ++p) {
      const __local gemm_wide_four* a_line = (const __local gemm_wide_four*)(a_tiles + at_half + p * GEMM_WIDE_PITCH);
      const __local gemm_wide_four* b_line = (const __local gemm_wide_four*)(b_tiles + at_half + p * GEMM_WIDE_PITCH);
      const gemm_wide_four a0 = a_line[ly], a1 = a_line[ly + 16], b0 = b_line[lx], b1 = b_line[lx + 16];
      GEMM_WIDE_ROW(0, a0.x)
      GEMM_WIDE_ROW(1, a0.y)
      GEMM_WIDE_ROW(2, a0.z)
      GEMM_WIDE_ROW(3, a0.w)
      GEMM_WIDE_ROW(4, a1.x)
      GEMM_WIDE_ROW(5, a1.y)
      GEMM_WIDE_ROW(6, a1.z)
      GEMM_WIDE_ROW(7, a1.w)
    }
    at_half ^= GEMM_WIDE_STEP * GEMM_WIDE_PITCH;
    GEMM_WIDE_STORES
  }
  START(bias);  // where the loop's registers are free again
  START(residual);
  START(c);
  START(part);
  const int is_part = part != 0;
  c += z * m * n;
  part += ((long)get_group_id(1) * get_num_groups(2) + z) * m * n;
  residual += z * m * n;
  GEMM_WIDE_LEAVE
}
