// Weight gradient of the convolutions of winograd_1d.cl on a GPU: x [n,len,c], dy [n,out,co] to dw [taps,c,co];
// cl/cpu/winograd_filter_1d.cl has the sums. A group of 16 x 16 work-items sums the products of 16 x 16 channels at all
// six positions, over a share of the tiles that goes through local memory.
// Program: convolution_1d
#include "gpu/winograd_filter_tile.clh"

// part [split][6][c][co]: the sums of a group's tiles. Groups: x =
// splits of tiles_per_split tiles, y = 1, z = ceil(c/16)*ceil(co/16), co fastest. Overwrites its part of `part`.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void winograd_filter_1d_bwd(
    ARRAY(const stored, x), ARRAY(const stored, dy), ARRAY(real, part), const int n, const int len, const int c,
    const int out, const int co, const int taps, const int pad, const int tiles_per_split) {
  START(x);
  START(dy);
  START(part);
  __local real source[6 * WINOGRAD_FILTER_STEP * WINOGRAD_FILTER_PITCH];
  __local real other[6 * WINOGRAD_FILTER_STEP * WINOGRAD_FILTER_PITCH];
  const int lx = get_local_id(0), ly = get_local_id(1), outputs = 7 - taps, across = (out + outputs - 1) / outputs;
  const int first = (int)get_group_id(0) * tiles_per_split, last = min(n * across, first + tiles_per_split);
  const int column_tiles = (co + WINOGRAD_FILTER_TILE - 1) / WINOGRAD_FILTER_TILE;
  const int row_tile = (int)get_group_id(2) / column_tiles, c0 = row_tile * WINOGRAD_FILTER_TILE,
            k0 = ((int)get_group_id(2) - row_tile * column_tiles) * WINOGRAD_FILTER_TILE;
  const int step = WINOGRAD_FILTER_STEP * WINOGRAD_FILTER_PITCH, is_source = ly < WINOGRAD_FILTER_STEP;
  const int slot = is_source ? ly : ly - WINOGRAD_FILTER_STEP;
  real acc[6];
  for (int p = 0; p < 6; ++p) acc[p] = 0;
  for (int t0 = first; t0 < last; t0 += WINOGRAD_FILTER_STEP) {
    const int tile = t0 + slot, line = tile / across, tx = tile - line * across;
    if (is_source) {
      const int is_there = tile < last && c0 + lx < c;
      real a[6];
      for (int i = 0; i < 6; ++i) {
        const int w = outputs * tx - pad + i;
        a[i] = is_there && w >= 0 && w < len ? LOAD(x + ((long)line * len + w) * c + c0 + lx) : 0;
      }
      winograd_line(a, step, source + slot * WINOGRAD_FILTER_PITCH + lx);
    } else {
      const int is_there = tile < last && k0 + lx < co, places = min(outputs, out - outputs * tx);
      real a[4];
      for (int i = 0; i < 4; ++i)
        a[i] = is_there && i < places ? LOAD(dy + ((long)line * out + outputs * tx + i) * co + k0 + lx) : 0;
      winograd_filter_line(a, step, other + slot * WINOGRAD_FILTER_PITCH + lx);
      other[5 * step + slot * WINOGRAD_FILTER_PITCH + lx] = outputs == 2 ? a[1] : outputs == 3 ? a[2] : a[3];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = 0; t < WINOGRAD_FILTER_STEP; ++t) {
      for (int p = 0; p < 6; ++p)
        acc[p] = FMA(source[p * step + t * WINOGRAD_FILTER_PITCH + ly],
                     other[p * step + t * WINOGRAD_FILTER_PITCH + lx], acc[p]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (c0 + ly >= c || k0 + lx >= co) return;  // after the last barrier
  for (int p = 0; p < 6; ++p) part[(((long)get_group_id(0) * 6 + p) * c + c0 + ly) * co + k0 + lx] = acc[p];
}

// Sums the splits of part [split][6][c][co] and gives dw [taps,c,co] = G^T s. Groups of 8 x 8: x = co, y = c.
// Overwrites dw.
__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void winograd_filter_1d_weights(
    ARRAY(const real, part), ARRAY(stored, dw), const int taps, const int c, const int co, const int splits) {
  START(part);
  START(dw);
  const int k = get_global_id(0), channel = get_global_id(1);
  if (k >= co || channel >= c) return;
  const long all = (long)c * co;
  part += (long)channel * co + k;
  dw += (long)channel * co + k;
  real s[6];
  for (int p = 0; p < 6; ++p) {
    s[p] = 0;
    for (int split = 0; split < splits; ++split) s[p] += part[((long)split * 6 + p) * all];
  }
  const real even_far = s[1] + s[2], even_near = s[3] + s[4], odd_far = s[1] - s[2], odd_near = s[3] - s[4];
  STORE(s[0] + FMA(REAL_C(-4.0), even_near, even_far) / 6, dw);
  STORE(FMA(REAL_C(-2.0), odd_near, odd_far) * (WINOGRAD_FILTER_ROOT / 6), dw + all);
  STORE((even_far - even_near) / 3 + (taps == 3 ? s[5] : 0), dw + 2 * all);
  if (taps > 3)
    STORE(FMA(REAL_C(2.0), odd_far, -odd_near) * (WINOGRAD_FILTER_ROOT / 6) + (taps == 4 ? s[5] : 0), dw + 3 * all);
  if (taps > 4) STORE(FMA(REAL_C(4.0), even_far, -even_near) / 6 + s[5], dw + 4 * all);
}
