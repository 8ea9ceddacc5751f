// 3x3 convolution of stride 1 by minimal filtering on a GPU, channels last: x [n,h,wd,c], w [3,3,c,co], y [n,oh,ow,co];
// cl/cpu/winograd.cl has the transforms. A group of 16 x 4 work-items makes four tiles of 2 x 4 outputs for 16 columns:
// the tiles' transformed source goes through local memory, each work-item holds the 24 positions of one tile and
// column. Its squares decide, as in cl/cpu/winograd.cl, whether a tile goes by the definition instead.
// Program: convolution
#include "gpu/winograd_tile.clh"

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
      if (flags & CONV_ACTIVATION) v = sb_activated(ROUND(v), flags & CONV_RELU6);
      if ((flags & CONV_GATE) && !(LOAD(gate + at) > 0)) v = 0;
      STORE(v, dst + at);
    }
  }
}
