// Convolution over volumes of a GPU, channels last: x [n,d,h,wd,c], w [kd,kh,kw,c/groups,co], y [n,od,oh,ow,co]. Images
// have depth 1 and sequences height 1, too.
//
// Forward and input gradient are one kernel, a matrix product whose left side is gathered while it is loaded into local
// memory (implicit GEMM): groups of 16 x 16 work-items make a 64 x 64 tile, four by four values each. Every work-item
// takes part in every load and barrier; padding and what lies outside the matrices is zero.
// Program: convolution
#include "shared/conv.h"

#define CONV_TILE_M 64
#define CONV_TILE_N 64
#define CONV_STEP 16   // values of the summed axis in local memory at a time
#define CONV_PITCH 65  // of a row in local memory; odd, so that a column's values lie in different banks

// acc += the product of the tiles in local memory, for rows ly + 16 r and columns lx + 16 s.
static inline __attribute__((always_inline)) void conv_multiply(__local const real* a_tile, __local const real* b_tile,
                                                                real (*acc)[4]) {
  const int lx = get_local_id(0), ly = get_local_id(1);
#pragma unroll
  for (int p = 0; p < CONV_STEP; ++p) {
    real av[4], bv[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) av[r] = a_tile[p * CONV_PITCH + ly + 16 * r];
#pragma unroll
    for (int s = 0; s < 4; ++s) bv[s] = b_tile[p * CONV_PITCH + lx + 16 * s];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int s = 0; s < 4; ++s) acc[r][s] = FMA(av[r], bv[s], acc[r][s]);
    }
  }
}

// The target places of one launch: (a, b, e) of [grid_d, grid_h, grid_w] looks with a tap (tz, ty, tx) at source
// position
// ((a*mul_d + add_d + tz*step_d)/divide_d, ...), which counts where the division is exact and the position inside.
typedef struct {
  int grid_d, grid_h, grid_w, mul_d, mul_h, mul_w, add_d, add_h, add_w;
  int step_d, step_h, step_w, divide_d, divide_h, divide_w;
  int in_d, in_h, in_w, in_c, out_c;
} conv_space;

// How a tile reads the weights: value (k, j) of tap t lies at w[t*tap + k*depth + j*column].
typedef struct {
  long tap, depth, column;
} conv_weights;

// In conv_tile's names: the tap and the channel of a work-item once they are CONV_STEP values further, and its values
// for the step at k0. Neighbouring work-items read neighbouring weights: columns, whose taps and channels lie one
// behind the other, or the summed channels of a transposed product.
#define CONV_NEXT_TAPS       \
  while (channel >= depth) { \
    channel -= depth;        \
    ++tap;                   \
    if (++tx < kw) continue; \
    tx = 0;                  \
    if (++ty < kh) continue; \
    ty = 0;                  \
    ++tz;                    \
  }
#define CONV_NEXT(k0)                                                                                                \
  CONV_NEXT_TAPS                                                                                                     \
  _Pragma("unroll") for (int q = 0; q < 4; ++q) {                                                                    \
    int sz = at_d[q] + tz * g.step_d, sy = at_h[q] + ty * g.step_h, sx = at_w[q] + tx * g.step_w;                    \
    int inside = (k0) + item % 16 < sum && volume[q] >= 0 && sz >= 0 && sy >= 0 && sx >= 0;                          \
    if (divides) {                                                                                                   \
      const int z = sz, y = sy, x = sx;                                                                              \
      sz = z / g.divide_d, sy = y / g.divide_h, sx = x / g.divide_w;                                                 \
      inside = inside && sz * g.divide_d == z && sy * g.divide_h == y && sx * g.divide_w == x;                       \
    }                                                                                                                \
    inside = inside && sz < g.in_d && sy < g.in_h && sx < g.in_w;                                                    \
    a_next[q] = inside ? LOAD(source + volume[q] + (((long)sz * g.in_h + sy) * g.in_w + sx) * g.in_c + channel) : 0; \
  }                                                                                                                  \
  _Pragma("unroll") for (int q = 0; q < 4; ++q) {                                                                    \
    const int p = by_columns ? item / 64 + 4 * q : item % 16;                                                        \
    const int j = by_columns ? item % 64 : item / 16 + 16 * q;                                                       \
    const long at = by_columns ? ((k0) + p) * s.depth : tap * s.tap + channel * s.depth;                             \
    b_next[q] = (k0) + p < sum && j < columns ? LOAD(w + at + j * s.column) : 0;                                     \
  }                                                                                                                  \
  channel += CONV_STEP;

// One tile: rows are target places of the n volumes, the summed axis is (tap, channel). source starts at the group's
// first channel, w and what is named after the target at the tile's first column.
static inline __attribute__((always_inline)) void conv_tile(
    __global const stored* source, __global const stored* w, const conv_weights s, __global const real* bias,
    __global const stored* residual, __global const stored* gate, __global stored* target, __local real* a_tile,
    __local real* b_tile, const int row0, const int n, const conv_space g, const int depth, const int kd, const int kh,
    const int kw, const int columns, const int flags) {
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int slice = g.grid_h * g.grid_w, rows = n * g.grid_d * slice, sum = kd * kh * kw * depth;
  // This work-item loads summed index item % 16 of four rows.
  int at_d[4], at_h[4], at_w[4];
  long volume[4];
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const int row = row0 + item / 16 + 16 * q;
    const int slices = row / slice, pixel = row - slices * slice;
    const int image = slices / g.grid_d, line = pixel / g.grid_w;
    at_d[q] = (slices - image * g.grid_d) * g.mul_d + g.add_d;
    at_h[q] = line * g.mul_h + g.add_h;
    at_w[q] = (pixel - line * g.grid_w) * g.mul_w + g.add_w;
    volume[q] = row < rows ? (long)image * g.in_d * g.in_h * g.in_w * g.in_c : -1;
  }
  // Its tap and channel, which move on by CONV_STEP values at a time.
  int channel = item % 16, tap = 0, tz = 0, ty = 0, tx = 0;
  const int divides = g.divide_d > 1 || g.divide_h > 1 || g.divide_w > 1;
  // Columns are neighbours, and the lines of all taps lie one behind the other.
  const int by_columns = s.column == 1 && s.tap == depth * s.depth;
  real acc[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int s = 0; s < 4; ++s) acc[r][s] = 0;
  }
  // The next step's values are on their way while this one's are multiplied.
  real a_next[4], b_next[4];
  CONV_NEXT(0)
  for (int k0 = 0; k0 < sum; k0 += CONV_STEP) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int p = by_columns ? item / 64 + 4 * q : item % 16, j = by_columns ? item % 64 : item / 16 + 16 * q;
      a_tile[item % 16 * CONV_PITCH + item / 16 + 16 * q] = a_next[q];
      b_tile[p * CONV_PITCH + j] = b_next[q];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    CONV_NEXT(k0 + CONV_STEP)
    conv_multiply(a_tile, b_tile, acc);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = row0 + ly + 16 * r;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const int j = lx + 16 * s;
      if (row < rows && j < columns) {
        real v = acc[r][s];
        if (flags & CONV_BIAS) v += bias[j];
        if (flags & CONV_RESIDUAL) v = ROUND(v) + LOAD(residual + (long)row * g.out_c + j);
        if (flags & CONV_RELU) v = v < 0 ? 0 : v;
        if (flags & CONV_ACTIVATION) v = sb_activated(ROUND(v), flags & CONV_RELU6);
        if (flags & CONV_GATE) v = LOAD(gate + (long)row * g.out_c + j) > 0 ? v : 0;
        STORE(v, target + (long)row * g.out_c + j);
      }
    }
  }
}

// transposed 0: dst = y = conv(src = x, w). transposed 1: dst = dx, the sum over the taps that reach an input pixel, of
// src = dy. Epilogue by `flags`: shared/conv.h.
// Groups: x = ceil(pixels of dst/64)*ceil(columns/64), column tile fastest, z = groups.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(const stored, gate), ARRAY(stored, dst), const conv_sizes sizes, const int transposed, const int flags) {
  START(src);
  START(w);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  CONV_NAMES(sizes);
  __local real a_tile[CONV_STEP * CONV_PITCH];
  __local real b_tile[CONV_STEP * CONV_PITCH];
  const int ci = c / groups, co_group = co / groups, g = get_group_id(2);
  const int depth = transposed ? co_group : ci, columns = transposed ? ci : co_group;
  const int column_tiles = (columns + CONV_TILE_N - 1) / CONV_TILE_N;
  const int row_tile = (int)get_group_id(0) / column_tiles;
  const int column = ((int)get_group_id(0) - row_tile * column_tiles) * CONV_TILE_N, first = g * columns + column;
  const conv_space forward = {od, oh, ow, sd, sh, sw, -pd, -ph, -pw, dd, dh, dw, 1, 1, 1, d, h, wd, c, co};
  const conv_space back = {d, h, wd, 1, 1, 1, pd, ph, pw, -dd, -dh, -dw, sd, sh, sw, od, oh, ow, co, c};
  const conv_weights s = {(long)ci * co, transposed ? 1 : co, transposed ? co : 1};
  conv_tile(src + g * depth, w + g * co_group + column * s.column, s, bias + first, residual + first, gate + first,
            dst + first, a_tile, b_tile, row_tile * CONV_TILE_M, n, transposed ? back : forward, depth, kd, kh, kw,
            columns - column, flags);
}
