// 3x3 convolution of stride 1 by minimal filtering on a GPU, channels last: x [n,h,wd,c], w [3,3,c,co], y [n,oh,ow,co];
// cl/cpu/winograd.cl has the transforms. A group of 16 x 4 work-items makes four tiles of 2 x 4 outputs for 16 columns:
// the tiles' transformed source goes through local memory, each work-item holds the 24 positions of one tile and
// column. Its squares decide, as in cl/cpu/winograd.cl, whether a tile goes by the definition instead.
// Program: convolution
#include "shared/conv.h"

#define WINOGRAD_TILES 4
#define WINOGRAD_MOST_TILES 4
#define WINOGRAD_COLUMNS 16
#define WINOGRAD_MOST_CHANNELS 65536
#define WINOGRAD_STEP 16   // channels in local memory at a time, as many as a row of work-items
#define WINOGRAD_PITCH 17  // odd, so that neighbouring tiles lie in different banks

#define WINOGRAD_SPREAD REAL_C(256.0)
#define WINOGRAD_LEAST_SQUARES REAL_C(1e-30)
#define WINOGRAD_MOST_SQUARES REAL_C(1e30)

#define WINOGRAD_ROOT REAL_C(1.41421356237309504880)

// u [24][depth][columns] = G w G^T, the taps turned by half a turn and the channels exchanged where transposed is set.
// Groups of 8 x 8: x = columns, y = depth. Overwrites u.
__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void winograd_weights(ARRAY(const stored, w), ARRAY(real, u),
                                                                              const int c, const int co,
                                                                              const int transposed) {
  START(w);
  START(u);
  const int depth = transposed ? co : c, columns = transposed ? c : co;
  const int column = get_global_id(0), k = get_global_id(1);
  if (column >= columns || k >= depth) return;
  const long all = (long)c * co, at = transposed ? (long)column * co + k : (long)k * co + column;
  real g[4][3];
  for (int x = 0; x < 3; ++x) {
    const real a = LOAD(w + at + (transposed ? 8 - x : x) * all), b = LOAD(w + at + (transposed ? 5 - x : 3 + x) * all),
               e = LOAD(w + at + (transposed ? 2 - x : 6 + x) * all);
    const real even = REAL_C(0.5) * (a + e);
    g[0][x] = a;
    g[1][x] = FMA(REAL_C(0.5), b, even);
    g[2][x] = FMA(REAL_C(-0.5), b, even);
    g[3][x] = e;
  }
  u += (long)k * columns + column;
  for (int r = 0; r < 4; ++r, u += 6 * all) {
    const real a = g[r][0], b = g[r][1], e = g[r][2];
    const real far = FMA(REAL_C(2.0), e, a) / 6, near = FMA(REAL_C(2.0), a, e) / -3;
    const real odd_far = b * (WINOGRAD_ROOT / 6), odd_near = b * (WINOGRAD_ROOT / -3);
    u[0] = a;
    u[all] = far + odd_far;
    u[2 * all] = far - odd_far;
    u[3 * all] = near + odd_near;
    u[4 * all] = near - odd_near;
    u[5 * all] = e;
  }
}

// B^T along a line: the six values of a to the six positions, `step` apart.
void winograd_line(const real* a, const int step, __local real* to) {
  const real even_far = FMA(REAL_C(-0.5), a[2], a[4]), odd_far = FMA(REAL_C(-0.5), a[1], a[3]);
  const real even_near = FMA(REAL_C(-2.0), a[2], a[4]), odd_near = FMA(REAL_C(-2.0), a[1], a[3]);
  to[0] = FMA(REAL_C(-2.5), a[2], a[0] + a[4]);
  to[step] = FMA(WINOGRAD_ROOT, odd_far, even_far);
  to[2 * step] = FMA(-WINOGRAD_ROOT, odd_far, even_far);
  to[3 * step] = FMA(WINOGRAD_ROOT / 2, odd_near, even_near);
  to[4 * step] = FMA(-WINOGRAD_ROOT / 2, odd_near, even_near);
  to[5 * step] = FMA(REAL_C(-2.5), a[3], a[1] + a[5]);
}

// Of a work-item's channels of a tile: the squares of each of `count` outputs' windows and of all it reads, the largest
// value.
typedef struct {
  real windows[8], all, largest;
} winograd_squares;

void winograd_start(winograd_squares* q) {
  for (int i = 0; i < 8; ++i) q->windows[i] = 0;
  q->all = q->largest = 0;
}

void winograd_add(winograd_squares* q, const real v) {
  q->all = FMA(v, v, q->all);
  q->largest = fmax(q->largest, fabs(v));
}

// Puts the squares of a row of 16 work-items together, which stand in `shared` [16]: whether each of rows x columns
// outputs' windows, 4 to a row, holds 1 / WINOGRAD_SPREAD of all squares or more, and these are finite.
int winograd_holds(__local const winograd_squares* shared, const int rows, const int columns) {
  winograd_squares q;
  winograd_start(&q);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) q.windows[j] += shared[i].windows[j];
    q.all += shared[i].all;
    q.largest = fmax(q.largest, shared[i].largest);
  }
  if (q.all == 0 && q.largest == 0) return 1;
  int holds = q.all >= WINOGRAD_LEAST_SQUARES && q.all <= WINOGRAD_MOST_SQUARES;
  for (int i = 0; i < rows * columns; ++i)
    holds = holds && q.all <= WINOGRAD_SPREAD * q.windows[i / columns * 4 + i % columns];
  return holds;
}

// Transforms one channel of the tile whose first pixel is row0, column0, from the image's first value of it on, and
// counts its squares; zeros where it is not `there`. Positions lie WINOGRAD_TILES * WINOGRAD_PITCH apart.
void winograd_transform(__global const stored* image, const winograd_sizes* s, const int row0, const int column0,
                        const int there, winograd_squares* q, __local real* to) {
  real a[4][6];
  for (int x = 0; x < 6; ++x) {
    real d[4];
    for (int y = 0; y < 4; ++y) {
      const int h = row0 + y, v = column0 + x;
      const int inside = there && h >= 0 && h < s->in_h && v >= 0 && v < s->in_w;
      d[y] = inside ? LOAD(image + ((long)h * s->in_w + v) * s->depth) : 0;
      winograd_add(q, d[y]);
      for (int i = 0; i < 8; ++i) {
        const int in_window = y >= i / 4 && y < i / 4 + 3 && x >= i % 4 && x < i % 4 + 3;
        q->windows[i] = in_window ? FMA(d[y], d[y], q->windows[i]) : q->windows[i];
      }
    }
    a[0][x] = d[0] - d[2];
    a[1][x] = d[1] + d[2];
    a[2][x] = d[2] - d[1];
    a[3][x] = d[1] - d[3];
  }
  for (int r = 0; r < 4; ++r)
    winograd_line(a[r], WINOGRAD_TILES * WINOGRAD_PITCH, to + 6 * r * WINOGRAD_TILES * WINOGRAD_PITCH);
}

// A^T along a line: the six positions of m to four outputs.
void winograd_outputs(const real* m, real* z) {
  const real even_far = m[1] + m[2], odd_far = m[1] - m[2], even_near = m[3] + m[4], odd_near = m[3] - m[4];
  z[0] = m[0] + (even_far + even_near);
  z[1] = FMA(WINOGRAD_ROOT, odd_far, WINOGRAD_ROOT / 2 * odd_near);
  z[2] = FMA(REAL_C(2.0), even_far, REAL_C(0.5) * even_near);
  z[3] = FMA(WINOGRAD_ROOT * 2, odd_far, FMA(WINOGRAD_ROOT / 4, odd_near, m[5]));
}

// v + the products of one pixel's channels and one tap's weights for one column.
real winograd_direct(__global const stored* src, __global const stored* w, const int depth, const int columns,
                     const int column, const int transposed, real v) {
  for (int k = 0; k < depth; ++k)
    v = FMA(LOAD(src + k), LOAD(w + (transposed ? (long)column * depth + k : (long)k * columns + column)), v);
  return v;
}

// dst [n,out_h,out_w,columns] of src [n,in_h,in_w,depth] and u of winograd_weights. Tiles that winograd_holds refuses
// are computed of w [3,3,c,co], its taps turned and its channels exchanged with 64. Epilogue by `flags`: + bias
// [columns] 2, + residual (as dst) 8, then ReLU 4, which NaN passes, then 0 where gate (as dst) is not above 0, 16.
// Groups share u. Tiles are counted [n][down][across]. Groups of 16 x 4: x = ceil(tiles/4), y =
// ceil(columns/16). Accumulates in `real`, WINOGRAD_STEP channels at a time.
__kernel __attribute__((reqd_work_group_size(16, 4, 1))) void winograd_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(real, u), ARRAY(const real, bias),
    ARRAY(const stored, residual), ARRAY(const stored, gate), ARRAY(stored, dst), const winograd_sizes sizes,
    const int flags) {
  START(src);
  START(w);
  START(u);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  WINOGRAD_NAMES(sizes);
  __local winograd_squares squares[16 * WINOGRAD_TILES];
  __local real source[24 * WINOGRAD_TILES * WINOGRAD_PITCH];
  const int lx = get_local_id(0), ly = get_local_id(1);
  const int across = (out_w + 3) / 4, down = (out_h + 1) / 2;
  const int tile = (int)get_group_id(0) * WINOGRAD_TILES + ly, is_tile = tile < n * down * across;
  const int line = tile / across, tx = tile - line * across, image = line / down, ty = line - image * down;
  const int column = (int)get_group_id(1) * WINOGRAD_COLUMNS + lx;
  const int row0 = 2 * ty - pad_h, column0 = 4 * tx - pad_w;
  const long all = (long)depth * columns;
  real acc[24];
  for (int p = 0; p < 24; ++p) acc[p] = 0;
  winograd_squares q;
  winograd_start(&q);
  for (int k0 = 0; k0 < depth; k0 += WINOGRAD_STEP) {
    const __global stored* from = src + (long)image * in_h * in_w * depth + k0 + lx;
    winograd_transform(from, &sizes, row0, column0, is_tile && k0 + lx < depth, &q, source + ly * WINOGRAD_PITCH + lx);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int steps = min(WINOGRAD_STEP, depth - k0);
    real sums[24];  // of these channels: short chains round less than the direct sums do
    for (int p = 0; p < 24; ++p) sums[p] = 0;
    for (int k = 0; k < steps; ++k) {
      for (int p = 0; p < 24; ++p) {
        const real weight = column < columns ? u[p * all + (long)(k0 + k) * columns + column] : 0;
        sums[p] = FMA(source[(p * WINOGRAD_TILES + ly) * WINOGRAD_PITCH + k], weight, sums[p]);
      }
    }
    for (int p = 0; p < 24; ++p) acc[p] += sums[p];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  squares[ly * 16 + lx] = q;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!is_tile || column >= columns) return;  // after the last barrier
  const int rows = min(2, out_h - 2 * ty), places = min(4, out_w - 4 * tx);
  const int by_tile = winograd_holds(squares + ly * 16, rows, places), transposed = (flags & WINOGRAD_TRANSPOSED) != 0;
  real z[4][4];
  for (int r = 0; r < 4; ++r) winograd_outputs(acc + 6 * r, z[r]);
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < places; ++x) {
      const long at = (((long)image * out_h + 2 * ty + y) * out_w + 4 * tx + x) * columns + column;
      real v = y == 0 ? (z[1][x] + z[2][x]) + z[0][x] : (z[1][x] - z[2][x]) - z[3][x];
      if (!by_tile) {
        v = 0;
        for (int tap = 0; tap < 9; ++tap) {
          const int h = row0 + y + tap / 3, s = column0 + x + tap % 3;
          if (h < 0 || h >= in_h || s < 0 || s >= in_w) continue;
          v = winograd_direct(src + (((long)image * in_h + h) * in_w + s) * depth,
                              w + (transposed ? 8 - tap : tap) * all, depth, columns, column, transposed, v);
        }
      }
      if (flags & CONV_BIAS) v += bias[column];
      if (flags & CONV_RESIDUAL) v = ROUND(v) + LOAD(residual + at);
      if ((flags & CONV_RELU) && v < 0) v = 0;
      if (flags & CONV_HARD_SWISH) v = sb_hard_swish(ROUND(v));
      if ((flags & CONV_GATE) && !(LOAD(gate + at) > 0)) v = 0;
      STORE(v, dst + at);
    }
  }
}
