// Matrix product of a CPU device: C[z] (m x n) = A[z] (m x k) * B[z] (k x n), any strides, two batch axes.
//
// gemm: one group computes a tile of C. It walks k in blocks of GEMM_KC; per block it packs its columns of B into
// private memory (panels [k][GEMM_NR]) and runs register tiles of GEMM_MR x GEMM_NR: a row panel of A stays in the
// first-level cache while the panels of B come from the second. A is read in place (GEMM_DIRECT_A), which is free
// because a row panel's lines are reused from the first-level cache; only where its rows are a multiple of 4 KiB apart,
// and would fall into the same cache sets, it is packed too, into panels [k][GEMM_PITCH]. 16-bit operands are widened as
// they are packed, A always, and a sum of several blocks stands in private memory until it is rounded. Packing inside the group
// needs no temporary array and no launch of its own. Sums run over k in blocks of GEMM_KC in ascending order, whatever
// the tiles are: results do not depend on the number of threads.
//
// gemm_dot: both operands are contiguous along k and one of them has few lines; nothing is packed.
//
// Over 400 lines because packing, tiles and stores are of no use to another kernel and all kernels are one program.

// Rows of the register tile: GEMM_MR * 2 accumulators, two vectors of B and one broadcast fit the register file of that
// width. The rows that are left over are done in tiles of GEMM_MID and GEMM_LOW.
#define GEMM_MR_VW16 14
#define GEMM_MR_VW8 6
#define GEMM_MR_VW4 8
#define GEMM_MR_VW2 4
#define GEMM_MID_VW16 8
#define GEMM_MID_VW8 4
#define GEMM_MID_VW4 4
#define GEMM_MID_VW2 2
#define GEMM_LOW_VW16 4
#define GEMM_LOW_VW8 2
#define GEMM_LOW_VW4 2
#define GEMM_LOW_VW2 1
#define GEMM_PITCH_VW16 16  // GEMM_MR in whole vectors
#define GEMM_PITCH_VW8 8
#define GEMM_PITCH_VW4 8
#define GEMM_PITCH_VW2 4
#define GEMM_NR_VW16 32
#define GEMM_NR_VW8 16
#define GEMM_NR_VW4 8
#define GEMM_NR_VW2 4
#ifndef GEMM_MR
#define GEMM_MR SB_JOIN(GEMM_MR_VW, VW)
#endif
#define GEMM_MID SB_JOIN(GEMM_MID_VW, VW)
#define GEMM_LOW SB_JOIN(GEMM_LOW_VW, VW)
#define GEMM_PITCH SB_JOIN(GEMM_PITCH_VW, VW)
#define GEMM_NR SB_JOIN(GEMM_NR_VW, VW)
#ifndef GEMM_KC
#define GEMM_KC 256  // k values packed at a time
#endif
#ifndef GEMM_ROW_PANELS
#define GEMM_ROW_PANELS 20  // most of a group
#endif
#ifndef GEMM_COLUMN_PANELS
#define GEMM_COLUMN_PANELS 8  // most of a group
#endif
#define GEMM_REDUCE_BLOCK 4096  // values per group of gemm_reduce

#define GEMM_ACCUMULATE 1
#define GEMM_BIAS 2
#define GEMM_RELU 4
#define GEMM_RESIDUAL 8
#define GEMM_DIRECT_A 16

// A hint; where the compiler has none, nothing. Only under PoCL, since Oclgrind does not know it.
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define GEMM_PREFETCH(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#endif
#endif
#ifndef GEMM_PREFETCH
#define GEMM_PREFETCH(p)
#endif

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

// Packs kc values of the first `lines` lines in panels of `lanes` lines: out[panel][p][i] = src[(panel*lanes + i)*line
// + p*step], where a panel takes pitch*GEMM_KC values and pitch is lanes in whole vectors, one or two. `there` (at
// least 1) lines exist from src on; missing ones are zeros or repeat the last (their results are never stored). Where
// line is 1 a step of all panels is copied at once, so that memory is read in its order; where step is 1 blocks of VW x
// VW are transposed in registers.
static void gemm_pack(__global const stored* src, const long line, const long step, const int lines, const int there,
                      const int kc, const int lanes, const int pitch, real* out) {
  if (line == 1) {
    for (int p = 0; p < kc; ++p) {
      __global const stored* from = src + p * step;
      real* to = out + p * pitch;
      int i = 0;
      for (; i + pitch <= there && i < lines; i += lanes, to += pitch * GEMM_KC) {
        VSTORE(VLOAD(from + i), to);
        if (pitch > VW) VSTORE(VLOAD(from + i + VW), to + VW);
      }
      for (; i < lines; i += lanes, to += pitch * GEMM_KC) {
        for (int l = 0; l < pitch; ++l) to[l] = i + l < there ? LOAD(from + i + l) : 0;
      }
    }
    return;
  }
  for (int i = 0; i < lines; i += lanes, out += pitch * GEMM_KC) {
    int p = 0;
    if (step == 1) {
      for (; p + VW <= kc; p += VW) {
        for (int block = 0; block < pitch; block += VW) {
          __global const stored* from = src + (i + block) * line + p;
          vreal r[VW];
          if (i + block + VW <= there) {
#pragma unroll
            for (int l = 0; l < VW; ++l) {
              r[l] = VLOAD(from + l * line);
              GEMM_PREFETCH(from + l * line + 2 * VW);
            }
          } else {
#pragma unroll
            for (int l = 0; l < VW; ++l) r[l] = VLOAD(src + min(i + block + l, there - 1) * line + p);
          }
          gemm_transpose(r);
#pragma unroll
          for (int q = 0; q < VW; ++q) VSTORE(r[q], out + (p + q) * pitch + block);
        }
      }
    }
    for (; p < kc; ++p) {
      for (int l = 0; l < pitch; ++l) out[p * pitch + l] = LOAD(src + min(i + l, there - 1) * line + p * step);
    }
  }
}

// One value with the epilogue; what a 16-bit product is before more is added to it was rounded. NaN passes the ReLU.
static real gemm_finish(real v, __global const stored* c, __global const stored* bias, __global const stored* residual,
                        const int flags) {
  if (flags & GEMM_ACCUMULATE) v += LOAD(c);
  if (flags & GEMM_BIAS) v += LOAD(bias);
  if (flags & GEMM_RESIDUAL) v = ROUND(v) + LOAD(residual);
  return (flags & GEMM_RELU) && v < 0 ? 0 : v;
}

// Where the sums over k stand.
#ifdef SAMEBYTES_STORE_16
#define GEMM_SUMS real
#else
#define GEMM_SUMS __global real
#endif

// Stores rows x cols of a tile [rows][GEMM_NR] to c (row stride ldc), or adds it.
static void gemm_store(const real* tile, GEMM_SUMS* c, const int ldc, const int rows, const int cols,
                       const int accumulate) {
  for (int i = 0; i < rows; ++i, tile += GEMM_NR, c += ldc) {
    int j = 0;
    for (; j + VW <= cols; j += VW) VSTORE(accumulate ? VLOAD(tile + j) + VLOAD(c + j) : VLOAD(tile + j), c + j);
    for (; j < cols; ++j) c[j] = accumulate ? tile[j] + c[j] : tile[j];
  }
}

// The epilogue but for GEMM_ACCUMULATE, from rows x cols of sums (rows ldv apart) to c (ldc apart); bias points at the
// first column. In an f32 program the two may be the same.
static void gemm_epilogue(const GEMM_SUMS* sums, const int ldv, __global stored* c, const int ldc, const int rows,
                          const int cols, __global const stored* bias, __global const stored* residual,
                          const int flags) {
  for (int i = 0; i < rows; ++i, sums += ldv, c += ldc, residual += ldc) {
    int j = 0;
    for (; j + VW <= cols; j += VW) {
      vreal v = VLOAD(sums + j);
      if (flags & GEMM_BIAS) v += VLOAD(bias + j);
      if (flags & GEMM_RESIDUAL) v = VROUND(v) + VLOAD(residual + j);
      if (flags & GEMM_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      VSTORE(v, c + j);
    }
    for (; j < cols; ++j) STORE(gemm_finish(sums[j], c, bias + j, residual + j, flags & ~GEMM_ACCUMULATE), c + j);
  }
}

// One register tile, ROWS x (COLS*VW), over kc values of A (A(i,p) = a[i*LINE + p*STEP]) and a packed panel of B.
#define GEMM_TILE(i, j, statement)                                   \
  _Pragma("unroll") for (int i = 0; i < rows_; ++i) {                \
    _Pragma("unroll") for (int j = 0; j < cols_; ++j) { statement; } \
  }
#define GEMM_PRODUCT(ROWS, COLS, LINE, STEP)                                                       \
  enum { rows_ = ROWS, cols_ = COLS };                                                             \
  vreal acc[ROWS][COLS];                                                                           \
  GEMM_TILE(i, j, acc[i][j] = (vreal)(0))                                                          \
  for (int p = 0; p < kc; ++p) {                                                                   \
    vreal line[COLS];                                                                              \
    _Pragma("unroll") for (int j = 0; j < COLS; ++j) line[j] = VLOAD(b + p * GEMM_NR + j * VW);    \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                             \
      const vreal value = (vreal)(a[i * LINE + p * STEP]);                                         \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(value, line[j], acc[i][j]); \
    }                                                                                              \
  }
// A whole tile, stored from the registers.
#define GEMM_MICRO_WHOLE(name, SPACE, LINE, STEP)                                                          \
  static void name(SPACE const real* a, const long a_line, const long a_step, const real* b, const int kc, \
                   GEMM_SUMS* c, const int ldc, const int accumulate) {                                    \
    GEMM_PRODUCT(GEMM_MR, 2, LINE, STEP)                                                                   \
    if (accumulate) GEMM_TILE(i, j, acc[i][j] += VLOAD(c + (long)i * ldc + j * VW))                        \
    GEMM_TILE(i, j, VSTORE(acc[i][j], c + (long)i * ldc + j * VW))                                         \
  }
// A part of a tile, left in tile [ROWS][GEMM_NR].
#define GEMM_MICRO(name, ROWS, COLS, SPACE, LINE, STEP)                                                    \
  static void name(SPACE const real* a, const long a_line, const long a_step, const real* b, const int kc, \
                   real* tile) {                                                                           \
    GEMM_PRODUCT(ROWS, COLS, LINE, STEP)                                                                   \
    GEMM_TILE(i, j, VSTORE(acc[i][j], tile + i * GEMM_NR + j * VW))                                        \
  }
#define GEMM_NOTHING
GEMM_MICRO_WHOLE(gemm_micro_whole, GEMM_NOTHING, 1, GEMM_PITCH)
#ifndef SAMEBYTES_STORE_16
GEMM_MICRO_WHOLE(gemm_micro_direct_whole, __global, a_line, a_step)
GEMM_MICRO(gemm_micro_direct_narrow, GEMM_MR, 1, __global, a_line, a_step)
#endif
GEMM_MICRO(gemm_micro_mid, GEMM_MID, 2, GEMM_NOTHING, 1, GEMM_PITCH)
GEMM_MICRO(gemm_micro_mid_narrow, GEMM_MID, 1, GEMM_NOTHING, 1, GEMM_PITCH)
GEMM_MICRO(gemm_micro_low, GEMM_LOW, 2, GEMM_NOTHING, 1, GEMM_PITCH)
GEMM_MICRO(gemm_micro_low_narrow, GEMM_LOW, 1, GEMM_NOTHING, 1, GEMM_PITCH)

// C[z] (m x n, dense) = A[z] * B[z] with the epilogue of `flags` (accumulate 1, bias 2, ReLU 4, residual [z] (m x n,
// dense) 8; in the order accumulate, bias, residual, ReLU), or where part is there, part[split][z] (as C) = the product
// over the split's part of k, without one. 16: rows of A are read in
// place. A(i,p) = a[i*a_row + p*a_col], B(p,j) = b[p*b_row + j*b_col]; z = outer*batch_inner + inner picks the matrices
// by the four batch strides. Groups: x = row_tiles*column_tiles, column tile fastest; y = splits; z = batch. The
// panels of GEMM_MR rows and of GEMM_NR columns are dealt evenly to the tiles; a tile has at most GEMM_ROW_PANELS and
// GEMM_COLUMN_PANELS. Accumulates in `real`.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const stored, bias), ARRAY(const stored, residual), ARRAY(stored, c),
    ARRAY(real, part), const int m, const int n, const int k, const long a_row, const long a_col, const long b_row, const long b_col,
    const int batch_inner, const long a_outer, const long a_inner, const long b_outer, const long b_inner,
    const int row_tiles, const int column_tiles, const int split_k, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  START(part);
  const int is_part = part != 0;
  const int z = get_group_id(2), split = get_group_id(1);
  const long row_tile = (int)get_group_id(0) / column_tiles, column_tile = get_group_id(0) - row_tile * column_tiles;
  const long row_panels = (m + GEMM_MR - 1) / GEMM_MR, column_panels = (n + GEMM_NR - 1) / GEMM_NR;
  const int row0 = (int)(row_panels * row_tile / row_tiles) * GEMM_MR;
  const int row1 = (int)min((long)m, row_panels * (row_tile + 1) / row_tiles * GEMM_MR);
  const int col0 = (int)(column_panels * column_tile / column_tiles) * GEMM_NR;
  const int col1 = (int)min((long)n, column_panels * (column_tile + 1) / column_tiles * GEMM_NR);
  const int k0 = split * split_k, k1 = min(k, k0 + split_k);
  const int outer = z / batch_inner, inner = z - outer * batch_inner;
  a += outer * a_outer + inner * a_inner;
  b += outer * b_outer + inner * b_inner;
  c += (long)z * m * n;
  part += ((long)split * get_num_groups(2) + z) * m * n;
  residual += (long)z * m * n;
#ifdef SAMEBYTES_STORE_16
  const int packed = row0;
  const int is_short = k1 - k0 <= GEMM_KC;  // then a tile is whole at once
  const int ldc = is_short ? GEMM_NR : GEMM_COLUMN_PANELS * GEMM_NR;
  vreal sums[GEMM_ROW_PANELS * GEMM_MR * GEMM_COLUMN_PANELS * GEMM_NR / VW];
#else
  // Rows from here on are packed: those that do not fill a register tile always are.
  const int packed = flags & GEMM_DIRECT_A ? row0 + (row1 - row0) / GEMM_MR * GEMM_MR : row0;
  const int ldc = n;
  __global real* sums = is_part ? part : c;
#endif

  vreal a_block[GEMM_ROW_PANELS * GEMM_PITCH * GEMM_KC / VW];  // vectors, so that they are aligned
  vreal b_block[GEMM_COLUMN_PANELS * GEMM_NR * GEMM_KC / VW];
  real tile[GEMM_PITCH * GEMM_NR];
  for (int kb = k0; kb < k1; kb += GEMM_KC) {
    const int kc = min(GEMM_KC, k1 - kb);
    gemm_pack(b + kb * b_row + col0 * b_col, b_col, b_row, col1 - col0, n - col0, kc, GEMM_NR, GEMM_NR, (real*)b_block);
    if (packed < row1)
      gemm_pack(a + packed * a_row + kb * a_col, a_row, a_col, row1 - packed, m - packed, kc, GEMM_MR, GEMM_PITCH,
                (real*)a_block);
    #ifdef SAMEBYTES_STORE_16
    const int accumulate = kb > k0;
#else
    const int accumulate = kb > k0 || (flags & GEMM_ACCUMULATE);
#endif
    const int is_last = kb + kc == k1;
    for (int i = row0; i < row1; i += GEMM_MR) {
      const int rows = min(GEMM_MR, row1 - i);
#ifndef SAMEBYTES_STORE_16
      __global const real* in_place = a + i * a_row + kb * a_col;
#endif
      const real* ap = (const real*)a_block + max(0, i - packed) / GEMM_MR * (GEMM_PITCH * GEMM_KC);
      for (int j = col0; j < col1; j += GEMM_NR) {
        const int cols = min(GEMM_NR, col1 - j);
        const real* bp = (const real*)b_block + (j - col0) * GEMM_KC;
        const long at = (long)i * n + j;
#ifdef SAMEBYTES_STORE_16
        real* to = (real*)sums + (is_short ? 0 : (i - row0) * ldc + j - col0);
#else
        __global real* to = sums + at;
#endif
        if (rows == GEMM_MR && cols == GEMM_NR && i >= packed) {
          gemm_micro_whole(ap, 1, 1, bp, kc, to, ldc, accumulate);
#ifndef SAMEBYTES_STORE_16
        } else if (rows == GEMM_MR && cols == GEMM_NR) {
          gemm_micro_direct_whole(in_place, a_row, a_col, bp, kc, to, ldc, accumulate);
        } else if (i < packed) {  // lacks some columns
          gemm_micro_direct_narrow(in_place, a_row, a_col, bp, kc, tile);
          if (cols > VW) gemm_micro_direct_narrow(in_place, a_row, a_col, bp + VW, kc, tile + VW);
#endif
        } else {
          for (int r = 0; r < rows;) {
            const int mid = rows - r > GEMM_LOW;
            if (mid && cols > VW)
              gemm_micro_mid(ap + r, 1, 1, bp, kc, tile + r * GEMM_NR);
            else if (mid)
              gemm_micro_mid_narrow(ap + r, 1, 1, bp, kc, tile + r * GEMM_NR);
            else if (cols > VW)
              gemm_micro_low(ap + r, 1, 1, bp, kc, tile + r * GEMM_NR);
            else
              gemm_micro_low_narrow(ap + r, 1, 1, bp, kc, tile + r * GEMM_NR);
            r += mid ? GEMM_MID : GEMM_LOW;
          }
        }
        if (rows < GEMM_MR || cols < GEMM_NR) gemm_store(tile, to, ldc, rows, cols, accumulate);
#ifdef SAMEBYTES_STORE_16
        if (is_last && is_part) {
          for (int r = 0; r < rows; ++r) {
            for (int q = 0; q < cols; q += VW) sb_store(VLOAD(to + r * ldc + q), part + at + (long)r * n + q, cols - q);
          }
        } else if (is_last) {
          gemm_epilogue(to, ldc, c + at, n, rows, cols, bias + j, residual + at, flags);
        }
#else
        if (is_last && (flags & (GEMM_BIAS | GEMM_RELU | GEMM_RESIDUAL)))
          gemm_epilogue(to, n, c + at, n, rows, cols, bias + j, residual + at, flags);
#endif
      }
    }
  }
}

// The last `left` (1 to VW - 1) values of a line of k, zeros in the other lanes; p points at the first of them.
static vreal gemm_dot_tail(__global const stored* p, const int left, const int k) {
  if (k >= VW) return select((vreal)(0), VLOAD(p + left - VW), SB_LANES >= (vmask)(VW - left));
  real padded[VW];
  for (int i = 0; i < VW; ++i) padded[i] = i < left ? LOAD(p + i) : 0;
  return VLOAD(padded);
}

// sums[i][j] = the product of line i of a and line j of b, ROWS x COLS of them, vector by vector.
#define GEMM_DOT(name, ROWS, COLS)                                                                                  \
  static void name(__global const stored* a, const long a_row, __global const stored* b, const long b_col,          \
                   const int k, real* sums) {                                                                       \
    enum { rows_ = ROWS, cols_ = COLS };                                                                            \
    vreal acc[ROWS][COLS], u[ROWS], v[COLS];                                                                        \
    GEMM_TILE(i, j, acc[i][j] = (vreal)(0))                                                                         \
    int p = 0;                                                                                                      \
    for (; p + VW <= k; p += VW) {                                                                                  \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) u[i] = VLOAD(a + i * a_row + p);                             \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) v[j] = VLOAD(b + j * b_col + p);                             \
      GEMM_TILE(i, j, acc[i][j] = FMA(u[i], v[j], acc[i][j]))                                                       \
    }                                                                                                               \
    if (p < k) {                                                                                                    \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) u[i] = gemm_dot_tail(a + i * a_row + p, k - p, k);           \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) v[j] = gemm_dot_tail(b + j * b_col + p, k - p, k);           \
      GEMM_TILE(i, j, acc[i][j] = FMA(u[i], v[j], acc[i][j]))                                                       \
    }                                                                                                               \
    GEMM_TILE(i, j, sums[i * COLS + j] = sb_sum(acc[i][j]))                                                         \
  }
GEMM_DOT(gemm_dot_4x4, 4, 4)
GEMM_DOT(gemm_dot_4x1, 4, 1)
GEMM_DOT(gemm_dot_1x4, 1, 4)
GEMM_DOT(gemm_dot_1x1, 1, 1)

// C[z] (m x n, dense) = A[z] * B[z] with the epilogue of `flags` as in gemm, for few rows or few columns of operands
// that are contiguous along k: A(i,p) = a[i*a_row + p], B(p,j) = b[p + j*b_col]. Every weight is read once from memory,
// and nothing is packed. Groups: x = row_tiles*column_tiles, column tile fastest, rows and columns are dealt evenly in
// fours; z = batch. A sum has VW partial sums, added up in pairs at the end.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_dot(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const stored, bias), ARRAY(const stored, residual), ARRAY(stored, c),
    const int m, const int n, const int k, const long a_row, const long b_col, const int batch_inner,
    const long a_outer, const long a_inner, const long b_outer, const long b_inner, const int row_tiles,
    const int column_tiles, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  const int z = get_group_id(2);
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
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_reduce(ARRAY(const real, part),
                                                                         ARRAY(const stored, bias),
                                                                         ARRAY(const stored, residual), ARRAY(stored, c),
                                                                         const int n, const long total,
                                                                         const int splits, const int flags) {
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
    __global const stored* add = bias + column - i;
    for (; i + VW <= stop; i += VW) {
      vreal v = VLOAD(part + i);
      for (int s = 1; s < splits; ++s) v += VLOAD(part + s * total + i);
      if (flags & GEMM_ACCUMULATE) v += VLOAD(c + i);
      if (flags & GEMM_BIAS) v += VLOAD(add + i);
      if (flags & GEMM_RESIDUAL) v = VROUND(v) + VLOAD(residual + i);
      if (flags & GEMM_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      VSTORE(v, c + i);
    }
    for (; i < stop; ++i) {
      real v = part[i];
      for (int s = 1; s < splits; ++s) v += part[s * total + i];
      STORE(gemm_finish(v, c + i, add + i, residual + i, flags), c + i);
    }
  }
}
