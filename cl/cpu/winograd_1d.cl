// Convolution of stride 1 along a line by minimal filtering on a CPU device, channels last: x [n,len,c], w [taps,c,co],
// y [n,out,co], of 3, 4 or 5 taps. winograd.cl has the paper and the points.
//
// A tile of 7 - taps outputs is A^T [(G w) * (B^T x)]: six positions, so 1.5, 2 or 3 products for each output and pair
// of channels instead of 3, 4 or 5. The transform B^T of six pixels is the same for all three; only G and A^T know the
// taps.
//
// winograd_1d_weights transforms the weights once. A group of winograd_1d_tiles transforms a block of tiles at a time
// into private memory; the register tile holds the six positions of WINOGRAD_TILES tiles and a vector of columns and
// goes through A^T before it is stored.

#define WINOGRAD_1D_POSITIONS 6
#define WINOGRAD_1D_MOST_TAPS 5
#define WINOGRAD_1D_MOST_TILES 64      // of a block
#define WINOGRAD_1D_MOST_CHANNELS 512  // whose WINOGRAD_TILES tiles fit WINOGRAD_1D_SOURCE
#define WINOGRAD_1D_SOURCE 24576       // transformed values of a block in private memory

// G w of all pairs of channels, to u [columns/VW][depth][6][VW]; the taps turned around and the channels exchanged
// where transposed is set. Groups: x = columns, y = depth, both in vectors. Overwrites u.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_1d_weights(ARRAY(const stored, w), ARRAY(real, u),
                                                                                 const int taps, const int c,
                                                                                 const int co, const int transposed) {
  START(w);
  START(u);
  const int column = (int)get_group_id(0) * VW, k0 = (int)get_group_id(1) * VW, depth = transposed ? co : c;
  real g[WINOGRAD_1D_MOST_TAPS * VW * VW] __attribute__((aligned(64)));
  for (int tap = 0; tap < WINOGRAD_1D_MOST_TAPS; ++tap) {
    __global const stored* from = w + (long)(transposed ? taps - 1 - tap : tap) * c * co;
    vreal r[VW];
    if (tap >= taps) {
#pragma unroll
      for (int i = 0; i < VW; ++i) r[i] = (vreal)(0);
    } else if (transposed) {
#pragma unroll
      for (int i = 0; i < VW; ++i) r[i] = VLOAD(from + (long)(column + i) * co + k0);
      sb_transpose(r);
    } else {
#pragma unroll
      for (int i = 0; i < VW; ++i) r[i] = VLOAD(from + (long)(k0 + i) * co + column);
    }
#pragma unroll
    for (int i = 0; i < VW; ++i) VSTORE(r[i], g + (i * WINOGRAD_1D_MOST_TAPS + tap) * VW);
  }
  const vreal one_half = (vreal)(REAL_C(0.5)), two = (vreal)(2);
  u += ((long)get_group_id(0) * depth + k0) * (6 * VW);
  for (int k = 0; k < VW; ++k, u += 6 * VW) {
    const real* at = g + k * (WINOGRAD_1D_MOST_TAPS * VW);
    const vreal g0 = VLOAD(at), g1 = VLOAD(at + VW), g2 = VLOAD(at + 2 * VW), g3 = VLOAD(at + 3 * VW),
                g4 = VLOAD(at + 4 * VW);
    const vreal far = FMA(two, FMA(two, g4, g2), g0) * (vreal)(REAL_C(1.0) / 6),
                near = FMA(one_half, FMA(one_half, g4, g2), g0) * (vreal)(REAL_C(-2.0) / 3);
    const vreal odd_far = FMA(two, g3, g1) * (vreal)(WINOGRAD_ROOT / 6),
                odd_near = FMA(one_half, g3, g1) * (vreal)(WINOGRAD_ROOT / -3);
    VSTORE(g0, u);
    VSTORE(far + odd_far, u + VW);
    VSTORE(far - odd_far, u + 2 * VW);
    VSTORE(near + odd_near, u + 3 * VW);
    VSTORE(near - odd_near, u + 4 * VW);
    VSTORE(VLOAD(at + (taps - 1) * VW), u + 5 * VW);
  }
}

// B^T x of one vector of channels of the six pixels from `column` on, zeros outside of the line. at: that pixel.
static void winograd_1d_input(__global const stored* at, const int column, const int len, const int depth,
                              const int step, real* to) {
  vreal a[6];
  if (column >= 0 && column + 6 <= len) {
#pragma unroll
    for (int x = 0; x < 6; ++x) a[x] = VLOAD(at + x * depth);
  } else {
#pragma unroll
    for (int x = 0; x < 6; ++x) a[x] = column + x >= 0 && column + x < len ? VLOAD(at + x * depth) : (vreal)(0);
  }
  winograd_line(a, step, to);
}

// The first `there` of WINOGRAD_TILES neighbouring tiles of a line, for one vector of columns. v:
// [depth/VW][6][WINOGRAD_TILES][VW], u: [depth][6][VW]; to[t] and places[t]: where a tile's first output goes and how
// many there are of it.
static void winograd_1d_micro(const real* v, __global const real* u, const int depth, const int outputs, const long* to,
                              const int* places, const int there, const winograd_target* o) {
  vreal acc[6][WINOGRAD_TILES];
  winograd_products(v, u, depth, acc);
  const vreal one_half = (vreal)(REAL_C(0.5)), two = (vreal)(2), far = (vreal)(WINOGRAD_ROOT),
              near = (vreal)(WINOGRAD_ROOT / 2), far3 = (vreal)(WINOGRAD_ROOT * 2), near3 = (vreal)(WINOGRAD_ROOT / 4);
#pragma unroll
  for (int t = 0; t < WINOGRAD_TILES; ++t) {
    if (t < there) {
      const vreal even_far = acc[1][t] + acc[2][t], odd_far = acc[1][t] - acc[2][t];
      const vreal even_near = acc[3][t] + acc[4][t], odd_near = acc[3][t] - acc[4][t];
      const vreal last = acc[5][t], none = (vreal)(0);
      const int n = places[t];
      const long at = to[t];
      winograd_store(acc[0][t] + (even_far + even_near), o, at);
      if (n > 1) winograd_store(FMA(far, odd_far, FMA(near, odd_near, outputs == 2 ? last : none)), o, at + o->columns);
      if (n > 2)
        winograd_store(FMA(two, even_far, FMA(one_half, even_near, outputs == 3 ? last : none)), o,
                       at + 2 * o->columns);
      if (n > 3) winograd_store(FMA(far3, odd_far, FMA(near3, odd_near, last)), o, at + 3 * o->columns);
    }
  }
}

// dst [n,out,columns] of src [n,len,depth] and u of winograd_1d_weights; depth and columns are multiples of VW.
// Epilogue by `flags`: + bias [columns] 2, + residual (as dst) 8, then ReLU 4, which NaN passes, then 0 where gate (as
// dst) is not above 0, 16. Tiles are counted [n][across]. Groups: x = tiles / tiles_per_group, in blocks of `block`
// tiles, a multiple of WINOGRAD_TILES. Accumulates in `real`, WINOGRAD_CHAIN channels at a time.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_1d_tiles(
    ARRAY(const stored, src), ARRAY(const real, u), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(const stored, gate), ARRAY(stored, dst), const int n, const int len, const int depth, const int out,
    const int columns, const int taps, const int pad, const int flags, const int tiles_per_group, const int block) {
  START(src);
  START(u);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  const int outputs = 7 - taps, across = (out + outputs - 1) / outputs;
  const int first = (int)get_group_id(0) * tiles_per_group, last = min(n * across, first + tiles_per_group);
  real source[WINOGRAD_1D_SOURCE] __attribute__((aligned(64)));
  long to[WINOGRAD_1D_MOST_TILES];
  int places[WINOGRAD_1D_MOST_TILES];
  const int part_step = depth * 6 * WINOGRAD_TILES;
  for (int i = 0; i < block * 6 * depth; i += VW) VSTORE((vreal)(0), source + i);
  for (int t0 = first; t0 < last; t0 += block) {
    const int there = min(block, last - t0);
    for (int t = 0; t < there; ++t) {
      const int line = (t0 + t) / across, x = t0 + t - line * across, column = outputs * x - pad;
      const int part = t / WINOGRAD_TILES;
      to[t] = ((long)line * out + outputs * x) * columns;
      places[t] = min(outputs, out - outputs * x);
      __global const stored* at = src + ((long)line * len + column) * depth;
      real* v = source + part * part_step + (t - part * WINOGRAD_TILES) * VW;
      for (int k = 0; k < depth; k += VW)
        winograd_1d_input(at + k, column, len, depth, WINOGRAD_TILES * VW, v + k * (6 * WINOGRAD_TILES));
    }
    for (int column = 0; column < columns; column += VW) {
      winograd_target o;
      o.dst = dst + column;
      o.residual = residual + column;
      o.gate = gate + column;
      o.bias = flags & WINOGRAD_BIAS ? VLOAD(bias + column) : (vreal)(0);
      o.columns = columns;
      o.flags = flags;
      __global const real* panel = u + (long)column * depth * 6;
      for (int t = 0; t < there; t += WINOGRAD_TILES)
        winograd_1d_micro(source + t / WINOGRAD_TILES * part_step, panel, depth, outputs, to + t, places + t, there - t,
                          &o);
    }
  }
}
