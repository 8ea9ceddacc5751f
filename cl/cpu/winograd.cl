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
// Over 400 lines because a tile's two ways share its source, its windows and its stores.
//
// Channels and columns are taken in vectors. Where they are not whole vectors, the last one ends with the last channel: of
// columns it writes some a second time, with the same values; of channels it reads some again, whose weights are 0 there.
// Program: convolution
#include "shared/conv.h"

#define WINOGRAD_POSITIONS 24
#define WINOGRAD_TILES_VW16 4  // of a register tile
#define WINOGRAD_TILES_VW8 2
#define WINOGRAD_TILES_VW4 2
#define WINOGRAD_TILES_VW2 2
#define WINOGRAD_TILES SB_JOIN(WINOGRAD_TILES_VW, VW)
#define WINOGRAD_LANES_VW16 16
#define WINOGRAD_LANES_VW8 8
#define WINOGRAD_LANES_VW4 4
#define WINOGRAD_LANES_VW2 2
#define WINOGRAD_LANES SB_JOIN(WINOGRAD_LANES_VW, VW)
#define WINOGRAD_CHAIN 16           // channels that are summed in one chain of additions
#define WINOGRAD_MOST_TILES 32      // of a block
#define WINOGRAD_MOST_CHANNELS 512  // whose WINOGRAD_TILES tiles fit WINOGRAD_SOURCE
#define WINOGRAD_SOURCE 49152       // transformed values of a block in private memory

// The squares of a tile's source may sum to so many times those of each output's own window, between these limits, in
// which no square overflows or vanishes.
#define WINOGRAD_SPREAD REAL_C(256.0)
#define WINOGRAD_LEAST_SQUARES REAL_C(1e-30)
#define WINOGRAD_MOST_SQUARES REAL_C(1e30)

#define WINOGRAD_ROOT REAL_C(1.41421356237309504880)

// The size in whole vectors, and the channel where the vector at a multiple of VW starts.
#define WINOGRAD_WHOLE(size) (((size) + VW - 1) / VW * VW)
static int winograd_start(const int place, const int size) { return min(place, size - VW); }
// v without its first `repeated` lanes.
static vreal winograd_fresh(const vreal v, const int repeated) {
  return repeated == 0 ? v : select((vreal)(0), v, SB_LANES >= (vmask)(repeated));
}

// G w G^T of a vector of channels at place k0 and one of columns at place `column`, to u [columns/VW][4 rows of
// positions][depth][6][VW], of whole vectors; the taps turned by half a turn and the channels exchanged where transposed
// is set.
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

// A tile of 2 x 4 outputs, which reads 4 x 6 pixels.
typedef struct {
  long from, to;      // of the first pixel that the tile reads and writes
  int row, column;    // of that pixel it reads
  int rows, columns;  // that it writes
} winograd_tile;

// Squares of a tile's source, lane by lane: of what every window of the left half has, of the right half, of the rest.
typedef struct {
  vreal left, right, upper, lower;
} winograd_squares;

static winograd_squares winograd_no_squares(void) {
  const winograd_squares none = {(vreal)(0), (vreal)(0), (vreal)(0), (vreal)(0)};
  return none;
}

// What the first `repeated` lanes had before.
static void winograd_forget(winograd_squares* q, const winograd_squares* before, const int repeated) {
  const vmask is_fresh = SB_LANES >= (vmask)(repeated);
  q->left = select(before->left, q->left, is_fresh);
  q->right = select(before->right, q->right, is_fresh);
  q->upper = select(before->upper, q->upper, is_fresh);
  q->lower = select(before->lower, q->lower, is_fresh);
}

// Whether that says that every window of the tile's first `columns` columns holds its share; 0: not, or not by these.
static int winograd_surely_holds(const winograd_squares* q, const int columns) {
  const real left = sb_sum(q->left), right = sb_sum(q->right), all = left + right + sb_sum(q->upper + q->lower);
  return all <= WINOGRAD_SPREAD * (columns > 2 ? min(left, right) : left) && all >= WINOGRAD_LEAST_SQUARES &&
         all <= WINOGRAD_MOST_SQUARES;
}

// A convolution's source [in_h,in_w,depth] and taps; along a line in_h and down are 1.
typedef struct {
  int in_h, in_w, depth, down, across;
} winograd_shape;

static int winograd_is_inside(const winograd_tile* t, const winograd_shape* s, const int y, const int x) {
  return t->row + y >= 0 && t->row + y < s->in_h && t->column + x >= 0 && t->column + x < s->in_w;
}

// Whether the source of a tile is finite and the squares of each output's window are 1 / WINOGRAD_SPREAD of all its
// squares or more, so that a sum's rounding is that of its own window. src: image 0's first pixel.
static __attribute__((noinline)) int winograd_holds(__global const stored* src, const winograd_tile* t,
                                                    const winograd_shape* s) {
  const int lines = s->down == 1 ? 1 : 4;
  vreal largest = (vreal)(0);
  for (int i = 0; i < 6 * lines; ++i) {
    __global const stored* at = src + t->from + (long)(i / 6 * s->in_w + i % 6) * s->depth;
    for (int k = 0; k < s->depth && winograd_is_inside(t, s, i / 6, i % 6); k += VW)
      largest = sb_max2(largest, fabs(VLOAD(at + winograd_start(k, s->depth))));
  }
  const real most = sb_max(largest);
  if (most == 0) return 1;
  if (!(most >= WINOGRAD_LEAST_SQUARES && most <= WINOGRAD_MOST_SQUARES)) return 0;
  real squares[24], all = 0;
  for (int i = 0; i < 6 * lines; ++i) {
    __global const stored* at = src + t->from + (long)(i / 6 * s->in_w + i % 6) * s->depth;
    vreal sum = (vreal)(0);
    for (int k = 0; k < s->depth && winograd_is_inside(t, s, i / 6, i % 6); k += VW) {
      const int from = winograd_start(k, s->depth);
      const vreal v = winograd_fresh(VLOAD(at + from), k - from) / (vreal)(most);
      sum = FMA(v, v, sum);
    }
    all += squares[i] = sb_sum(sum);
  }
  for (int i = 0; i < t->rows * t->columns; ++i) {
    const int y = i / t->columns, x = i - y * t->columns;
    real window = 0;
    for (int tap = 0; tap < s->down * s->across; ++tap)
      window += squares[(y + tap / s->across) * 6 + x + tap % s->across];
    if (all > WINOGRAD_SPREAD * window) return 0;
  }
  return 1;
}

// B^T along a line: the six values of a to the six positions, `step` apart.
static void winograd_line(const vreal* a, const int step, real* to) {
  const vreal one_half = (vreal)(REAL_C(0.5)), two = (vreal)(2), middle = (vreal)(REAL_C(2.5)),
              far = (vreal)(WINOGRAD_ROOT), near = (vreal)(WINOGRAD_ROOT / 2);
  const vreal even_far = FMA(-one_half, a[2], a[4]), odd_far = FMA(-one_half, a[1], a[3]);
  const vreal even_near = FMA(-two, a[2], a[4]), odd_near = FMA(-two, a[1], a[3]);
  VSTORE(FMA(-middle, a[2], a[0] + a[4]), to);
  VSTORE(FMA(far, odd_far, even_far), to + step);
  VSTORE(FMA(-far, odd_far, even_far), to + 2 * step);
  VSTORE(FMA(near, odd_near, even_near), to + 3 * step);
  VSTORE(FMA(-near, odd_near, even_near), to + 4 * step);
  VSTORE(FMA(-middle, a[3], a[1] + a[5]), to + 5 * step);
}

// Column x of a tile's source, of four lines: B^T down it, and its squares.
#define WINOGRAD_DOWN(x, d0, d1, d2, d3)           \
  a[0][x] = d0 - d2;                               \
  a[1][x] = d1 + d2;                               \
  a[2][x] = d2 - d1;                               \
  a[3][x] = d1 - d3;                               \
  q->upper = FMA(d0, d0, q->upper);                \
  q->lower = FMA(d3, d3, q->lower);                \
  if (x == 0 || x == 5) {                          \
    q->upper = FMA(d1, d1, q->upper);              \
    q->lower = FMA(d2, d2, q->lower);              \
  } else if (x < 3) {                              \
    q->left = FMA(d1, d1, FMA(d2, d2, q->left));   \
  } else {                                         \
    q->right = FMA(d1, d1, FMA(d2, d2, q->right)); \
  }

// B^T x B of one vector of channels, zeros outside of the image: rows of positions to to + row_step * row. src is image
// 0's first pixel. Adds the squares to q.
SB_INLINE void winograd_input(__global const stored* src, const winograd_tile* t, const int in_h, const int in_w,
                              const int depth, const int row_step, const int step, real* to, winograd_squares* q) {
  vreal a[4][6];
  const int line = in_w * depth;
  __global const stored* at = src + t->from;
  const int inside = t->row >= 0 && t->row + 4 <= in_h && t->column >= 0 && t->column + 6 <= in_w;
  if (inside) {
#pragma unroll
    for (int x = 0; x < 6; ++x) {
      const vreal d0 = VLOAD(at + x * depth), d1 = VLOAD(at + line + x * depth), d2 = VLOAD(at + 2 * line + x * depth),
                  d3 = VLOAD(at + 3 * line + x * depth);
      WINOGRAD_DOWN(x, d0, d1, d2, d3)
    }
  } else {
    const vreal zero = (vreal)(0);
    const int r0 = t->row >= 0 && t->row < in_h, r1 = t->row + 1 >= 0 && t->row + 1 < in_h,
              r2 = t->row + 2 >= 0 && t->row + 2 < in_h, r3 = t->row + 3 >= 0 && t->row + 3 < in_h;
#pragma unroll
    for (int x = 0; x < 6; ++x) {
      const int ok = t->column + x >= 0 && t->column + x < in_w;
      const vreal d0 = ok && r0 ? VLOAD(at + x * depth) : zero, d1 = ok && r1 ? VLOAD(at + line + x * depth) : zero,
                  d2 = ok && r2 ? VLOAD(at + 2 * line + x * depth) : zero,
                  d3 = ok && r3 ? VLOAD(at + 3 * line + x * depth) : zero;
      WINOGRAD_DOWN(x, d0, d1, d2, d3)
    }
  }
#pragma unroll
  for (int r = 0; r < 4; ++r, to += row_step) winograd_line(a[r], step, to);
}

typedef struct {
  __global stored* dst;
  __global const stored *residual, *gate;
  vreal bias;
  int out_w, columns, flags;
} winograd_target;

static void winograd_store(vreal v, const winograd_target* o, const long at) {
  v += o->bias;
  if (o->flags & CONV_RESIDUAL) v = VROUND(v) + VLOAD(o->residual + at);
  if (o->flags & CONV_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
  if (o->flags & CONV_HARD_SWISH) v = sb_hard_swish(VROUND(v));
  if (o->flags & CONV_GATE) v = select((vreal)(0), v, VLOAD(o->gate + at) > (vreal)(0));
  VSTORE(v, o->dst + at);
}

// Where the results of a vector of columns go.
#define WINOGRAD_TARGET(o, column)                                  \
  winograd_target o;                                                \
  o.dst = dst + (column);                                           \
  o.residual = residual + (column);                                 \
  o.gate = gate + (column);                                         \
  o.bias = flags & CONV_BIAS ? VLOAD(bias + (column)) : (vreal)(0); \
  o.out_w = out_w;                                                  \
  o.columns = columns;                                              \
  o.flags = flags

// The outputs of one tile for one vector of columns by the definition, of w [taps][c][co] as winograd_transform takes
// it.
static __attribute__((noinline)) void winograd_direct(__global const stored* src, __global const stored* w,
                                                      const winograd_tile* t, const winograd_shape* s, const int column,
                                                      const winograd_target* o) {
  const int transposed = (o->flags & WINOGRAD_TRANSPOSED) != 0, co = transposed ? s->depth : o->columns;
  const int taps = s->down * s->across;
  vreal acc[8];
  for (int i = 0; i < 8; ++i) acc[i] = (vreal)(0);
  for (int tap = 0; tap < taps; ++tap) {
    __global const stored* from[8];
    int place[8], there = 0;
    for (int i = 0; i < t->rows * t->columns; ++i) {
      const int line = i / t->columns, y = line + tap / s->across, x = i - line * t->columns + tap % s->across;
      if (!winograd_is_inside(t, s, y, x)) continue;
      from[there] = src + t->from + (long)(y * s->in_w + x) * s->depth;
      place[there++] = i;
    }
    __global const stored* weights = w + (long)(transposed ? taps - 1 - tap : tap) * s->depth * o->columns;
    for (int place_of_k = 0; place_of_k < s->depth; place_of_k += VW) {
      const int k0 = winograd_start(place_of_k, s->depth);
      vreal r[VW];
      if (transposed) {
#pragma unroll
        for (int i = 0; i < VW; ++i) r[i] = VLOAD(weights + (long)(column + i) * co + k0);
        sb_transpose(r);
      } else {
#pragma unroll
        for (int i = 0; i < VW; ++i) r[i] = VLOAD(weights + (long)(k0 + i) * co + column);
      }
      for (int k = place_of_k - k0; k < VW; ++k) {
        for (int i = 0; i < there; ++i) acc[place[i]] = FMA((vreal)(LOAD(from[i] + k0 + k)), r[k], acc[place[i]]);
      }
    }
  }
  for (int i = 0; i < t->rows * t->columns; ++i) {
    const int y = i / t->columns;
    winograd_store(acc[i], o, t->to + (long)(y * o->out_w + i - y * t->columns) * o->columns);
  }
}

// The products of WINOGRAD_TILES tiles at six positions, summed over the channels, for one vector of columns. v:
// [depth/VW][6][WINOGRAD_TILES][VW], u: [depth][6][VW].
SB_INLINE void winograd_products(const real* v, __global const real* u, const int depth, vreal acc[6][WINOGRAD_TILES]) {
  // Channels are summed in short chains, whose sums meet here: long ones would round more than the direct sums do.
  real before[6 * WINOGRAD_TILES * VW] __attribute__((aligned(64)));
  for (int k1 = 0; k1 < depth; k1 += WINOGRAD_CHAIN) {
#pragma unroll
    for (int p = 0; p < 6; ++p) {
#pragma unroll
      for (int t = 0; t < WINOGRAD_TILES; ++t) acc[p][t] = (vreal)(0);
    }
    const int end = min(depth, k1 + WINOGRAD_CHAIN);
    for (int k0 = k1; k0 < end; k0 += VW, v += (6 * WINOGRAD_TILES - 1) * VW) {
      for (int k = 0; k < VW; ++k, ++v, u += 6 * VW) {
#pragma unroll
        for (int p = 0; p < 6; ++p) {
          const vreal b = VLOAD(u + p * VW);
#pragma unroll
          for (int t = 0; t < WINOGRAD_TILES; ++t)
            acc[p][t] = FMA((vreal)(v[(p * WINOGRAD_TILES + t) * VW]), b, acc[p][t]);
        }
      }
    }
    if (k1 > 0) {
#pragma unroll
      for (int i = 0; i < 6 * WINOGRAD_TILES; ++i)
        acc[i / WINOGRAD_TILES][i % WINOGRAD_TILES] += VLOAD(before + i * VW);
    }
    if (end < depth) {
#pragma unroll
      for (int i = 0; i < 6 * WINOGRAD_TILES; ++i) VSTORE(acc[i / WINOGRAD_TILES][i % WINOGRAD_TILES], before + i * VW);
    }
  }
}

// Row r of the positions of WINOGRAD_TILES tiles, for one vector of columns. v: [depth/VW][6][WINOGRAD_TILES][VW], u:
// [depth][6][VW]. Rows come in the order 1, 2, 0, 3: sums [tile][8] keep row 1, then row 1 + row 2 and row 1 - row 2,
// to which the other two add up to the two lines of outputs. The first `there` tiles are stored.
static void winograd_micro(const real* v, __global const real* u, const int depth, const int r, real* sums,
                           const winograd_tile* tiles, const int there, const winograd_target* o) {
  vreal acc[6][WINOGRAD_TILES];
  winograd_products(v, u, depth, acc);
  const vreal one_half = (vreal)(REAL_C(0.5)), two = (vreal)(2), far = (vreal)(WINOGRAD_ROOT),
              near = (vreal)(WINOGRAD_ROOT / 2), far3 = (vreal)(WINOGRAD_ROOT * 2), near3 = (vreal)(WINOGRAD_ROOT / 4);
#pragma unroll
  for (int t = 0; t < WINOGRAD_TILES; ++t, sums += 8 * VW) {
    const vreal even_far = acc[1][t] + acc[2][t], odd_far = acc[1][t] - acc[2][t];
    const vreal even_near = acc[3][t] + acc[4][t], odd_near = acc[3][t] - acc[4][t];
    vreal z[4];
    z[0] = acc[0][t] + (even_far + even_near);
    z[1] = FMA(far, odd_far, near * odd_near);
    z[2] = FMA(two, even_far, one_half * even_near);
    z[3] = FMA(far3, odd_far, FMA(near3, odd_near, acc[5][t]));
    if (r == 1) {
#pragma unroll
      for (int x = 0; x < 4; ++x) VSTORE(z[x], sums + x * VW);
    } else if (r == 2) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const vreal before = VLOAD(sums + x * VW);
        VSTORE(before + z[x], sums + x * VW);
        VSTORE(before - z[x], sums + (4 + x) * VW);
      }
    } else if (t < there) {
      const int second = r == 3;
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        if (x < tiles[t].columns && second < tiles[t].rows)
          winograd_store(second ? VLOAD(sums + (4 + x) * VW) - z[x] : VLOAD(sums + x * VW) + z[x], o,
                         tiles[t].to + (long)(second * o->out_w + x) * o->columns);
      }
    }
  }
}

// dst [n,out_h,out_w,columns] of src [n,in_h,in_w,depth] and u of winograd_weights; depth and columns are VW or more.
// Epilogue by `flags`: + bias [columns] 2, + residual (as dst) 8, then ReLU 4, which NaN passes, then 0 where gate
// (as dst) is not above 0, 16. With 32 each group has a u of its own (u [groups][...]), which it makes of w first:
// few weights cost less that way than a launch of their own. With 64 the taps of w are turned and its channels
// exchanged. Tiles are counted [n][down][across]. Groups: x = tiles / tiles_per_group, in blocks of `block` tiles, a
// multiple of WINOGRAD_TILES. Accumulates in `real`, WINOGRAD_CHAIN channels at a time.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(real, u), ARRAY(const real, bias),
    ARRAY(const stored, residual), ARRAY(const stored, gate), ARRAY(stored, dst), const winograd_sizes sizes,
    const winograd_shares share, const int flags) {
  const int tiles_per_group = share.tiles, block = share.block;
  START(src);
  START(w);
  START(u);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  WINOGRAD_NAMES(sizes);
  const int across = (out_w + 3) / 4, down = (out_h + 1) / 2;
  const int first = (int)get_group_id(0) * tiles_per_group, last = min(n * down * across, first + tiles_per_group);
  real source[WINOGRAD_SOURCE] __attribute__((aligned(64)));
  real sums[WINOGRAD_MOST_TILES * 8 * VW] __attribute__((aligned(64)));
  winograd_tile tiles[WINOGRAD_MOST_TILES], apart[WINOGRAD_MOST_TILES];  // those that go by the definition
  const winograd_shape shape = {in_h, in_w, depth, 3, 3};
  const int whole = WINOGRAD_WHOLE(depth), row_step = whole * 6 * WINOGRAD_TILES;
  if (flags & WINOGRAD_OWN) {
    u += (long)get_group_id(0) * WINOGRAD_POSITIONS * whole * WINOGRAD_WHOLE(columns);
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
