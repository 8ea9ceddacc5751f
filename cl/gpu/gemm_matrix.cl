// Products of 16-bit matrices by the matrix units of NVIDIA's GPUs (mma.sync of PTX, from compute capability 8.0):
// groups of four warps make a tile of C of 128 x 128 values, or of 64 x 64 where there would be too few, a quarter
// each. Three steps of 32 values of k lie in local memory: cp.async brings one in while another is multiplied, past the
// registers, and zero for what lies outside the matrices. ldmatrix reads blocks of 8 x 8 as the units want them,
// transposed where k is not contiguous; blocks of 16 bytes lie in an order in which eight that are read at once have
// different banks. Sums are f32. They leave through local memory, so that neighbours write neighbours. Only where a
// probe found that the device multiplies so (SAMEBYTES_MATRIX_PTX, runtime/matrix_units.h).
// Source of the layouts: PTX ISA 8.0, "Matrix Fragments for mma.m16n8k16" and "ldmatrix".
// Of this personality alone.
// Program: products
#include "shared/gemm.clh"

#define GEMM_MATRIX_TILE 128  // rows and columns of a tile
#define GEMM_MATRIX_SMALL_TILE 64
#define GEMM_MATRIX_STEP 32  // k values of a stage
#define GEMM_MATRIX_STAGES 3
#define GEMM_MATRIX_ITEMS 128  // of a group: four warps
#define GEMM_MATRIX_BAND 8     // row tiles that neighbours in a launch share, so that the cache has their columns

#if defined(SAMEBYTES_MATRIX_PTX) && defined(SAMEBYTES_STORE_16)
#ifdef SAMEBYTES_STORE_BF16
#define GEMM_MATRIX_TYPE "bf16"
#else
#define GEMM_MATRIX_TYPE "f16"
#endif
#define GEMM_MATRIX_BYTES(tile) ((tile)*GEMM_MATRIX_STEP * 2)  // of a matrix in a stage

// Where the 16 bytes from (line, 8 * block) of a stage lie. A matrix with k contiguous has a line of 4 blocks for each
// row or column of the tile, the other one a line for each value of k.
static inline uint gemm_matrix_place(const int tile, const int is_deep, const int line, const int block) {
  return is_deep ? (uint)(line * 64 + ((block ^ (line >> 1 & 3)) << 4))
                 : (uint)(line * 2 * tile + ((block ^ (line & 7)) << 4));
}

// A matrix as a group reads it: lines are rows of A or columns of B, `count` of them, and values of k up to `end`; one
// of the strides is 1. `is_aligned`: blocks of 8 values begin at multiples of 16 bytes.
typedef struct {
  const __global stored* from;
  long line_step, k_step;
  int first, count, end, is_aligned;
} gemm_matrix_source;

// Copies a stage of it, k from p0 on. A work-item takes the same block of lines that are a whole number of `rows`
// apart, so that addresses differ by constants.
static inline __attribute__((always_inline)) void gemm_matrix_load(const gemm_matrix_source s, const int p0,
                                                                   __local uchar* to, const int tile, const int is_deep,
                                                                   const int item) {
  const int blocks = is_deep ? GEMM_MATRIX_STEP / 8 : tile / 8, rows = GEMM_MATRIX_ITEMS / blocks;
  const int row = item / blocks, part = item % blocks;
  const int line = s.first + (is_deep ? row : 8 * part), p = p0 + (is_deep ? 8 * part : row);
  const __global stored* at = s.from + line * s.line_step + p * s.k_step;
  const long up = rows * (is_deep ? s.line_step : s.k_step);
  __local uchar* const into = to + gemm_matrix_place(tile, is_deep, row, part);
  if (s.is_aligned && p0 + GEMM_MATRIX_STEP <= s.end) {
    const int of_line = 2 * clamp(s.count - line, 0, 8);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      if (q >= GEMM_MATRIX_BYTES(tile) / 16 / GEMM_MATRIX_ITEMS) continue;
      const int bytes = is_deep ? (line + rows * q < s.count ? 16 : 0) : of_line;  // the others become zero
      __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                       :
                       : "r"((uint)(ulong)(into + q * rows * (is_deep ? 64 : 2 * tile))), "l"(at + q * up), "r"(bytes)
                       : "memory");
    }
    return;
  }
#pragma unroll 1
  for (int q = 0; q < GEMM_MATRIX_BYTES(tile) / 16 / GEMM_MATRIX_ITEMS; ++q) {
    const int l = line + (is_deep ? rows * q : 0), k = p + (is_deep ? 0 : rows * q);
    const int values = clamp(is_deep ? (l < s.count ? s.end - k : 0) : (k < s.end ? s.count - l : 0), 0, 8);
    __local ushort* const block = (__local ushort*)(into + q * rows * (is_deep ? 64 : 2 * tile));
    if (s.is_aligned)
      __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                       :
                       : "r"((uint)(ulong)block), "l"(values > 0 ? at + q * up : s.from), "r"(2 * values)
                       : "memory");
    else
      for (int e = 0; e < 8; ++e) block[e] = e < values ? at[q * up + e].bits : 0;
  }
}

// Four blocks of 8 x 8; each lane gives the address of a line of eight values.
#define GEMM_MATRIX_READ(trans, r, place)                                                   \
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0,%1,%2,%3}, [%4];" \
                   : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3])                 \
                   : "r"((uint)(ulong)(place))                                              \
                   : "memory")

// In gemm_matrix_tile's names: a stage on its way into local memory; the products of one that lies there; and the sums'
// way out, 16 rows of each half at a time.
#define GEMM_MATRIX_STAGE(p, number)                                                   \
  {                                                                                    \
    __local uchar* const to = stages + (number)*2 * GEMM_MATRIX_BYTES(tile);           \
    if ((p) < end) {                                                                   \
      gemm_matrix_load(from_a, (p), to, tile, a_deep, item);                           \
      gemm_matrix_load(from_b, (p), to + GEMM_MATRIX_BYTES(tile), tile, b_deep, item); \
    }                                                                                  \
    __asm__ volatile("cp.async.commit_group;" : : : "memory");                         \
  }
#define GEMM_MATRIX_MULTIPLY                                                                                  \
  _Pragma("unroll") for (int p = 0; p < GEMM_MATRIX_STEP; p += 16) {                                          \
    uint x[4][4], y[4][4];                                                                                    \
    _Pragma("unroll") for (int r = 0; r < 4; ++r) {                                                           \
      const int i = warp_i + 16 * r;                                                                          \
      if (16 * r >= side) continue;                                                                           \
      if (a_deep)                                                                                             \
        GEMM_MATRIX_READ("", x[r], a_at + gemm_matrix_place(tile, 1, i + low + 8 * odd, p / 8 + high));       \
      else                                                                                                    \
        GEMM_MATRIX_READ(".trans", x[r], a_at + gemm_matrix_place(tile, 0, p + low + 8 * high, i / 8 + odd)); \
    }                                                                                                         \
    _Pragma("unroll") for (int q = 0; q < 4; ++q) {                                                           \
      const int j = warp_j + 16 * q;                                                                          \
      if (16 * q >= side) continue;                                                                           \
      if (b_deep)                                                                                             \
        GEMM_MATRIX_READ("", y[q], b_at + gemm_matrix_place(tile, 1, j + low + 8 * high, p / 8 + odd));       \
      else                                                                                                    \
        GEMM_MATRIX_READ(".trans", y[q], b_at + gemm_matrix_place(tile, 0, p + low + 8 * odd, j / 8 + high)); \
    }                                                                                                         \
    _Pragma("unroll") for (int r = 0; r < 4; ++r) {                                                           \
      _Pragma("unroll") for (int q = 0; q < 8; ++q) {                                                         \
        if (16 * r >= side || 8 * q >= side) continue;                                                        \
        __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32." GEMM_MATRIX_TYPE "." GEMM_MATRIX_TYPE       \
                         ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                         \
                         : "+f"(acc[r][q][0]), "+f"(acc[r][q][1]), "+f"(acc[r][q][2]), "+f"(acc[r][q][3])     \
                         : "r"(x[r][0]), "r"(x[r][1]), "r"(x[r][2]), "r"(x[r][3]), "r"(y[q / 2][q % 2 * 2]),  \
                           "r"(y[q / 2][q % 2 * 2 + 1]));                                                     \
      }                                                                                                       \
    }                                                                                                         \
  }
#define GEMM_MATRIX_LEAVE                                                                                    \
  _Pragma("unroll") for (int r = 0; r < 4; ++r) {                                                            \
    if (16 * r >= side) continue;                                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
    _Pragma("unroll") for (int q = 0; q < 8; ++q) {                                                          \
      if (8 * q >= side) continue;                                                                           \
      __local float* const at = sums + ((warp & 1) * 16 + lane / 4) * pitch + warp_j + 8 * q + lane % 4 * 2; \
      at[0] = acc[r][q][0];                                                                                  \
      at[1] = acc[r][q][1];                                                                                  \
      at[8 * pitch] = acc[r][q][2];                                                                          \
      at[8 * pitch + 1] = acc[r][q][3];                                                                      \
    }                                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
    _Pragma("unroll 1") for (int e = item; e < 32 * tile; e += GEMM_MATRIX_ITEMS) {                          \
      const int line = e / tile, column = e % tile;                                                          \
      const int i = i0 + line / 16 * side + 16 * r + line % 16, j = j0 + column;                             \
      if (i < m && j < n) {                                                                                  \
        const long at = (long)i * n + j;                                                                     \
        const float v = sums[line * pitch + column];                                                         \
        if (is_part)                                                                                         \
          part[at] = v;                                                                                      \
        else                                                                                                 \
          STORE(gemm_finish(v, c + at, bias + j, residual + at, flags), c + at);                             \
      }                                                                                                      \
    }                                                                                                        \
  }

// What all kernels do. A(i,p) has k contiguous where a_deep, else i; B(p,j) where b_deep, else j.
static inline __attribute__((always_inline)) void gemm_matrix_tile(
    const __global stored* a, const __global stored* b, const __global real* bias, const __global stored* residual,
    __global stored* c, __global real* part, const gemm_sizes s, const gemm_strips share, const int flags,
    __local uchar* stages, const int tile, const int a_deep, const int b_deep) {
  GEMM_NAMES(s);
  const int column_tiles = share.column_tiles, row_tiles = (m + tile - 1) / tile;
  const int item = get_local_id(0), lane = item & 31, warp = item >> 5, side = tile / 2;
  const int group = get_group_id(0), band = group / (GEMM_MATRIX_BAND * column_tiles);
  const int in_band = group - band * GEMM_MATRIX_BAND * column_tiles;
  const int rows_of_band = min(GEMM_MATRIX_BAND, row_tiles - band * GEMM_MATRIX_BAND);
  const int i0 = (band * GEMM_MATRIX_BAND + in_band % rows_of_band) * tile, j0 = in_band / rows_of_band * tile;
  const int begin = (int)get_group_id(1) * share.split_k, end = min(k, begin + share.split_k);
  const long z = get_group_id(2);
  a += z / batch_inner * a_outer + z % batch_inner * a_inner;
  b += z / batch_inner * b_outer + z % batch_inner * b_inner;
  const gemm_matrix_source from_a = {a,
                                     a_deep ? a_row : 1,
                                     a_deep ? 1 : a_col,
                                     i0,
                                     m,
                                     end,
                                     ((ulong)a & 15) == 0 && ((a_deep ? a_row : a_col) & 7) == 0};
  const gemm_matrix_source from_b = {b,
                                     b_deep ? b_col : 1,
                                     b_deep ? 1 : b_row,
                                     j0,
                                     n,
                                     end,
                                     ((ulong)b & 15) == 0 && ((b_deep ? b_col : b_row) & 7) == 0};
  const int warp_i = (warp & 1) * side, warp_j = (warp >> 1) * side;
  const int low = lane & 7, odd = lane >> 3 & 1, high = lane >> 4;  // which line of which block a lane gives
  float acc[4][8][4];  // of which a small tile uses a quarter; bounds are numbers, so that all loops unroll
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int q = 0; q < 8; ++q) {
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[r][q][e] = 0;
    }
  }
#pragma unroll
  for (int e = 0; e < GEMM_MATRIX_STAGES - 1; ++e) GEMM_MATRIX_STAGE(begin + e * GEMM_MATRIX_STEP, e)
  int now = 0, next = GEMM_MATRIX_STAGES - 1;
  for (int p0 = begin; p0 < end; p0 += GEMM_MATRIX_STEP) {
    __asm__ volatile("cp.async.wait_group 1;" : : : "memory");
    barrier(CLK_LOCAL_MEM_FENCE);  // this stage is there for all, and the one before it has been read by all
    GEMM_MATRIX_STAGE(p0 + (GEMM_MATRIX_STAGES - 1) * GEMM_MATRIX_STEP, next)
    const __local uchar* const a_at = stages + now * 2 * GEMM_MATRIX_BYTES(tile);
    const __local uchar* const b_at = a_at + GEMM_MATRIX_BYTES(tile);
    now = now == GEMM_MATRIX_STAGES - 1 ? 0 : now + 1;
    next = next == GEMM_MATRIX_STAGES - 1 ? 0 : next + 1;
    GEMM_MATRIX_MULTIPLY
  }
  c += z * m * n;
  residual += z * m * n;
  const int is_part = part != 0;
  part += ((long)get_group_id(1) * get_num_groups(2) + z) * m * n;
  __local float* const sums = (__local float*)stages;
  const int pitch = tile + 8;  // lines of a block of 8 x 8 have different banks
  __asm__ volatile("cp.async.wait_group 0;" : : : "memory");
  GEMM_MATRIX_LEAVE
}

// C[z] = A[z] * B[z] as gemm's, its arguments and results too, for operands of which one stride is 1: d where that is
// the one along k, l where it is the other, for A and for B. Groups: x = ceil(m/tile)*ceil(n/tile), in bands of 8 row
// tiles; y = splits; z = batch. Tiles are of 128 rows and columns, or of 64.
#define GEMM_MATRIX(suffix, tile, a_deep, b_deep)                                                             \
  __kernel __attribute__((reqd_work_group_size(GEMM_MATRIX_ITEMS, 1, 1))) void SB_JOIN(gemm_matrix, suffix)(  \
      ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual), \
      ARRAY(stored, c), ARRAY(real, part), const gemm_sizes s, const gemm_strips share, const int flags) {    \
    START(a);                                                                                                 \
    START(b);                                                                                                 \
    START(bias);                                                                                              \
    START(residual);                                                                                          \
    START(c);                                                                                                 \
    START(part);                                                                                              \
    __local uchar stages[GEMM_MATRIX_STAGES * 2 * GEMM_MATRIX_BYTES(tile)] __attribute__((aligned(128)));     \
    gemm_matrix_tile(a, b, bias, residual, c, part, s, share, flags, stages, tile, a_deep, b_deep);           \
  }
GEMM_MATRIX(_dd, GEMM_MATRIX_TILE, 1, 1)
GEMM_MATRIX(_dl, GEMM_MATRIX_TILE, 1, 0)
GEMM_MATRIX(_ld, GEMM_MATRIX_TILE, 0, 1)
GEMM_MATRIX(_ll, GEMM_MATRIX_TILE, 0, 0)
GEMM_MATRIX(_small_dd, GEMM_MATRIX_SMALL_TILE, 1, 1)
GEMM_MATRIX(_small_dl, GEMM_MATRIX_SMALL_TILE, 1, 0)
GEMM_MATRIX(_small_ld, GEMM_MATRIX_SMALL_TILE, 0, 1)
GEMM_MATRIX(_small_ll, GEMM_MATRIX_SMALL_TILE, 0, 0)
#endif
