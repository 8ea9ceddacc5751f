// Weight gradient of the convolutions of winograd.cl on a GPU: x [n,h,wd,c], dy [n,oh,ow,co] to dw [3,3,c,co];
// cl/cpu/winograd_filter.cl has the transforms. A group of 16 x 16 work-items sums the products of 16 x 16 channels at
// the six positions of one row, over a share of the tiles that goes through local memory.
// Program: convolution
#include "gpu/winograd_filter_tile.clh"

// part [split][4][6][c][co]: the sums of a group's tiles. Groups: x = splits of tiles_per_split tiles, y = 4 rows of
// positions, z = ceil(c/16)*ceil(co/16), co fastest. Overwrites its part of `part`.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void winograd_filter_bwd(ARRAY(const stored, x),
                                                                                   ARRAY(const stored, dy),
                                                                                   ARRAY(real, part),
                                                                                   const winograd_sizes sizes,
                                                                                   const int tiles_per_split) {
  START(x);
  START(dy);
  START(part);
  const int n = sizes.n, h = sizes.in_h, wd = sizes.in_w, c = sizes.depth, oh = sizes.out_h, ow = sizes.out_w,
            co = sizes.columns, pad_h = sizes.pad_h, pad_w = sizes.pad_w;
  __local real source[6 * WINOGRAD_FILTER_STEP * WINOGRAD_FILTER_PITCH];
  __local real other[6 * WINOGRAD_FILTER_STEP * WINOGRAD_FILTER_PITCH];
  const int lx = get_local_id(0), ly = get_local_id(1), row = get_group_id(1);
  const int across = (ow + 3) / 4, down = (oh + 1) / 2;
  const int first = (int)get_group_id(0) * tiles_per_split, last = min(n * down * across, first + tiles_per_split);
  const int column_tiles = (co + WINOGRAD_FILTER_TILE - 1) / WINOGRAD_FILTER_TILE;
  const int row_tile = (int)get_group_id(2) / column_tiles, c0 = row_tile * WINOGRAD_FILTER_TILE,
            k0 = ((int)get_group_id(2) - row_tile * column_tiles) * WINOGRAD_FILTER_TILE;
  const int step = WINOGRAD_FILTER_STEP * WINOGRAD_FILTER_PITCH, is_source = ly < WINOGRAD_FILTER_STEP;
  const int slot = is_source ? ly : ly - WINOGRAD_FILTER_STEP;
  real acc[6];
  for (int p = 0; p < 6; ++p) acc[p] = 0;
  for (int t0 = first; t0 < last; t0 += WINOGRAD_FILTER_STEP) {
    const int tile = t0 + slot, line = tile / across, tx = tile - line * across, image = line / down,
              ty = line - image * down;
    if (is_source) {
      const int top = 2 * ty - pad_h, one = top + (row > 0) + (row == 2), two = top + 2 - (row == 2) + (row == 3);
      const int is_there = tile < last && c0 + lx < c;
      const int has_one = is_there && one >= 0 && one < h, has_two = is_there && two >= 0 && two < h;
      real a[6];
      for (int i = 0; i < 6; ++i) {
        const int w = 4 * tx - pad_w + i, inside = w >= 0 && w < wd;
        const real p = inside && has_one ? LOAD(x + (((long)image * h + one) * wd + w) * c + c0 + lx) : 0,
                   q = inside && has_two ? LOAD(x + (((long)image * h + two) * wd + w) * c + c0 + lx) : 0;
        a[i] = row == 1 ? p + q : p - q;
      }
      winograd_line(a, step, source + slot * WINOGRAD_FILTER_PITCH + lx);
    } else {
      const int is_there = tile < last && k0 + lx < co;
      const int has_upper = is_there && row < 3, has_lower = is_there && row > 0 && 2 * ty + 1 < oh;
      real a[4];
      for (int i = 0; i < 4; ++i) {
        const int w = 4 * tx + i;
        const long at = (((long)image * oh + 2 * ty) * ow + w) * co + k0 + lx;
        const real p = has_upper && w < ow ? LOAD(dy + at) : 0,
                   q = has_lower && w < ow ? LOAD(dy + at + (long)ow * co) : 0;
        a[i] = row == 1 ? p + q : p - q;
      }
      winograd_filter_line(a, step, other + slot * WINOGRAD_FILTER_PITCH + lx);
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
  for (int p = 0; p < 6; ++p) part[((((long)get_group_id(0) * 4 + row) * 6 + p) * c + c0 + ly) * co + k0 + lx] = acc[p];
}

// Sums the splits of part [split][4][6][c][co] and gives dw [3,3,c,co] = G^T s G. Groups of 8 x 8: x = co, y = c.
// Overwrites dw.
__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void winograd_filter_weights(ARRAY(const real, part),
                                                                                     ARRAY(stored, dw), const int c,
                                                                                     const int co, const int splits) {
  START(part);
  START(dw);
  const int k = get_global_id(0), channel = get_global_id(1);
  if (k >= co || channel >= c) return;
  const long all = (long)c * co;
  part += (long)channel * co + k;
  dw += (long)channel * co + k;
  real g[4][3];
  for (int r = 0; r < 4; ++r) {
    real s[6];
    for (int p = 0; p < 6; ++p) {
      s[p] = 0;
      for (int split = 0; split < splits; ++split) s[p] += part[((long)split * 24 + r * 6 + p) * all];
    }
    const real even_far = s[1] + s[2], even_near = s[3] + s[4], odd_far = s[1] - s[2], odd_near = s[3] - s[4];
    g[r][0] = s[0] + FMA(REAL_C(-4.0), even_near, even_far) / 6;
    g[r][1] = FMA(REAL_C(-2.0), odd_near, odd_far) * (WINOGRAD_FILTER_ROOT / 6);
    g[r][2] = s[5] + (even_far - even_near) / 3;
  }
  for (int i = 0; i < 3; ++i) {
    const real half_even = REAL_C(0.5) * (g[1][i] + g[2][i]), half_odd = REAL_C(0.5) * (g[1][i] - g[2][i]);
    STORE(g[0][i] + half_even, dw + i * all);
    STORE(half_odd, dw + (3 + i) * all);
    STORE(g[3][i] + half_even, dw + (6 + i) * all);
  }
}
