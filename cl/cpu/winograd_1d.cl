// Convolution of stride 1 along a line by minimal filtering on a CPU device, channels last: x [n,len,c], w [taps,c,co],
// y [n,out,co], of 3, 4 or 5 taps. winograd.cl has the paper and the points.
//
// A tile of 7 - taps outputs is A^T [(G w) * (B^T x)]: six positions, so 1.5, 2 or 3 products for each output and pair
// of channels instead of 3, 4 or 5. The transform B^T of six pixels is the same for all three; only G and A^T know the
// taps.
//
// winograd_1d_weights transforms the weights once. A group of winograd_1d_tiles transforms a block of tiles at a time
// into private memory. A register tile is one position of WINOGRAD_1D_TILES tiles and two vectors of columns, so that
// each value that is read is multiplied twice; six of them meet in private memory, and go through A^T from there.
// Program: convolution_1d
#include "cpu/winograd_tile.clh"

#define WINOGRAD_1D_POSITIONS 6
#define WINOGRAD_1D_MOST_TAPS 5
#define WINOGRAD_1D_TILES_VW16 12  // of a register tile
#define WINOGRAD_1D_TILES_VW8 6
#define WINOGRAD_1D_TILES_VW4 6
#define WINOGRAD_1D_TILES_VW2 4
#define WINOGRAD_1D_TILES SB_JOIN(WINOGRAD_1D_TILES_VW, VW)
#define WINOGRAD_1D_MOST_TILES 60      // of a block, a multiple of all of these
#define WINOGRAD_1D_MOST_CHANNELS 512  // whose WINOGRAD_1D_TILES tiles fit WINOGRAD_1D_SOURCE
#define WINOGRAD_1D_SOURCE 36864       // transformed values of a block in private memory

// G w of all pairs of channels, to u [columns/2/VW][6][depth][2*VW], where a last vector without a neighbour is
// [6][depth][VW]; the taps turned around and the channels exchanged where transposed is set. Groups: x = columns, y =
// depth, both in vectors. Overwrites u.
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
  const int columns = transposed ? c : co, pair = column / (2 * VW) * (2 * VW), width = min(2 * VW, columns - pair);
  const int next = depth * width;
  u += (long)pair * depth * 6 + (long)k0 * width + (column - pair);
  for (int k = 0; k < VW; ++k, u += width) {
    const real* at = g + k * (WINOGRAD_1D_MOST_TAPS * VW);
    const vreal g0 = VLOAD(at), g1 = VLOAD(at + VW), g2 = VLOAD(at + 2 * VW), g3 = VLOAD(at + 3 * VW),
                g4 = VLOAD(at + 4 * VW);
    const vreal far = FMA(two, FMA(two, g4, g2), g0) * (vreal)(REAL_C(1.0) / 6),
                near = FMA(one_half, FMA(one_half, g4, g2), g0) * (vreal)(REAL_C(-2.0) / 3);
    const vreal odd_far = FMA(two, g3, g1) * (vreal)(WINOGRAD_ROOT / 6),
                odd_near = FMA(one_half, g3, g1) * (vreal)(WINOGRAD_ROOT / -3);
    VSTORE(g0, u);
    VSTORE(far + odd_far, u + next);
    VSTORE(far - odd_far, u + 2 * next);
    VSTORE(near + odd_near, u + 3 * next);
    VSTORE(near - odd_near, u + 4 * next);
    VSTORE(VLOAD(at + (taps - 1) * VW), u + 5 * next);
  }
}

#define WINOGRAD_1D_SQUARES(a, q)                      \
  q->upper = FMA(a[0], a[0], q->upper);                \
  q->lower = FMA(a[5], a[5], q->lower);                \
  q->left = FMA(a[1], a[1], FMA(a[2], a[2], q->left)); \
  q->right = FMA(a[3], a[3], FMA(a[4], a[4], q->right))

// B^T x of the six pixels from `column` on, the first of which is `at`, to positions `step` apart and vectors of
// channels `next` apart, with zeros outside of the line. Adds the squares to q.
SB_APART void winograd_1d_edge(__global const stored* at, const int column, const int len, const int depth,
                               const int step, const int next, real* to, winograd_squares* q) {
  for (int k = 0; k < depth; k += VW, to += next) {
    vreal a[6];
#pragma unroll
    for (int x = 0; x < 6; ++x) a[x] = column + x >= 0 && column + x < len ? VLOAD(at + k + x * depth) : (vreal)(0);
    WINOGRAD_1D_SQUARES(a, q);
    winograd_line(a, step, to);
  }
}

static void winograd_1d_input(__global const stored* at, const int column, const int len, const int depth,
                              const int step, const int next, real* to, winograd_squares* q) {
  if (column < 0 || column + 6 > len) {
    winograd_1d_edge(at, column, len, depth, step, next, to, q);
    return;
  }
  for (int k = 0; k < depth; k += VW, to += next) {
    vreal a[6];
#pragma unroll
    for (int x = 0; x < 6; ++x) a[x] = VLOAD(at + k + x * depth);
    WINOGRAD_1D_SQUARES(a, q);
    winograd_line(a, step, to);
  }
}

// The products of WINOGRAD_1D_TILES tiles at six positions, summed over the channels, for COLS vectors of columns, to
// sums [6][WINOGRAD_1D_TILES][COLS][VW]. v: [depth/VW][6][WINOGRAD_1D_TILES][VW], u: [6][depth][COLS][VW]. Channels are
// summed in short chains, as in winograd.cl.
#define WINOGRAD_1D_EACH(t, j, statement)                           \
  _Pragma("unroll") for (int t = 0; t < WINOGRAD_1D_TILES; ++t) {   \
    _Pragma("unroll") for (int j = 0; j < cols_; ++j) { statement } \
  }
#define WINOGRAD_1D_PRODUCTS(name, COLS)                                                              \
  SB_APART void name(const real* v, __global const real* u, const int depth, real* sums) {            \
    enum { cols_ = COLS };                                                                            \
    for (int p = 0; p < 6; ++p, v += WINOGRAD_1D_TILES * VW, sums += WINOGRAD_1D_TILES * COLS * VW) { \
      const real* at = v;                                                                             \
      for (int k1 = 0; k1 < depth; k1 += WINOGRAD_CHAIN) {                                            \
        vreal acc[WINOGRAD_1D_TILES][COLS];                                                           \
        WINOGRAD_1D_EACH(t, j, acc[t][j] = (vreal)(0);)                                               \
        const int end = min(depth, k1 + WINOGRAD_CHAIN);                                              \
        for (int k0 = k1; k0 < end; k0 += VW, at += (6 * WINOGRAD_1D_TILES - 1) * VW) {               \
          for (int k = 0; k < VW; ++k, ++at, u += COLS * VW) {                                        \
            vreal b[COLS];                                                                            \
            _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(u + j * VW);                \
            _Pragma("unroll") for (int t = 0; t < WINOGRAD_1D_TILES; ++t) {                           \
              const vreal a = (vreal)(at[t * VW]);                                                    \
              _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[t][j] = FMA(a, b[j], acc[t][j]);   \
            }                                                                                         \
          }                                                                                           \
        }                                                                                             \
        if (k1 > 0) {                                                                                 \
          WINOGRAD_1D_EACH(t, j, acc[t][j] += VLOAD(sums + (t * COLS + j) * VW);)                     \
        }                                                                                             \
        WINOGRAD_1D_EACH(t, j, VSTORE(acc[t][j], sums + (t * COLS + j) * VW);)                        \
      }                                                                                               \
    }                                                                                                 \
  }
WINOGRAD_1D_PRODUCTS(winograd_1d_products_wide, 2)
WINOGRAD_1D_PRODUCTS(winograd_1d_products_narrow, 1)
#undef WINOGRAD_1D_PRODUCTS
#undef WINOGRAD_1D_EACH

// A^T of the sums of one tile, for one vector of columns, `step` from position to position. at: where its first output
// goes, n: how many there are of it.
static void winograd_1d_outputs(const real* sums, const int step, const int outputs, const long at, const int n,
                                const winograd_target* o) {
  const vreal one_half = (vreal)(REAL_C(0.5)), two = (vreal)(2), far = (vreal)(WINOGRAD_ROOT),
              near = (vreal)(WINOGRAD_ROOT / 2), far3 = (vreal)(WINOGRAD_ROOT * 2), near3 = (vreal)(WINOGRAD_ROOT / 4);
  const vreal s1 = VLOAD(sums + step), s2 = VLOAD(sums + 2 * step), s3 = VLOAD(sums + 3 * step),
              s4 = VLOAD(sums + 4 * step), last = VLOAD(sums + 5 * step), none = (vreal)(0);
  const vreal even_far = s1 + s2, odd_far = s1 - s2, even_near = s3 + s4, odd_near = s3 - s4;
  if (n > 0) winograd_store(VLOAD(sums) + (even_far + even_near), o, at);
  if (n > 1) winograd_store(FMA(far, odd_far, FMA(near, odd_near, outputs == 2 ? last : none)), o, at + o->columns);
  if (n > 2)
    winograd_store(FMA(two, even_far, FMA(one_half, even_near, outputs == 3 ? last : none)), o, at + 2 * o->columns);
  if (n > 3) winograd_store(FMA(far3, odd_far, FMA(near3, odd_near, last)), o, at + 3 * o->columns);
}

// dst [n,out,columns] of src [n,len,depth] and u of winograd_1d_weights; depth and columns are multiples of VW.
// Tiles that winograd_holds refuses are computed of w. Epilogue by `flags`: + bias [columns] 2, + residual (as dst) 8,
// then ReLU 4, which NaN passes, then 0 where gate (as dst) is not above 0, 16; with 64 the taps of w are turned and
// its channels exchanged. Tiles are counted [n][across]. Groups: x = tiles / tiles_per_group, in blocks of `block`
// tiles, a multiple of WINOGRAD_1D_TILES. Accumulates in `real`, WINOGRAD_CHAIN channels at a time.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_1d_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(const real, u), ARRAY(const real, bias),
    ARRAY(const stored, residual), ARRAY(const stored, gate), ARRAY(stored, dst), const int n, const int len,
    const int depth, const int out, const int columns, const int taps, const int pad, const winograd_shares share,
    const int flags) {
  const int tiles_per_group = share.tiles, block = share.block;
  START(src);
  START(w);
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
  winograd_tile apart[WINOGRAD_1D_MOST_TILES];  // those that go by the definition
  const winograd_shape shape = {1, len, depth, 1, taps};
  const int out_w = 0;  // one line of outputs
  real sums[6 * WINOGRAD_1D_TILES * 2 * VW] __attribute__((aligned(64)));
  const int part_step = depth * 6 * WINOGRAD_1D_TILES;
  for (int i = 0; i < block * 6 * depth; i += VW) VSTORE((vreal)(0), source + i);
  for (int t0 = first; t0 < last; t0 += block) {
    const int there = min(block, last - t0);
    int count = 0;
    real* v = source;
    int line = t0 / across, x = t0 - line * across;
    for (int part = 0; part < there; part += WINOGRAD_1D_TILES, v += part_step) {
      for (int t = part; t < min(there, part + WINOGRAD_1D_TILES); ++t) {
        const int column = outputs * x - pad;
        to[t] = ((long)line * out + outputs * x) * columns;
        places[t] = min(outputs, out - outputs * x);
        const long from = ((long)line * len + column) * depth;
        winograd_squares q = winograd_no_squares();
        winograd_1d_input(src + from, column, len, depth, WINOGRAD_1D_TILES * VW, 6 * WINOGRAD_1D_TILES * VW,
                          v + (t - part) * VW, &q);
        if (!winograd_surely_holds(&q, places[t])) {
          const winograd_tile tile = {from, to[t], 0, column, 1, places[t]};
          if (!winograd_holds(src, &tile, &shape)) {
            apart[count++] = tile;
            places[t] = 0;
          }
        }
        if (++x == across) {
          x = 0;
          ++line;
        }
      }
    }
    for (int column = 0; column < columns; column += 2 * VW) {
      __global const real* panel = u + (long)column * depth * 6;
      const int width = min(2 * VW, columns - column);
      for (int part = 0; part < there; part += WINOGRAD_1D_TILES) {
        if (width > VW)
          winograd_1d_products_wide(source + part / WINOGRAD_1D_TILES * part_step, panel, depth, sums);
        else
          winograd_1d_products_narrow(source + part / WINOGRAD_1D_TILES * part_step, panel, depth, sums);
        for (int j = 0; j < width; j += VW) {
          WINOGRAD_TARGET(o, column + j);
          for (int t = part; t < min(there, part + WINOGRAD_1D_TILES); ++t)
            winograd_1d_outputs(sums + (t - part) * width + j, WINOGRAD_1D_TILES * width, outputs, to[t], places[t],
                                &o);
        }
      }
      for (int j = 0; j < width && count > 0; j += VW) {
        WINOGRAD_TARGET(o, column + j);
        for (int i = 0; i < count; ++i) winograd_direct(src, w, apart + i, &shape, column + j, &o);
      }
    }
  }
}
