// Matrix product of a CPU device: C[z] (m x n) = A[z] (m x k) * B[z] (k x n), any strides, two batch axes.
//
// One group computes a tile of C. It walks k in blocks of GEMM_KC; per block it packs its columns of B into private
// memory (panels [k][GEMM_NR]), then, for every GEMM_MR rows, packs those rows of A ([k][GEMM_MR]) and runs a register
// tile of GEMM_MR x GEMM_NR over the two panels. The B block stays in the second-level cache, the A panel in the first.
// Packing inside the group needs no temporary array and no launch of its own, and costs a few percent because a packed
// value serves tile_m rows or tile_n columns. Sums run over k in blocks of GEMM_KC in ascending order, whatever the
// tiles are: results do not depend on the number of threads.

// Rows of the register tile: GEMM_MR * 2 accumulators, two vectors of B and one broadcast fit the register file of that
// width. At most VW or a multiple of it, because A is transposed in VW x VW blocks.
#define GEMM_MR_VW16 14
#define GEMM_MR_VW8 6
#define GEMM_MR_VW4 8
#define GEMM_MR_VW2 4
#define GEMM_NR_VW16 32
#define GEMM_NR_VW8 16
#define GEMM_NR_VW4 8
#define GEMM_NR_VW2 4
#define GEMM_MR SB_JOIN(GEMM_MR_VW, VW)
#define GEMM_NR SB_JOIN(GEMM_NR_VW, VW)
#define GEMM_KC 256             // k values packed at a time
#define GEMM_NC 256             // most columns of a group
#define GEMM_REDUCE_BLOCK 4096  // values per group of gemm_reduce

#define GEMM_ACCUMULATE 1
#define GEMM_BIAS 2
#define GEMM_RELU 4

// Transposes the VW vectors of r in place: log2(VW) perfect shuffles.
static void gemm_transpose(vreal* r) {
#pragma unroll
  for (int stage = 1; stage < VW; stage *= 2) {
    vreal s[VW];
#pragma unroll
    for (int i = 0; i < VW / 2; ++i) {
      s[2 * i].even = r[i].lo;
      s[2 * i].odd = r[i + VW / 2].lo;
      s[2 * i + 1].even = r[i].hi;
      s[2 * i + 1].odd = r[i + VW / 2].hi;
    }
#pragma unroll
    for (int i = 0; i < VW; ++i) r[i] = s[i];
  }
}

// Packs `lanes` lines of kc values into out[p*lanes + i] = src[i*line + p*step]. `there` (at least 1) lines exist from
// src on; missing ones are zeros or repeat the last (their results are never stored). Where line is 1 a step is copied
// as vectors, where step is 1 blocks are transposed in registers. out has VW spare values at its end, because the
// vector stores of a step of 14 lanes overlap the next step.
static void gemm_pack(__global const real* src, const long line, const long step, const int there, const int kc,
                      const int lanes, real* out) {
  int p = 0;
  if (line == 1) {
    if (there >= (lanes + VW - 1) / VW * VW) {
      for (; p < kc; ++p) {  // lanes are at most two vectors
        VSTORE(VLOAD(src + p * step), out + p * lanes);
        if (lanes > VW) VSTORE(VLOAD(src + p * step + VW), out + p * lanes + VW);
      }
    }
    const int whole = min(there, lanes) / VW * VW;
    for (; p < kc; ++p) {
      int i = 0;
      for (; i < whole; i += VW) VSTORE(VLOAD(src + p * step + i), out + p * lanes + i);
      for (; i < lanes; ++i) out[p * lanes + i] = i < there ? src[p * step + i] : 0;
    }
  } else if (step == 1) {
    for (; p + VW <= kc; p += VW) {
      for (int block = 0; block < lanes; block += VW) {
        vreal r[VW];
#pragma unroll
        for (int i = 0; i < VW; ++i) r[i] = VLOAD(src + min(block + i, there - 1) * line + p);
        gemm_transpose(r);
#pragma unroll
        for (int q = 0; q < VW; ++q) VSTORE(r[q], out + (p + q) * lanes + block);
      }
    }
  }
  for (; p < kc; ++p) {
    for (int i = 0; i < lanes; ++i) out[p * lanes + i] = src[min(i, there - 1) * line + p * step];
  }
}

// Stores rows x cols of a tile [GEMM_MR][GEMM_NR] to c (row stride ldc) with the epilogue; bias points at the tile's
// first column. NaN passes the ReLU.
static void gemm_store(const real* tile, __global real* c, const int ldc, const int rows, const int cols,
                       __global const real* bias, const int flags) {
  for (int i = 0; i < rows; ++i) {
    const real* from = tile + i * GEMM_NR;
    __global real* to = c + (long)i * ldc;
    int j = 0;
    for (; j + VW <= cols; j += VW) {
      vreal v = VLOAD(from + j);
      if (flags & GEMM_ACCUMULATE) v += VLOAD(to + j);
      if (flags & GEMM_BIAS) v += VLOAD(bias + j);
      if (flags & GEMM_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      VSTORE(v, to + j);
    }
    for (; j < cols; ++j) {
      real v = from[j];
      if (flags & GEMM_ACCUMULATE) v += to[j];
      if (flags & GEMM_BIAS) v += bias[j];
      if ((flags & GEMM_RELU) && v < 0) v = 0;
      to[j] = v;
    }
  }
}

// One register tile, ROWS x (COLS*VW), over kc values of the packed panels, into tile [ROWS][GEMM_NR].
#define GEMM_MICRO(name, ROWS, COLS)                                                                   \
  static void name(const real* ap, const real* bp, const int kc, real* tile) {                         \
    vreal acc[ROWS][COLS];                                                                             \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                 \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = (vreal)(0);                         \
    }                                                                                                  \
    for (int p = 0; p < kc; ++p) {                                                                     \
      vreal b[COLS];                                                                                   \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(bp + p * GEMM_NR + j * VW);        \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                               \
        const vreal a = (vreal)(ap[p * GEMM_MR + i]);                                                  \
        _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(a, b[j], acc[i][j]);          \
      }                                                                                                \
    }                                                                                                  \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                 \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) VSTORE(acc[i][j], tile + i * GEMM_NR + j * VW); \
    }                                                                                                  \
  }
GEMM_MICRO(gemm_micro, GEMM_MR, 2)
GEMM_MICRO(gemm_micro_narrow, GEMM_MR, 1)
GEMM_MICRO(gemm_micro_low, 4, 2)
GEMM_MICRO(gemm_micro_low_narrow, 4, 1)

// C[split][z] (m x n, dense) = A[z] * B[z] over the split's part of k, with the epilogue of `flags` (accumulate 1, bias
// 2, ReLU 4). A(i,p) = a[i*a_row + p*a_col], B(p,j) = b[p*b_row + j*b_col]; z = outer*batch_inner + inner picks the
// matrices by the four batch strides. Groups: x = ceil(m/tile_m)*ceil(n/tile_n), column tile fastest; y = splits; z =
// batch. tile_m is a multiple of GEMM_MR, tile_n one of GEMM_NR and at most GEMM_NC. Accumulates in `real`.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm(
    ARRAY(const real, a), ARRAY(const real, b), ARRAY(const real, bias), ARRAY(real, c), const int m, const int n,
    const int k, const long a_row, const long a_col, const long b_row, const long b_col, const int batch_inner,
    const long a_outer, const long a_inner, const long b_outer, const long b_inner, const int tile_m, const int tile_n,
    const int split_k, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(c);
  const int z = get_group_id(2), split = get_group_id(1);
  const int column_tiles = (n + tile_n - 1) / tile_n;
  const int row_tile = (int)get_group_id(0) / column_tiles,
            column_tile = (int)get_group_id(0) - row_tile * column_tiles;
  const int row0 = row_tile * tile_m, row1 = min(m, row0 + tile_m);
  const int col0 = column_tile * tile_n, col1 = min(n, col0 + tile_n);
  const int k0 = split * split_k, k1 = min(k, k0 + split_k);
  const int outer = z / batch_inner, inner = z - outer * batch_inner;
  a += outer * a_outer + inner * a_inner;
  b += outer * b_outer + inner * b_inner;
  c += ((long)split * get_num_groups(2) + z) * m * n;

  real a_panel[GEMM_MR * GEMM_KC + VW];
  real b_block[GEMM_NC * GEMM_KC + VW];
  real tile[(GEMM_MR + 4) * GEMM_NR];
  for (int kb = k0; kb < k1; kb += GEMM_KC) {
    const int kc = min(GEMM_KC, k1 - kb);
    for (int j = col0; j < col1; j += GEMM_NR)
      gemm_pack(b + kb * b_row + j * b_col, b_col, b_row, n - j, kc, GEMM_NR, b_block + (j - col0) * GEMM_KC);
    int now = flags;
    if (kb > k0) now |= GEMM_ACCUMULATE;
    if (kb + kc < k1) now &= ~(GEMM_BIAS | GEMM_RELU);
    for (int i = row0; i < row1; i += GEMM_MR) {
      const int rows = min(GEMM_MR, row1 - i);
      gemm_pack(a + i * a_row + kb * a_col, a_row, a_col, m - i, kc, GEMM_MR, a_panel);
      for (int j = col0; j < col1; j += GEMM_NR) {
        const int cols = min(GEMM_NR, col1 - j);
        const real* bp = b_block + (j - col0) * GEMM_KC;
        // Eight rows or fewer, as at the end of a batch of 64, cost less in tiles of four.
        if (rows == GEMM_MR || rows > 8) {
          if (cols > VW)
            gemm_micro(a_panel, bp, kc, tile);
          else
            gemm_micro_narrow(a_panel, bp, kc, tile);
        } else {
          for (int r = 0; r < rows; r += 4) {
            if (cols > VW)
              gemm_micro_low(a_panel + r, bp, kc, tile + r * GEMM_NR);
            else
              gemm_micro_low_narrow(a_panel + r, bp, kc, tile + r * GEMM_NR);
          }
        }
        gemm_store(tile, c + (long)i * n + j, n, rows, cols, bias + j, now);
      }
    }
  }
}

// c[i] = epilogue(sum over s, ascending, of part[s*total + i]); total = batch*m*n, bias [n] by i mod n. Groups: x =
// ceil(total/GEMM_REDUCE_BLOCK).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_reduce(ARRAY(const real, part),
                                                                         ARRAY(const real, bias), ARRAY(real, c),
                                                                         const int n, const long total,
                                                                         const int splits, const int flags) {
  START(part);
  START(bias);
  START(c);
  const long begin = (long)get_group_id(0) * GEMM_REDUCE_BLOCK, end = min(total, begin + GEMM_REDUCE_BLOCK);
  long i = begin;
  for (; i + VW <= end; i += VW) {
    vreal v = VLOAD(part + i);
    for (int s = 1; s < splits; ++s) v += VLOAD(part + s * total + i);
    if (flags & GEMM_ACCUMULATE) v += VLOAD(c + i);
    VSTORE(v, c + i);
  }
  for (; i < end; ++i) {
    real v = part[i];
    for (int s = 1; s < splits; ++s) v += part[s * total + i];
    if (flags & GEMM_ACCUMULATE) v += c[i];
    c[i] = v;
  }
  if (flags & (GEMM_BIAS | GEMM_RELU)) {
    for (i = begin; i < end; ++i) {
      real v = c[i];
      if (flags & GEMM_BIAS) v += bias[i % n];
      if ((flags & GEMM_RELU) && v < 0) v = 0;
      c[i] = v;
    }
  }
}
