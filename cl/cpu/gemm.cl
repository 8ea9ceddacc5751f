// Matrix product of a CPU device: C[z] (m x n) = A[z] (m x k) * B[z] (k x n), any strides, two batch axes.
//
//   gemm: a group computes a tile of C                                  what lies where
//     for a block of at most GEMM_KC values of k:
//       for a panel of GEMM_MR rows of A:                               first-level cache, in place or packed
//         for a panel of GEMM_NR columns of B:                          second-level cache, packed by the first row
//         panel
//           a register tile: GEMM_MR x GEMM_COLS vectors, all of k      registers                     gemm_tile.clh
//           add it to the sums, finish them with the last block         C, or private memory          gemm_store.clh
//
// Why it is fast. The first row panel packs B into private memory (panels [k][GEMM_NR]), a panel just before or while
// it is used: where the columns of B lie side by side the register tile reads them in place and stores what it has
// read, which costs next to nothing; where they do not, a panel is transposed while it waits in the second-level cache,
// for some of whose lines the tile before has asked. The other row panels take the packed panels: a row panel of A
// stays in the first-level cache while the panels of B come from the second. A is read in place (GEMM_DIRECT_A), which
// is free because a row panel's lines are reused; where its rows are a multiple of 4 KiB apart, and would fall into the
// same cache sets, or its values along k 1 KiB or more, and two lines for each would not fit the first-level cache, a
// row panel is packed, too, just before its use ([k][GEMM_A_PITCH]). Every tile first asks for its lines of C. Sums run
// over k in ascending order, in equal blocks that follow from k alone: results depend neither on the tiles nor on the
// number of threads. 16-bit operands are widened as they are packed, A always, and a sum of several blocks stands in
// private memory until it is rounded.
//
// gemm_dot: both operands are contiguous along k and one of them has few lines; nothing is packed.
// Program: core
#include "cpu/gemm_tile.clh"

// Columns before panel `panel` of n. Panels are GEMM_COLS vectors wide; where one vector would be left over for a tile
// of three, the last two panels have two.
static int gemm_column(const int panel, const int n) {
  const int vectors = (n + VW - 1) / VW, panels = (vectors + GEMM_COLS - 1) / GEMM_COLS;
  const int is_even = GEMM_COLS == 3 && vectors % 3 == 1 && panel > 0 && panel == panels - 1;
  return min(n, panel * GEMM_NR - (is_even ? VW : 0));
}

// A group's share of a product: the matrices of its place in the batch, row panels and column panels of them.
typedef struct {
  __global const stored *a, *b, *residual;
  __global const real* bias;
  __global stored* c;
  __global real* part;  // of a split, else null
  long a_row, a_col, b_row, b_col;
  int n, flags, row0, row1, panel0, panel1;
  real *a_block, *b_block, *tile;  // packed panels, and a tile that is stored in part
  GEMM_SUMS* sums;
  int lds, is_one_block;
} gemm_group;

// Rows that do not fill a register tile, of A in place: whole rows, some of them once more, or the lower tiles, of
// which the last goes back where it lacks rows.
#ifndef SAMEBYTES_STORE_16
GEMM_INLINE void gemm_place_rest(const gemm_operands* q, real* tile, GEMM_SUMS* to, const int lds, const int rows,
                                 const int cols) {
  if (cols <= VW || rows == GEMM_MR) {
    __global const real* from = q->a - (GEMM_MR - rows) * q->a_row;
    if (cols <= VW)
      gemm_place_narrow(from, q->a_row, q->a_col, q->packed_b, q->kc, tile);
    else
      gemm_place_part(from, q->a_row, q->a_col, q->packed_b, q->kc, tile);
    gemm_store(tile + (GEMM_MR - rows) * GEMM_NR, to, lds, rows, cols, q->accumulate);
    return;
  }
  for (int r = 0; r < rows;) {
    const int mid = rows - r > GEMM_LOW, taken = mid ? GEMM_MID : GEMM_LOW, back = max(0, r + taken - rows);
    if (mid)
      gemm_place_mid(q->a + (r - back) * q->a_row, q->a_row, q->a_col, q->packed_b, q->kc, tile);
    else
      gemm_place_low(q->a + (r - back) * q->a_row, q->a_row, q->a_col, q->packed_b, q->kc, tile);
    gemm_store(tile + back * GEMM_NR, to + (long)r * lds, lds, taken - back, cols, q->accumulate);
    r += taken;
  }
}
#endif

// The same of a packed panel of A, which has rows enough for the lower tiles.
GEMM_INLINE void gemm_panel_rest(const gemm_operands* q, real* tile, GEMM_SUMS* to, const int lds, const int rows,
                                 const int cols) {
  if (cols <= VW)
    gemm_panel_narrow(q->packed_a, q->packed_b, q->kc, tile);
  else if (rows == GEMM_MR)
    gemm_panel_part(q->packed_a, q->packed_b, q->kc, tile);
  else {
    for (int r = 0; r < rows;) {
      const int mid = rows - r > GEMM_LOW;
      if (mid && q->in_place)
        gemm_panel_mid_in_place(q->packed_a + r, q->b, q->b_row, q->kc, tile + r * GEMM_NR);
      else if (q->in_place)
        gemm_panel_low_in_place(q->packed_a + r, q->b, q->b_row, q->kc, tile + r * GEMM_NR);
      else if (mid)
        gemm_panel_mid(q->packed_a + r, q->packed_b, q->kc, tile + r * GEMM_NR);
      else
        gemm_panel_low(q->packed_a + r, q->packed_b, q->kc, tile + r * GEMM_NR);
      r += mid ? GEMM_MID : GEMM_LOW;
    }
  }
  gemm_store(tile, to, lds, rows, cols, q->accumulate);
}

// The tile of `rows` rows from i on and of a column panel, for the block of k of q; `finishes`: with the epilogue.
GEMM_INLINE void gemm_one_tile(const gemm_group* g, gemm_operands* q, const int i, const int rows, const int panel,
                               const int finishes) {
  const int j = gemm_column(panel, g->n), cols = gemm_column(panel + 1, g->n) - j, is_last = panel + 1 == g->panel1;
  const int is_pair = cols == 2 * VW && cols < GEMM_NR, is_first = i == g->row0;
  const int is_whole = rows == GEMM_MR && (cols == GEMM_NR || is_pair);
  const long at = (long)i * g->n + j;
  q->packed_b = g->b_block + (panel - g->panel0) * GEMM_NR * GEMM_KC;
#ifdef SAMEBYTES_STORE_16
  real* to = g->sums + (g->is_one_block ? 0 : (i - g->row0) * g->lds + j - gemm_column(g->panel0, g->n));
#else
  __global real* to = g->sums + at;
#endif
  // B in place: packed by the first whole tile, or used by the only part of one.
  q->in_place = is_first && q->b_col == 1 && (cols == GEMM_NR || is_whole);
  if (is_first && !q->in_place) gemm_pack(q->b, q->b_col, q->b_row, g->n - j, q->kc, 0, q->packed_b);
  const int asks = !is_pair && is_first && !is_last;
#ifndef SAMEBYTES_STORE_16
  if (is_whole && q->direct)
    gemm_place_whole(q, to, g->lds, is_pair, asks);
  else if (q->direct)
    gemm_place_rest(q, g->tile, to, g->lds, rows, cols);
  else
#endif
      if (is_whole)
    gemm_panel_whole(q, to, g->lds, is_pair, asks);
  else
    gemm_panel_rest(q, g->tile, to, g->lds, rows, cols);
  if (!finishes) return;
#ifdef SAMEBYTES_STORE_16
  if (g->part) {
    for (int r = 0; r < rows; ++r) {
      for (int p = 0; p < cols; p += VW)
        sb_store(VLOAD(to + r * g->lds + p), g->part + at + (long)r * g->n + p, cols - p);
    }
    return;
  }
#endif
  gemm_epilogue(to, g->lds, g->c + at, g->n, rows, cols, g->bias + j, g->residual + at, g->flags);
}

// The group's tile of C, summed over the block of k values k0 to k0 + kc - 1.
GEMM_INLINE void gemm_block(const gemm_group* g, const int m, const int k0, const int kc, const int accumulate,
                            const int finishes) {
  gemm_operands q = {.a_row = g->a_row, .a_col = g->a_col, .b_row = g->b_row, .b_col = g->b_col, .kc = kc};
  q.accumulate = accumulate;
  for (int i = g->row0; i < g->row1; i += GEMM_MR) {
    const int rows = min(GEMM_MR, g->row1 - i), together = (i - g->row0) / GEMM_MR % GEMM_A_PANELS;
    q.a = g->a + i * q.a_row + k0 * q.a_col;
#ifdef SAMEBYTES_STORE_16
    q.direct = 0;
#else
    // Rows that do not fill a register tile are packed, too, unless there are enough rows before them.
    q.direct = (g->flags & GEMM_DIRECT_A) && (rows == GEMM_MR || i >= g->row0 + GEMM_MID);
#endif
    if (!q.direct && together == 0) gemm_pack(q.a, q.a_row, q.a_col, m - i, kc, 1, g->a_block);
    q.packed_a = g->a_block + together * GEMM_A_PANEL;
    for (int panel = g->panel0; panel < g->panel1; ++panel) {
      q.b = g->b + k0 * q.b_row + gemm_column(panel, g->n) * q.b_col;
      gemm_one_tile(g, &q, i, rows, panel, finishes);
    }
  }
}

// C[z] = A[z] * B[z] (shared/gemm.h) with the epilogue of `flags`, or where part is there, part[split][z] (as C) = the
// product over the split's part of k, without one. Groups: x = row_tiles*column_tiles, column tile fastest; y = splits;
// z = batch. The panels of GEMM_MR rows and of GEMM_NR columns are dealt evenly to the tiles; a tile has at most
// GEMM_ROW_PANELS and GEMM_COLUMN_PANELS. Accumulates in `real`.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm(ARRAY(const stored, a), ARRAY(const stored, b),
                                                                  ARRAY(const real, bias),
                                                                  ARRAY(const stored, residual), ARRAY(stored, c),
                                                                  ARRAY(real, part), const gemm_sizes s,
                                                                  const gemm_shares share, const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  START(part);
  GEMM_NAMES(s);
  const int is_part = part != 0;
  const int z = get_group_id(2), split = get_group_id(1), outer = z / batch_inner, inner = z - outer * batch_inner;
  const long row_tile = (int)get_group_id(0) / share.column_tiles,
             column_tile = get_group_id(0) - row_tile * share.column_tiles;
  const long row_panels = (m + GEMM_MR - 1) / GEMM_MR, column_panels = (n + GEMM_NR - 1) / GEMM_NR;
  const int k0 = split * share.split_k, k1 = min(k, k0 + share.split_k);
  const int blocks = (k1 - k0 + GEMM_KC - 1) / GEMM_KC;
  const int block_k = ((k1 - k0 + blocks - 1) / blocks + VW - 1) / VW * VW;
  vreal a_block[GEMM_A_PANELS * GEMM_A_PANEL / VW];  // vectors, so that they are aligned
  vreal b_block[GEMM_COLUMN_PANELS * GEMM_NR * GEMM_KC / VW];
  real tile[GEMM_PITCH * GEMM_NR];
  gemm_group g;
  g.a = a + outer * a_outer + inner * a_inner;
  g.b = b + outer * b_outer + inner * b_inner;
  g.c = c + (long)z * m * n;
  g.bias = bias;
  g.residual = residual + (long)z * m * n;
  g.part = is_part ? part + ((long)split * get_num_groups(2) + z) * m * n : 0;
  g.a_row = a_row;
  g.a_col = a_col;
  g.b_row = b_row;
  g.b_col = b_col;
  g.n = n;
  g.flags = flags;
  g.row0 = (int)(row_panels * row_tile / share.row_tiles) * GEMM_MR;
  g.row1 = (int)min((long)m, row_panels * (row_tile + 1) / share.row_tiles * GEMM_MR);
  g.panel0 = (int)(column_panels * column_tile / share.column_tiles);
  g.panel1 = (int)(column_panels * (column_tile + 1) / share.column_tiles);
  g.a_block = (real*)a_block;
  g.b_block = (real*)b_block;
  g.tile = tile;
  g.is_one_block = blocks == 1;
#ifdef SAMEBYTES_STORE_16
  vreal sums[GEMM_ROW_PANELS * GEMM_MR * GEMM_COLUMN_PANELS * GEMM_NR / VW];
  g.sums = (real*)sums;
  g.lds = g.is_one_block ? GEMM_NR : GEMM_COLUMN_PANELS * GEMM_NR;  // one block: a tile is whole at once
  const int adds = 0, has_epilogue = 1;
#else
  g.sums = is_part ? g.part : g.c;
  g.lds = n;
  const int adds = (flags & GEMM_ACCUMULATE) != 0, has_epilogue = flags & (GEMM_BIAS | GEMM_RELU | GEMM_RESIDUAL);
#endif
  for (int kb = k0; kb < k1; kb += block_k)
    gemm_block(&g, m, kb, min(block_k, k1 - kb), kb > k0 || adds, has_epilogue && kb + block_k >= k1);
}

// The last `left` (1 to VW - 1) values of a line of k, zeros in the other lanes; p points at the first of them.
static vreal gemm_dot_tail(__global const stored* p, const int left, const int k) {
  if (k >= VW) return select((vreal)(0), VLOAD(p + left - VW), SB_LANES >= (vmask)(VW - left));
  real padded[VW];
  for (int i = 0; i < VW; ++i) padded[i] = i < left ? LOAD(p + i) : 0;
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
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) u[i] = VLOAD(a + i * a_row + p);                    \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) v[j] = VLOAD(b + j * b_col + p);                    \
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
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_dot(ARRAY(const stored, a), ARRAY(const stored, b),
                                                                      ARRAY(const real, bias),
                                                                      ARRAY(const stored, residual), ARRAY(stored, c),
                                                                      const gemm_sizes s, const gemm_dot_tiles tiles,
                                                                      const int flags) {
  START(a);
  START(b);
  START(bias);
  START(residual);
  START(c);
  GEMM_NAMES(s);
  const int row_tiles = tiles.row_tiles, column_tiles = tiles.column_tiles, z = get_group_id(2);
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
