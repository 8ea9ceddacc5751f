// 3x3 convolution of stride 1 by minimal filtering on a CPU device, channels last: x [n,h,wd,c], w [3,3,c,co],
// y [n,oh,ow,co]. S. Winograd, Arithmetic Complexity of Computations (1980); A. Lavin and S. Gray, Fast algorithms for
// convolutional neural networks (2016).
//
// A tile of 2 x 4 outputs is A^T [(G w G^T) * (B^T x B)] A: the source's 4 x 6 values and the weights are transformed
// to 24 positions, multiplied there, summed over channels and transformed back, 24 products instead of 72. Down it is
// F(2,3) with the points 0, 1, -1; across F(4,3) with 0, +-sqrt 2, +-sqrt 1/2, whose sums round two to three times less
// than those of the usual 0, +-1, +-2 (docs/decisions/winograd.md).
//
// winograd_weights transforms the weights once. A group of winograd_tiles transforms a block of tiles at a time into
// private memory, a vector of channels by itself, so nothing is transposed. The register tile then holds one row of six
// positions of WINOGRAD_TILES tiles and a vector of columns, whose sums go through A^T across in registers; only
// the four rows' results meet in private memory.
//
// Each sum of a tile rounds as the whole tile's source does, and a NaN of it is in all outputs. So a tile whose source
// is too unlike what one of its windows holds (winograd_holds) is computed by the definition instead, in the same
// group.
//
// Channels and columns are taken in vectors. Where they are not whole vectors, the last one ends with the last channel:
// of columns it writes some a second time, with the same values; of channels it reads some again, whose weights are 0
// there.
// Program: convolution
#include "cpu/winograd_tile.clh"

// G w G^T of a vector of channels at place k0 and one of columns at place `column`, to u [columns/VW][4 rows of
// positions][depth][6][VW], of whole vectors; the taps turned by half a turn and the channels exchanged where
// transposed is set.
static void winograd_transform(__global const stored* w, __global real* u, const int depth, const int columns,
                               const int column, const int k0, const int transposed) {
  const int c = transposed ? columns : depth, co = transposed ? depth : columns;
  const int from_column = winograd_start(column, columns), from_k = winograd_start(k0, depth), repeated = k0 - from_k;
  real taps[9 * VW * VW] __attribute__((aligned(64)));
  for (int tap = 0; tap < 9; ++tap) {
    __global const stored* from = w + (long)(transposed ? 8 - tap : tap) * c * co;
    vreal r[VW];
    if (transposed) {
#pragma unroll
      for (int i = 0; i < VW; ++i) r[i] = VLOAD(from + (long)(from_column + i) * co + from_k);
      sb_transpose(r);
    } else {
#pragma unroll
      for (int i = 0; i < VW; ++i) r[i] = VLOAD(from + (long)(from_k + i) * co + from_column);
    }
#pragma unroll
    for (int i = 0; i < VW; ++i) VSTORE(i < repeated ? (vreal)(0) : r[i], taps + (i * 9 + tap) * VW);
  }
  for (int k = 0; k < VW; ++k) {
    vreal g[4][3];
#pragma unroll
    for (int x = 0; x < 3; ++x) {
      const vreal a = VLOAD(taps + (k * 9 + x) * VW), b = VLOAD(taps + (k * 9 + 3 + x) * VW),
                  e = VLOAD(taps + (k * 9 + 6 + x) * VW);
      const vreal one_half = (vreal)(REAL_C(0.5)), even = one_half * (a + e);
      g[0][x] = a;
      g[1][x] = FMA(one_half, b, even);
      g[2][x] = FMA(-one_half, b, even);
      g[3][x] = e;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      __global real* to = u + (((long)column / VW * 4 + r) * WINOGRAD_WHOLE(depth) + k0 + k) * (6 * VW);
      const vreal a = g[r][0], b = g[r][1], e = g[r][2];
      const vreal far = FMA((vreal)(2), e, a) * (vreal)(REAL_C(1.0) / 6),
                  near = FMA((vreal)(2), a, e) * (vreal)(REAL_C(-1.0) / 3);
      const vreal odd_far = b * (vreal)(WINOGRAD_ROOT / 6), odd_near = b * (vreal)(WINOGRAD_ROOT / -3);
      VSTORE(a, to);
      VSTORE(far + odd_far, to + VW);
      VSTORE(far - odd_far, to + 2 * VW);
      VSTORE(near + odd_near, to + 3 * VW);
      VSTORE(near - odd_near, to + 4 * VW);
      VSTORE(e, to + 5 * VW);
    }
  }
}

// All of u, for all groups of winograd_tiles. Groups: x = columns, y = depth, both in vectors. Overwrites u.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_weights(ARRAY(const stored, w), ARRAY(real, u),
                                                                              const int c, const int co,
                                                                              const int transposed) {
  START(w);
  START(u);
  winograd_transform(w, u, transposed ? co : c, transposed ? c : co, (int)get_group_id(0) * VW,
                     (int)get_group_id(1) * VW, transposed);
}

// dst [n,out_h,out_w,columns] of src [n,in_h,in_w,depth] and u of winograd_weights; depth and columns are VW or more.
// Epilogue by `flags`: + bias [columns] 2, + residual (as dst) 8, then ReLU 4, which NaN passes, then 0 where gate
// (as dst) is not above 0, 16. With 32 each group has a u of its own (u [groups][...]), which it makes of w first:
// few weights cost less that way than a launch of their own. With 64 the taps of w are turned and its channels
// exchanged. Tiles are counted [n][down][across]. Groups: x = tiles / tiles_per_group, in blocks of `block` tiles, a
// multiple of WINOGRAD_TILES. Accumulates in `real`, WINOGRAD_CHAIN channels at a time.
SB_APART void winograd_group(SB_AT(const stored, src), SB_AT(const stored, w), SB_AT(real, u), SB_AT(const real, bias),
                             SB_AT(const stored, residual), SB_AT(const stored, gate), SB_AT(stored, dst),
                             const winograd_sizes sizes, const winograd_shares share, const int flags,
                             const int group) {
  const int tiles_per_group = share.tiles, block = share.block;
  WINOGRAD_NAMES(sizes);
  const int across = (out_w + 3) / 4, down = (out_h + 1) / 2;
  const int first = group * tiles_per_group, last = min(n * down * across, first + tiles_per_group);
  real source[WINOGRAD_SOURCE] __attribute__((aligned(64)));
  real sums[WINOGRAD_MOST_TILES * 8 * VW] __attribute__((aligned(64)));
  winograd_tile tiles[WINOGRAD_MOST_TILES], apart[WINOGRAD_MOST_TILES];  // those that go by the definition
  const winograd_shape shape = {in_h, in_w, depth, 3, 3};
  const int whole = WINOGRAD_WHOLE(depth), row_step = whole * 6 * WINOGRAD_TILES;
  if (flags & WINOGRAD_OWN) {
    u += (long)group * WINOGRAD_POSITIONS * whole * WINOGRAD_WHOLE(columns);
    for (int column = 0; column < columns; column += VW) {
      for (int k = 0; k < depth; k += VW)
        winograd_transform(w, u, depth, columns, column, k, (flags & WINOGRAD_TRANSPOSED) != 0);
    }
  }
  for (int i = 0; i < block * WINOGRAD_POSITIONS * whole; i += VW) VSTORE((vreal)(0), source + i);
  for (int t0 = first; t0 < last; t0 += block) {
    const int there = min(block, last - t0);
    int count = 0;
    for (int t = 0; t < there; ++t) {
      const int line = (t0 + t) / across, x = t0 + t - line * across, image = line / down, y = line - image * down;
      winograd_tile* tile = tiles + t;
      tile->row = 2 * y - pad_h;
      tile->column = 4 * x - pad_w;
      tile->from = (((long)image * in_h + tile->row) * in_w + tile->column) * depth;
      tile->to = (((long)image * out_h + 2 * y) * out_w + 4 * x) * columns;
      tile->rows = min(2, out_h - 2 * y);
      tile->columns = min(4, out_w - 4 * x);
      const int part = t / WINOGRAD_TILES;
      winograd_squares q = winograd_no_squares();
      for (int k = 0; k < depth; k += VW) {
        const int from = winograd_start(k, depth);
        const winograd_squares before = q;
        winograd_input(src + from, tile, in_h, in_w, depth, row_step, WINOGRAD_TILES * VW,
                       source + part * 4 * row_step + k * (6 * WINOGRAD_TILES) + (t - part * WINOGRAD_TILES) * VW, &q);
        if (from < k) winograd_forget(&q, &before, k - from);
      }
      if (!winograd_surely_holds(&q, tile->columns) && !winograd_holds(src, tile, &shape)) {
        apart[count++] = *tile;
        tile->rows = 0;
      }
    }
    for (int column = 0; column < columns; column += VW) {
      const int from = winograd_start(column, columns);
      WINOGRAD_TARGET(o, from);
      for (int i = 0; i < 4; ++i) {
        const int r = i == 2 ? 0 : i == 3 ? 3 : i + 1;
        __global const real* panel = u + ((long)column / VW * 4 + r) * whole * (6 * VW);
        for (int t = 0; t < there; t += WINOGRAD_TILES)
          winograd_micro(source + (t / WINOGRAD_TILES * 4 + r) * row_step, panel, whole, r, sums + t * 8 * VW,
                         tiles + t, there - t, &o);
      }
      for (int i = 0; i < count; ++i) winograd_direct(src, w, apart + i, &shape, from, &o);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(real, u), ARRAY(const real, bias),
    ARRAY(const stored, residual), ARRAY(const stored, gate), ARRAY(stored, dst), const winograd_sizes sizes,
    const winograd_shares share, const int flags) {
  START(src);
  START(w);
  START(u);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  winograd_group(src, w, u, bias, residual, gate, dst, sizes, share, flags, get_group_id(0));
}
