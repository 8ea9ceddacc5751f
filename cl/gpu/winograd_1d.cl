// Convolution of stride 1 along a line by minimal filtering on a GPU, channels last: x [n,len,c], w [taps,c,co], y
// [n,out,co], of 3, 4 or 5 taps; cl/cpu/winograd_1d.cl has the tile, cl/cpu/winograd.cl the transforms. A group of 16 x
// 4 work-items makes four tiles of 7 - taps outputs for 16 columns: the tiles' transformed source goes through local
// memory, each work-item holds the six positions of one tile and column.
// Program: convolution_1d
#include "gpu/winograd_tile.clh"

#define WINOGRAD_1D_TILES 4
#define WINOGRAD_1D_MOST_TILES 4
#define WINOGRAD_1D_COLUMNS 16
#define WINOGRAD_1D_MOST_CHANNELS 65536
#define WINOGRAD_1D_STEP 16   // channels in local memory at a time, as many as a row of work-items
#define WINOGRAD_1D_PITCH 17  // odd, so that neighbouring tiles lie in different banks

// u [6][depth][columns] = G w, the taps turned around and the channels exchanged where transposed is set. Groups of 8 x
// 8: x = columns, y = depth. Overwrites u.
__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void winograd_1d_weights(ARRAY(const stored, w), ARRAY(real, u),
                                                                                 const int taps, const int c,
                                                                                 const int co, const int transposed) {
  START(w);
  START(u);
  const int depth = transposed ? co : c, columns = transposed ? c : co;
  const int column = get_global_id(0), k = get_global_id(1);
  if (column >= columns || k >= depth) return;
  const long all = (long)c * co, at = transposed ? (long)column * co + k : (long)k * co + column;
  real g[5];
  for (int tap = 0; tap < 5; ++tap) g[tap] = tap < taps ? LOAD(w + at + (transposed ? taps - 1 - tap : tap) * all) : 0;
  const real far = FMA(REAL_C(2.0), FMA(REAL_C(2.0), g[4], g[2]), g[0]) / 6,
             near = FMA(REAL_C(0.5), FMA(REAL_C(0.5), g[4], g[2]), g[0]) * (REAL_C(-2.0) / 3);
  const real odd_far = FMA(REAL_C(2.0), g[3], g[1]) * (WINOGRAD_ROOT / 6),
             odd_near = FMA(REAL_C(0.5), g[3], g[1]) * (WINOGRAD_ROOT / -3);
  u += (long)k * columns + column;
  u[0] = g[0];
  u[all] = far + odd_far;
  u[2 * all] = far - odd_far;
  u[3 * all] = near + odd_near;
  u[4 * all] = near - odd_near;
  u[5 * all] = taps == 3 ? g[2] : taps == 4 ? g[3] : g[4];
}

// dst [n,out,columns] of src [n,len,depth] and u of winograd_1d_weights. Tiles that winograd_holds refuses are computed
// of w [taps,c,co], its taps turned and its channels exchanged with 64. Epilogue by `flags`: + bias [columns] 2, +
// residual (as dst) 8, then ReLU 4, which NaN passes, then 0 where gate (as dst) is not above 0, 16. Tiles are counted
// [n][across]. Groups of 16 x 4: x = ceil(tiles/4), y = ceil(columns/16). Accumulates in `real`, WINOGRAD_1D_STEP
// channels at a time.
__kernel __attribute__((reqd_work_group_size(16, 4, 1))) void winograd_1d_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(const real, u), ARRAY(const real, bias),
    ARRAY(const stored, residual), ARRAY(const stored, gate), ARRAY(stored, dst), const int n, const int len,
    const int depth, const int out, const int columns, const int taps, const int pad, const int flags) {
  START(src);
  START(w);
  START(u);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  __local winograd_squares squares[16 * WINOGRAD_1D_TILES];
  __local real source[6 * WINOGRAD_1D_TILES * WINOGRAD_1D_PITCH];
  const int lx = get_local_id(0), ly = get_local_id(1), outputs = 7 - taps, across = (out + outputs - 1) / outputs;
  const int tile = (int)get_group_id(0) * WINOGRAD_1D_TILES + ly, is_tile = tile < n * across;
  const int line = tile / across, tx = tile - line * across, column0 = outputs * tx - pad;
  const int column = (int)get_group_id(1) * WINOGRAD_1D_COLUMNS + lx;
  const long all = (long)depth * columns;
  real acc[6];
  for (int p = 0; p < 6; ++p) acc[p] = 0;
  winograd_squares q;
  winograd_start(&q);
  for (int k0 = 0; k0 < depth; k0 += WINOGRAD_1D_STEP) {
    // This work-item transforms one channel of its tile.
    real a[6];
    for (int x = 0; x < 6; ++x) {
      const int v = column0 + x, inside = is_tile && k0 + lx < depth && v >= 0 && v < len;
      a[x] = inside ? LOAD(src + ((long)line * len + v) * depth + k0 + lx) : 0;
      winograd_add(&q, a[x]);
      for (int i = 0; i < outputs; ++i)
        q.windows[i] = x >= i && x < i + taps ? FMA(a[x], a[x], q.windows[i]) : q.windows[i];
    }
    winograd_line(a, WINOGRAD_1D_TILES * WINOGRAD_1D_PITCH, source + ly * WINOGRAD_1D_PITCH + lx);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int steps = min(WINOGRAD_1D_STEP, depth - k0);
    real sums[6];  // of these channels: short chains round less than the direct sums do
    for (int p = 0; p < 6; ++p) sums[p] = 0;
    for (int k = 0; k < steps; ++k) {
      for (int p = 0; p < 6; ++p) {
        const real weight = column < columns ? u[p * all + (long)(k0 + k) * columns + column] : 0;
        sums[p] = FMA(source[(p * WINOGRAD_1D_TILES + ly) * WINOGRAD_1D_PITCH + k], weight, sums[p]);
      }
    }
    for (int p = 0; p < 6; ++p) acc[p] += sums[p];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  squares[ly * 16 + lx] = q;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!is_tile || column >= columns) return;  // after the last barrier
  const int places = min(outputs, out - outputs * tx), transposed = (flags & WINOGRAD_TRANSPOSED) != 0;
  const int by_tile = winograd_holds(squares + ly * 16, 1, places);
  const real even_far = acc[1] + acc[2], odd_far = acc[1] - acc[2], even_near = acc[3] + acc[4],
             odd_near = acc[3] - acc[4];
  real z[4];
  z[0] = acc[0] + (even_far + even_near);
  z[1] = FMA(WINOGRAD_ROOT, odd_far, FMA(WINOGRAD_ROOT / 2, odd_near, outputs == 2 ? acc[5] : 0));
  z[2] = FMA(REAL_C(2.0), even_far, FMA(REAL_C(0.5), even_near, outputs == 3 ? acc[5] : 0));
  z[3] = FMA(WINOGRAD_ROOT * 2, odd_far, FMA(WINOGRAD_ROOT / 4, odd_near, acc[5]));
  for (int x = 0; x < places; ++x) {
    const long at = ((long)line * out + outputs * tx + x) * columns + column;
    real v = by_tile ? z[x] : 0;
    for (int tap = 0; tap < taps && !by_tile; ++tap) {
      const int s = column0 + x + tap;
      if (s < 0 || s >= len) continue;
      v = winograd_direct(src + ((long)line * len + s) * depth, w + (transposed ? taps - 1 - tap : tap) * all, depth,
                          columns, column, transposed, v);
    }
    if (flags & CONV_BIAS) v += bias[column];
    if (flags & CONV_RESIDUAL) v = ROUND(v) + LOAD(residual + at);
    if ((flags & CONV_RELU) && v < 0) v = 0;
    if (flags & CONV_ACTIVATION) v = sb_activated(ROUND(v), flags & CONV_RELU6);
    if ((flags & CONV_GATE) && !(LOAD(gate + at) > 0)) v = 0;
    STORE(v, dst + at);
  }
}
