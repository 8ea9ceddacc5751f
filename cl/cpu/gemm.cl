// Matrix product of a CPU device: C[z] (m x n) = A[z] (m x k) * B[z] (k x n), any strides, two batch axes.
//
// gemm: one group computes a tile of C, k block after k block of at most GEMM_KC. Its first row panel packs B into
// private memory (panels [k][GEMM_NR]), a panel just before or while it is used: where the columns of B lie side by
// side the register tile reads them in place and stores what it has read, which costs next to nothing; where they do
// not, a panel is transposed while it waits in the second-level cache, for some of whose lines the tile before has
// asked. The other row panels take the packed panels: a row panel of A stays in the first-level cache while the panels
// of B come from the second. A is read in place (GEMM_DIRECT_A), which is free because a row panel's lines are reused;
// where its rows are a multiple of 4 KiB apart, and would fall into the same cache sets, or its values along k 1 KiB or
// more, and two lines for each would not fit the first-level cache, a row panel is packed, too, just before its use
// ([k][GEMM_A_PITCH]). Every tile first asks for its lines of C. Sums run over k in ascending order, in equal blocks
// that follow from k alone: results depend neither on the tiles nor on the number of threads. 16-bit operands are
// widened as they are packed, A always, and a sum of several blocks stands in private memory until it is rounded.
//
// gemm_dot: both operands are contiguous along k and one of them has few lines; nothing is packed.
//
// Over 400 lines because packing, tiles and stores are of no use to another kernel and all kernels are one program.
// Program: core

// Rows and vectors of columns of the register tile: with the vectors of B and a broadcast they fit the register file of
// that width. 8 x 3 of 32 registers take 37 instructions for 24 multiply-adds, 14 x 2 took 50 for 28: what counts where
// a core gives half of its instructions to another thread. Rows that are left over are done in tiles of GEMM_MID and
// GEMM_LOW.
#define GEMM_MR_VW16 8
#define GEMM_MR_VW8 6
#define GEMM_MR_VW4 8
#define GEMM_MR_VW2 4
#define GEMM_COLS_VW16 3
#define GEMM_COLS_VW8 2
#define GEMM_COLS_VW4 2
#define GEMM_COLS_VW2 2
#define GEMM_MID_VW16 4
#define GEMM_MID_VW8 4
#define GEMM_MID_VW4 4
#define GEMM_MID_VW2 2
#define GEMM_LOW_VW16 2
#define GEMM_LOW_VW8 2
#define GEMM_LOW_VW4 2
#define GEMM_LOW_VW2 1
#define GEMM_PITCH_VW16 16  // rows of A that are packed together, whole vectors
#define GEMM_PITCH_VW8 8
#define GEMM_PITCH_VW4 8
#define GEMM_PITCH_VW2 4
#define GEMM_NR_VW16 48  // GEMM_COLS in columns
#define GEMM_NR_VW8 16
#define GEMM_NR_VW4 8
#define GEMM_NR_VW2 4
#define GEMM_ROW_PANELS_VW16 70
#define GEMM_ROW_PANELS_VW8 40
#define GEMM_ROW_PANELS_VW4 40
#define GEMM_ROW_PANELS_VW2 40
#define GEMM_COLUMN_PANELS_VW16 6
#define GEMM_COLUMN_PANELS_VW8 8
#define GEMM_COLUMN_PANELS_VW4 8
#define GEMM_COLUMN_PANELS_VW2 8
#ifndef GEMM_MR
#define GEMM_MR SB_JOIN(GEMM_MR_VW, VW)
#endif
#define GEMM_COLS SB_JOIN(GEMM_COLS_VW, VW)
#define GEMM_MID SB_JOIN(GEMM_MID_VW, VW)
#define GEMM_LOW SB_JOIN(GEMM_LOW_VW, VW)
#define GEMM_PITCH SB_JOIN(GEMM_PITCH_VW, VW)
#define GEMM_NR SB_JOIN(GEMM_NR_VW, VW)
#ifndef GEMM_KC
#define GEMM_KC 512  // most k values of a block; the blocks of a sum are equal
#endif
// Most of a group: a block of A then stays in the second-level cache.
#ifndef GEMM_ROW_PANELS
#define GEMM_ROW_PANELS SB_JOIN(GEMM_ROW_PANELS_VW, VW)
#endif
#ifndef GEMM_COLUMN_PANELS
#define GEMM_COLUMN_PANELS SB_JOIN(GEMM_COLUMN_PANELS_VW, VW)
#endif
// A packed panel of A is [k][GEMM_A_PITCH]; where a vector has the rows of two, each half goes to its panel.
#if VW == 16 && GEMM_MR == 8
#define GEMM_A_PANELS 2
#else
#define GEMM_A_PANELS 1
#endif
#define GEMM_A_PITCH (GEMM_PITCH / GEMM_A_PANELS)
#define GEMM_A_PANEL (GEMM_A_PITCH * GEMM_KC + VW)  // values from one panel to the next
#define GEMM_REDUCE_BLOCK 4096                      // values per group of gemm_reduce

#define GEMM_ACCUMULATE 1
#define GEMM_BIAS 2
#define GEMM_RELU 4
#define GEMM_RESIDUAL 8
#define GEMM_DIRECT_A 16

// Every element of an operand is read, and every element of a result read and written, by these.
#define GEMM_READ(p) LOAD(p)
#define GEMM_READ_VECTOR(p) VLOAD(p)
#define GEMM_READ_RESULT(p) LOAD(p)
#define GEMM_READ_RESULT_VECTOR(p) VLOAD(p)
#define GEMM_WRITE(v, p) STORE((v), (p))
#define GEMM_WRITE_VECTOR(v, p) VSTORE((v), (p))

// Where the sums over k stand, and which flags are left for when they are whole: sums in f32 stand in C and begin with
// what was there.
#ifdef SAMEBYTES_STORE_16
#define GEMM_SUMS real
#define GEMM_IN_EPILOGUE ~0
#else
#define GEMM_SUMS __global real
#define GEMM_IN_EPILOGUE ~GEMM_ACCUMULATE
#endif

// Hints to bring a line into the second-level cache, or into the first to be written; where the compiler has none,
// nothing. Only under PoCL, since Oclgrind does not know them.
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define GEMM_ASK(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#define GEMM_ASK_TO_WRITE(p) __builtin_prefetch((const void*)(size_t)(p), 1, 3)
#endif
#endif
#ifndef GEMM_ASK
#define GEMM_ASK(p)
#define GEMM_ASK_TO_WRITE(p)
#endif
#define GEMM_AHEAD 12  // lines of B in place that are asked for before they are used

// Stores a packed vector to out, or where it has the rows of two panels of A, each half to its panel: what lies behind
// it in the panel is stored later.
static void gemm_put(const vreal v, real* out, const int is_a) {
  VSTORE(v, out);
#if GEMM_A_PANELS == 2
  if (is_a) VSTORE((vreal)(v.hi, v.lo), out + GEMM_A_PANEL);
#endif
}

// Packs kc values of GEMM_PITCH lines of A, or of GEMM_NR lines of B as [k][GEMM_NR]: out[p][i] = src[i*line + p*step].
// `there` (at least 1) lines exist from src on; in place of missing ones is anything (their results are never stored).
// Where line is 1 vectors are copied, where step is 1 blocks of VW x VW are transposed in registers.
static void gemm_pack(__global const stored* src, const long line, const long step, const int there, const int kc,
                      const int is_a, real* out) {
  const int lines = is_a ? GEMM_PITCH : GEMM_NR, pitch = is_a ? GEMM_A_PITCH : GEMM_NR;
  int p = 0;
  if (line == 1) {
    // A vector may reach into the next steps, not beyond the last one.
    for (; p < kc && (there >= lines || (kc - 1 - p) * step + there >= lines); ++p) {
      for (int l = 0; l < lines; l += VW) gemm_put(GEMM_READ_VECTOR(src + p * step + l), out + p * pitch + l, is_a);
    }
  } else if (step == 1) {
    for (; p + VW <= kc; p += VW) {
      for (int block = 0; block < lines; block += VW) {
        __global const stored* from = src + block * line + p;
        vreal r[VW];
        if (block + VW <= there) {
#pragma unroll
          for (int l = 0; l < VW; ++l) {
            r[l] = GEMM_READ_VECTOR(from + l * line);
            GEMM_ASK(from + l * line + 2 * VW);
          }
        } else {
#pragma unroll
          for (int l = 0; l < VW; ++l) r[l] = GEMM_READ_VECTOR(src + min(block + l, there - 1) * line + p);
        }
        sb_transpose(r);
#pragma unroll
        for (int q = 0; q < VW; ++q) gemm_put(r[q], out + (p + q) * pitch + block, is_a);
      }
    }
  }
  for (; p < kc; ++p) {
    for (int l = 0; l < lines; ++l)
      out[p * pitch + l + (l < pitch ? 0 : GEMM_A_PANEL - pitch)] =
          GEMM_READ(src + min(l, there - 1) * line + p * step);
  }
}

// One value with the epilogue; what a 16-bit product is before more is added to it was rounded. NaN passes the ReLU.
static real gemm_finish(real v, __global const stored* c, __global const real* bias, __global const stored* residual,
                        const int flags) {
  if (flags & GEMM_ACCUMULATE) v += GEMM_READ_RESULT(c);
  if (flags & GEMM_BIAS) v += *bias;
  if (flags & GEMM_RESIDUAL) v = ROUND(v) + GEMM_READ_RESULT(residual);
  return (flags & GEMM_RELU) && v < 0 ? 0 : v;
}

// Stores rows x cols of a tile [rows][GEMM_NR] to the sums (row stride lds), or adds it.
static void gemm_store(const real* tile, GEMM_SUMS* sums, const int lds, const int rows, const int cols,
                       const int accumulate) {
  for (int i = 0; i < rows; ++i, tile += GEMM_NR, sums += lds) {
    int j = 0;
    for (; j + VW <= cols; j += VW) {
      const vreal v = VLOAD(tile + j);
      VSTORE(accumulate ? v + VLOAD(sums + j) : v, sums + j);
    }
    for (; j < cols; ++j) sums[j] = accumulate ? tile[j] + sums[j] : tile[j];
  }
}

// The epilogue, in an f32 program but for GEMM_ACCUMULATE, from rows x cols of sums (rows lds apart) to c (ldc apart),
// which in an f32 program may be the same; bias points at the first column.
static void gemm_epilogue(const GEMM_SUMS* sums, const int lds, __global stored* c, const int ldc, const int rows,
                          const int cols, __global const real* bias, __global const stored* residual, const int flags) {
  for (int i = 0; i < rows; ++i, sums += lds, c += ldc, residual += ldc) {
    int j = 0;
    for (; j + VW <= cols; j += VW) {
      vreal v = VLOAD(sums + j);
#ifdef SAMEBYTES_STORE_16
      if (flags & GEMM_ACCUMULATE) v += GEMM_READ_RESULT_VECTOR(c + j);
#endif
      if (flags & GEMM_BIAS) v += VLOAD(bias + j);
      if (flags & GEMM_RESIDUAL) v = VROUND(v) + GEMM_READ_RESULT_VECTOR(residual + j);
      if (flags & GEMM_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      GEMM_WRITE_VECTOR(v, c + j);
    }
    for (; j < cols; ++j)
      GEMM_WRITE(gemm_finish(sums[j], c + j, bias + j, residual + j, flags & GEMM_IN_EPILOGUE), c + j);
  }
}

// Columns before panel `panel` of n. Panels are GEMM_COLS vectors wide; where one vector would be left over for a tile
// of three, the last two panels have two.
static int gemm_column(const int panel, const int n) {
  const int vectors = (n + VW - 1) / VW, panels = (vectors + GEMM_COLS - 1) / GEMM_COLS;
  const int is_even = GEMM_COLS == 3 && vectors % 3 == 1 && panel > 0 && panel == panels - 1;
  return min(n, panel * GEMM_NR - (is_even ? VW : 0));
}

// Tiles are functions of their own: inlined, they take the compiler longer and one another's registers.
#define GEMM_FUNCTION static __attribute__((noinline)) void

// One register tile, ROWS x (COLS*VW), over kc values of A and kc lines of B, PITCH apart, STEPS of them in one turn of
// the loop; A##_ROW(i, u) is A(i,p+u). EACH is done with every line, TURN once a turn.
#define GEMM_TILE(i, j, statement)                                   \
  _Pragma("unroll") for (int i = 0; i < rows_; ++i) {                \
    _Pragma("unroll") for (int j = 0; j < cols_; ++j) { statement; } \
  }
#define GEMM_PRODUCT(ROWS, COLS, STEPS, A, READ_B, PITCH, EACH, TURN)                                    \
  enum { rows_ = ROWS, cols_ = COLS };                                                                   \
  vreal acc[ROWS][COLS];                                                                                 \
  GEMM_TILE(i, j, acc[i][j] = (vreal)(0))                                                                \
  A##_BEGIN;                                                                                             \
  int p = 0;                                                                                             \
  for (; p + STEPS <= kc; p += STEPS) {                                                                  \
    TURN;                                                                                                \
    _Pragma("unroll") for (int u = 0; u < STEPS; ++u) { GEMM_STEP(ROWS, COLS, A, READ_B, PITCH, EACH); } \
    b += STEPS * (PITCH);                                                                                \
    A##_NEXT(STEPS);                                                                                     \
    SB_HIDE(b);                                                                                          \
  }                                                                                                      \
  if (STEPS > 1) {                                                                                       \
    const int u = 0;                                                                                     \
    for (; p < kc; ++p) {                                                                                \
      GEMM_STEP(ROWS, COLS, A, READ_B, PITCH, EACH);                                                     \
      b += PITCH;                                                                                        \
      A##_NEXT(1);                                                                                       \
      SB_HIDE(b);                                                                                        \
    }                                                                                                    \
  }
#define GEMM_STEP(ROWS, COLS, A, READ_B, PITCH, EACH)                                            \
  vreal line[COLS];                                                                              \
  _Pragma("unroll") for (int j = 0; j < COLS; ++j) line[j] = READ_B(b + u * (PITCH) + j * VW);   \
  EACH;                                                                                          \
  _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                             \
    const vreal value = (vreal)(A##_ROW(i, u));                                                  \
    _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(value, line[j], acc[i][j]); \
  }                                                                                              \
  A##_STEP
// A packed panel.
#define GEMM_PANEL_ARGUMENTS const real* a
#define GEMM_PANEL_BEGIN
#define GEMM_PANEL_ROW(i, u) a[(u)*GEMM_A_PITCH + (i)]
#define GEMM_PANEL_STEP
#define GEMM_PANEL_NEXT(steps) \
  a += (steps)*GEMM_A_PITCH;   \
  SB_HIDE(a)
// A in place, rows a_line and steps a_step apart: one pointer, and distances that loads take as an operand.
#define GEMM_PLACE_ARGUMENTS __global const real *a, const long a_line, const long a_step
#define GEMM_PLACE_BEGIN                                              \
  long line_3 = 3 * a_line, line_5 = 5 * a_line, line_7 = 7 * a_line; \
  SB_HIDE(line_3);                                                    \
  SB_HIDE(line_5);                                                    \
  SB_HIDE(line_7)
#define GEMM_PLACE_ROW(i, u) \
  a[(i) == 3 ? line_3 : (i) == 5 ? line_5 : (i) == 6 ? 2 * line_3 : (i) == 7 ? line_7 : (i)*a_line]
#define GEMM_PLACE_STEP \
  a += a_step;          \
  SB_HIDE(a)
#define GEMM_PLACE_NEXT(steps)
// Packs the line that has just been read, in whole panels, and asks for a later one.
#define GEMM_EACH_KEEP(COLS)                                                \
  _Pragma("unroll") for (int j = 0; j < GEMM_COLS; ++j) {                   \
    VSTORE(j < COLS ? line[j < COLS ? j : 0] : (vreal)(0), panel + j * VW); \
    if (j < COLS) GEMM_ASK(b + GEMM_AHEAD * b_row + j * VW);                \
  }                                                                         \
  panel += GEMM_NR
#define GEMM_NOTHING
// Asks for a vector of the lines at next, 16 of each.
#define GEMM_TURN_ASK \
  GEMM_ASK(next);     \
  next += (p & 15) == 15 ? next_line - 15 * VW : VW
// Whole rows of COLS vectors, stored from the registers. B is a packed panel; asking, the next lines of an operand are
// asked for; first, B is in place and is packed for the tiles to come.
#define GEMM_MICRO_WHOLE(name, COLS, STEPS, A)                                                                        \
  GEMM_FUNCTION name(A##_ARGUMENTS, const real* b, const int kc, GEMM_SUMS* c, const int ldc, const int accumulate) { \
    GEMM_WHOLE(COLS, STEPS, A, VLOAD, GEMM_NR, GEMM_NOTHING, GEMM_NOTHING);                                           \
  }
#define GEMM_MICRO_FIRST(name, COLS, A)                                                                     \
  GEMM_FUNCTION name(A##_ARGUMENTS, __global const stored* b, const long b_row, const int kc, GEMM_SUMS* c, \
                     const int ldc, const int accumulate, real* panel) {                                    \
    GEMM_WHOLE(COLS, 1, A, GEMM_READ_VECTOR, b_row, GEMM_EACH_KEEP(COLS), GEMM_NOTHING);                    \
  }
#define GEMM_MICRO_ASKING(name, A)                                                                                  \
  GEMM_FUNCTION name(A##_ARGUMENTS, const real* b, const int kc, GEMM_SUMS* c, const int ldc, const int accumulate, \
                     __global const stored* next, const long next_line) {                                           \
    GEMM_WHOLE(GEMM_COLS, 1, A, VLOAD, GEMM_NR, GEMM_NOTHING, GEMM_TURN_ASK);                                       \
  }
#define GEMM_WHOLE(COLS, STEPS, A, READ_B, PITCH, EACH, TURN)                                       \
  _Pragma("unroll") for (int i = 0; i < GEMM_MR; ++i) {                                             \
    _Pragma("unroll") for (int j = 0; j < COLS; ++j) GEMM_ASK_TO_WRITE(c + (long)i * ldc + j * VW); \
  }                                                                                                 \
  GEMM_PRODUCT(GEMM_MR, COLS, STEPS, A, READ_B, PITCH, EACH, TURN)                                  \
  if (accumulate) GEMM_TILE(i, j, acc[i][j] += VLOAD(c + (long)i * ldc + j * VW))                   \
  GEMM_TILE(i, j, VSTORE(acc[i][j], c + (long)i * ldc + j * VW))
// A part of a tile, left in tile [ROWS][GEMM_NR]; in place, B is not packed.
#define GEMM_MICRO(name, ROWS, COLS, A)                                        \
  GEMM_FUNCTION name(A##_ARGUMENTS, const real* b, const int kc, real* tile) { \
    GEMM_PRODUCT(ROWS, COLS, 1, A, VLOAD, GEMM_NR, GEMM_NOTHING, GEMM_NOTHING) \
    GEMM_TILE(i, j, VSTORE(acc[i][j], tile + i * GEMM_NR + j * VW))            \
  }
#define GEMM_MICRO_IN_PLACE(name, ROWS)                                                                            \
  GEMM_FUNCTION name(GEMM_PANEL_ARGUMENTS, __global const stored* b, const long b_row, const int kc, real* tile) { \
    GEMM_PRODUCT(ROWS, GEMM_COLS, 1, GEMM_PANEL, GEMM_READ_VECTOR, b_row, GEMM_NOTHING, GEMM_NOTHING)              \
    GEMM_TILE(i, j, VSTORE(acc[i][j], tile + i * GEMM_NR + j * VW))                                                \
  }
#define GEMM_FAMILY(name, A)                     \
  GEMM_MICRO_WHOLE(name, GEMM_COLS, 4, A)        \
  GEMM_MICRO_WHOLE(name##_pair, 2, 2, A)         \
  GEMM_MICRO_FIRST(name##_first, GEMM_COLS, A)   \
  GEMM_MICRO_FIRST(name##_pair_first, 2, A)      \
  GEMM_MICRO_ASKING(name##_asking, A)            \
  GEMM_MICRO(name##_part, GEMM_MR, GEMM_COLS, A) \
  GEMM_MICRO(name##_narrow, GEMM_MR, 1, A)       \
  GEMM_MICRO(name##_mid, GEMM_MID, GEMM_COLS, A) \
  GEMM_MICRO(name##_low, GEMM_LOW, GEMM_COLS, A)
#ifndef SAMEBYTES_STORE_16
GEMM_FAMILY(gemm_place, GEMM_PLACE)
#endif
GEMM_FAMILY(gemm_panel, GEMM_PANEL)
GEMM_MICRO_IN_PLACE(gemm_panel_mid_in_place, GEMM_MID)
GEMM_MICRO_IN_PLACE(gemm_panel_low_in_place, GEMM_LOW)

// C[z] (m x n, dense) = A[z] * B[z] with the epilogue of `flags` (accumulate 1, bias 2, ReLU 4, residual [z] (m x n,
// dense) 8; in the order accumulate, bias, residual, ReLU), or where part is there, part[split][z] (as C) = the product
// over the split's part of k, without one. 16: rows of A are read in
// place. A(i,p) = a[i*a_row + p*a_col], B(p,j) = b[p*b_row + j*b_col]; z = outer*batch_inner + inner picks the matrices
// by the four batch strides. Groups: x = row_tiles*column_tiles, column tile fastest; y = splits; z = batch. The
// panels of GEMM_MR rows and of GEMM_NR columns are dealt evenly to the tiles; a tile has at most GEMM_ROW_PANELS and
// GEMM_COLUMN_PANELS. Accumulates in `real`.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm(
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), ARRAY(real, part), const int m, const int n, const int k, const long a_row, const long a_col,
    const long b_row, const long b_col, const int batch_inner, const long a_outer, const long a_inner,
    const long b_outer, const long b_inner, const int row_tiles, const int column_tiles, const int split_k,
    const int flags) {
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
  const int panel0 = (int)(column_panels * column_tile / column_tiles);
  const int panel1 = (int)(column_panels * (column_tile + 1) / column_tiles);
  const int k0 = split * split_k, k1 = min(k, k0 + split_k);
  const int outer = z / batch_inner, inner = z - outer * batch_inner;
  a += outer * a_outer + inner * a_inner;
  b += outer * b_outer + inner * b_inner;
  c += (long)z * m * n;
  part += ((long)split * get_num_groups(2) + z) * m * n;
  residual += (long)z * m * n;
  const int blocks = (k1 - k0 + GEMM_KC - 1) / GEMM_KC;
  const int block_k = ((k1 - k0 + blocks - 1) / blocks + VW - 1) / VW * VW;

  vreal a_block[GEMM_A_PANELS * GEMM_A_PANEL / VW];  // vectors, so that they are aligned
  vreal b_block[GEMM_COLUMN_PANELS * GEMM_NR * GEMM_KC / VW];
  real tile[GEMM_PITCH * GEMM_NR];
#ifdef SAMEBYTES_STORE_16
  const int lds = blocks == 1 ? GEMM_NR : GEMM_COLUMN_PANELS * GEMM_NR;  // one block: a tile is whole at once
  vreal sums[GEMM_ROW_PANELS * GEMM_MR * GEMM_COLUMN_PANELS * GEMM_NR / VW];
#else
  const int lds = n;
  __global real* sums = is_part ? part : c;
#endif
  for (int kb = k0; kb < k1; kb += block_k) {
    const int kc = min(block_k, k1 - kb);
#ifdef SAMEBYTES_STORE_16
    const int accumulate = kb > k0, finishes = kb + kc == k1;
#else
    const int accumulate = kb > k0 || (flags & GEMM_ACCUMULATE);
    const int finishes = kb + kc == k1 && (flags & (GEMM_BIAS | GEMM_RELU | GEMM_RESIDUAL));
#endif
    for (int i = row0; i < row1; i += GEMM_MR) {
      const int rows = min(GEMM_MR, row1 - i);
      __global const stored* from_a = a + i * a_row + kb * a_col;
#ifdef SAMEBYTES_STORE_16
      const int direct = 0;
#else
      // Rows that do not fill a register tile are packed, too, unless there are enough rows before them.
      const int direct = (flags & GEMM_DIRECT_A) && (rows == GEMM_MR || i >= row0 + GEMM_MID);
#endif
      const int together = (i - row0) / GEMM_MR % GEMM_A_PANELS;
      if (!direct && together == 0) gemm_pack(from_a, a_row, a_col, m - i, kc, 1, (real*)a_block);
      const real* ap = (const real*)a_block + together * GEMM_A_PANEL;
      for (int panel = panel0; panel < panel1; ++panel) {
        const int j = gemm_column(panel, n), cols = gemm_column(panel + 1, n) - j, is_last = panel + 1 == panel1;
        const int is_pair = cols == 2 * VW && cols < GEMM_NR;
        const int is_whole = rows == GEMM_MR && (cols == GEMM_NR || is_pair);
        __global const stored* from_b = b + kb * b_row + j * b_col;
        real* bp = (real*)b_block + (panel - panel0) * GEMM_NR * GEMM_KC;
        const long at = (long)i * n + j;
#ifdef SAMEBYTES_STORE_16
        real* to = (real*)sums + (blocks == 1 ? 0 : (i - row0) * lds + j - gemm_column(panel0, n));
#else
        __global real* to = sums + at;
#endif
        // B in place: packed by the first whole tile, or used by the only part of one.
        const int in_place = i == row0 && b_col == 1 && (cols == GEMM_NR || is_whole);
        if (i == row0 && !in_place) gemm_pack(from_b, b_col, b_row, n - j, kc, 0, bp);
        if (is_whole) {
          const int asks = !is_pair && i == row0 && !is_last;  // for lines of the next panel of B
          __global const stored* next = from_b + GEMM_NR * b_col;
#ifndef SAMEBYTES_STORE_16
          if (in_place && direct && is_pair)
            gemm_place_pair_first(from_a, a_row, a_col, from_b, b_row, kc, to, lds, accumulate, bp);
          else if (in_place && direct)
            gemm_place_first(from_a, a_row, a_col, from_b, b_row, kc, to, lds, accumulate, bp);
          else if (direct && is_pair)
            gemm_place_pair(from_a, a_row, a_col, bp, kc, to, lds, accumulate);
          else if (direct && asks)
            gemm_place_asking(from_a, a_row, a_col, bp, kc, to, lds, accumulate, next, b_col);
          else if (direct)
            gemm_place(from_a, a_row, a_col, bp, kc, to, lds, accumulate);
          else
#endif
              if (in_place && is_pair)
            gemm_panel_pair_first(ap, from_b, b_row, kc, to, lds, accumulate, bp);
          else if (in_place)
            gemm_panel_first(ap, from_b, b_row, kc, to, lds, accumulate, bp);
          else if (is_pair)
            gemm_panel_pair(ap, bp, kc, to, lds, accumulate);
          else if (asks)
            gemm_panel_asking(ap, bp, kc, to, lds, accumulate, next, b_col);
          else
            gemm_panel(ap, bp, kc, to, lds, accumulate);
#ifndef SAMEBYTES_STORE_16
        } else if (direct && (cols <= VW || rows == GEMM_MR)) {  // whole rows, some of them once more
          __global const real* from = from_a - (GEMM_MR - rows) * a_row;
          if (cols <= VW)
            gemm_place_narrow(from, a_row, a_col, bp, kc, tile);
          else
            gemm_place_part(from, a_row, a_col, bp, kc, tile);
          gemm_store(tile + (GEMM_MR - rows) * GEMM_NR, to, lds, rows, cols, accumulate);
        } else if (direct) {  // the last part goes back, too, where it lacks rows
          for (int r = 0; r < rows;) {
            const int mid = rows - r > GEMM_LOW, taken = mid ? GEMM_MID : GEMM_LOW, back = max(0, r + taken - rows);
            if (mid)
              gemm_place_mid(from_a + (r - back) * a_row, a_row, a_col, bp, kc, tile);
            else
              gemm_place_low(from_a + (r - back) * a_row, a_row, a_col, bp, kc, tile);
            gemm_store(tile + back * GEMM_NR, to + (long)r * lds, lds, taken - back, cols, accumulate);
            r += taken;
          }
#endif
        } else {
          if (cols <= VW)
            gemm_panel_narrow(ap, bp, kc, tile);
          else if (rows == GEMM_MR)
            gemm_panel_part(ap, bp, kc, tile);
          else {
            for (int r = 0; r < rows;) {
              const int mid = rows - r > GEMM_LOW;
              if (mid && in_place)
                gemm_panel_mid_in_place(ap + r, from_b, b_row, kc, tile + r * GEMM_NR);
              else if (in_place)
                gemm_panel_low_in_place(ap + r, from_b, b_row, kc, tile + r * GEMM_NR);
              else if (mid)
                gemm_panel_mid(ap + r, bp, kc, tile + r * GEMM_NR);
              else
                gemm_panel_low(ap + r, bp, kc, tile + r * GEMM_NR);
              r += mid ? GEMM_MID : GEMM_LOW;
            }
          }
          gemm_store(tile, to, lds, rows, cols, accumulate);
        }
#ifdef SAMEBYTES_STORE_16
        if (finishes && is_part) {
          for (int r = 0; r < rows; ++r) {
            for (int q = 0; q < cols; q += VW) sb_store(VLOAD(to + r * lds + q), part + at + (long)r * n + q, cols - q);
          }
          continue;
        }
#endif
        if (finishes) gemm_epilogue(to, lds, c + at, n, rows, cols, bias + j, residual + at, flags);
      }
    }
  }
}

// The last `left` (1 to VW - 1) values of a line of k, zeros in the other lanes; p points at the first of them.
static vreal gemm_dot_tail(__global const stored* p, const int left, const int k) {
  if (k >= VW) return select((vreal)(0), GEMM_READ_VECTOR(p + left - VW), SB_LANES >= (vmask)(VW - left));
  real padded[VW];
  for (int i = 0; i < VW; ++i) padded[i] = i < left ? GEMM_READ(p + i) : 0;
  return VLOAD(padded);
}

// sums[i][j] = the product of line i of a and line j of b, ROWS x COLS of them, vector by vector.
#define GEMM_DOT(name, ROWS, COLS)                                                                         \
  static void name(__global const stored* a, const long a_row, __global const stored* b, const long b_col, \
                   const int k, real* sums) {                                                              \
    enum { rows_ = ROWS, cols_ = COLS };                                                                   \
    vreal acc[ROWS][COLS], u[ROWS], v[COLS];                                                               \
    GEMM_TILE(i, j, acc[i][j] = (vreal)(0))                                                                \
    int p = 0;                                                                                             \
    for (; p + VW <= k; p += VW) {                                                                         \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) u[i] = GEMM_READ_VECTOR(a + i * a_row + p);         \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) v[j] = GEMM_READ_VECTOR(b + j * b_col + p);         \
      GEMM_TILE(i, j, acc[i][j] = FMA(u[i], v[j], acc[i][j]))                                              \
    }                                                                                                      \
    if (p < k) {                                                                                           \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) u[i] = gemm_dot_tail(a + i * a_row + p, k - p, k);  \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) v[j] = gemm_dot_tail(b + j * b_col + p, k - p, k);  \
      GEMM_TILE(i, j, acc[i][j] = FMA(u[i], v[j], acc[i][j]))                                              \
    }                                                                                                      \
    GEMM_TILE(i, j, sums[i * COLS + j] = sb_sum(acc[i][j]))                                                \
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
    ARRAY(const stored, a), ARRAY(const stored, b), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), const int m, const int n, const int k, const long a_row, const long b_col, const int batch_inner,
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
          GEMM_WRITE(gemm_finish(sums[r * cols + s], c + at, bias + j + s, residual + at, flags), c + at);
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
      if (flags & GEMM_ACCUMULATE) v += GEMM_READ_RESULT_VECTOR(c + i);
      if (flags & GEMM_BIAS) v += VLOAD(add + i);
      if (flags & GEMM_RESIDUAL) v = VROUND(v) + GEMM_READ_RESULT_VECTOR(residual + i);
      if (flags & GEMM_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      GEMM_WRITE_VECTOR(v, c + i);
    }
    for (; i < stop; ++i) {
      real v = part[i];
      for (int s = 1; s < splits; ++s) v += part[s * total + i];
      GEMM_WRITE(gemm_finish(v, c + i, add + i, residual + i, flags), c + i);
    }
  }
}
