// Weight gradient of the convolutions of winograd_1d.cl on a CPU device: x [n,len,c], dy [n,out,co] to dw [taps,c,co].
//
// As in winograd_filter.cl: the products of the transformed x and the transformed dy are summed over all tiles at each
// of six positions, and the sums go back by G^T s. The bias gradient is summed on the way.
// Program: convolution_1d
#include "cpu/winograd_filter_tile.clh"

// part [split][6][c][co]: what a group's tiles add to the weight gradient at each position, the transformed x times dy
// after A; sums [split][co], where they are there: dy summed over their pixels. Groups: x = splits of tiles_per_split
// tiles. block tiles of c and co channels fit WINOGRAD_FILTER_VALUES. Overwrites its parts of `part` and `sums`.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_filter_1d_bwd(
    ARRAY(const stored, x), ARRAY(const stored, dy), ARRAY(real, part), ARRAY(real, sums), const int n, const int len,
    const int c, const int out, const int co, const int taps, const int pad, const winograd_shares share) {
  const int tiles_per_split = share.tiles, block = share.block;
  START(x);
  START(dy);
  START(part);
  START(sums);
  const int outputs = 7 - taps, across = (out + outputs - 1) / outputs;
  const int first = (int)get_group_id(0) * tiles_per_split, last = min(n * across, first + tiles_per_split);
  part += (long)get_group_id(0) * 6 * c * co;
  const int has_sums = sums != 0;
  sums += (long)get_group_id(0) * co;
  real source[WINOGRAD_FILTER_VALUES] __attribute__((aligned(64)));
  real* other = source + 6 * block * c;
  const vreal zero = (vreal)(0);
  if (has_sums) {
    for (int k = 0; k < co; k += VW) VSTORE(zero, sums + k);
  }
  for (int t0 = first; t0 < last; t0 += block) {
    const int there = min(block, last - t0);
    for (int t = 0; t < there; ++t) {
      const int line = (t0 + t) / across, tile = t0 + t - line * across, column = outputs * tile - pad;
      __global const stored* at_x = x + ((long)line * len + column) * c;
      winograd_squares unused = winograd_no_squares();
      winograd_1d_input(at_x, column, len, c, block * c, VW, source + t * c, &unused);
      const int places = min(outputs, out - outputs * tile);
      __global const stored* at = dy + ((long)line * out + outputs * tile) * co;
      for (int k = 0; k < co; k += VW, at += VW) {
        vreal a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = i < places ? VLOAD(at + i * co) : zero;
        if (has_sums) VSTORE(VLOAD(sums + k) + ((a[0] + a[1]) + (a[2] + a[3])), sums + k);
        real* to = other + t * co + k;
        winograd_filter_line(a, block * co, to);
        VSTORE(outputs == 2 ? a[1] : outputs == 3 ? a[2] : a[3], to + 5 * block * co);
      }
    }
    for (int p = 0; p < 6; ++p)
      winograd_filter_products(source + p * block * c, c, other + p * block * co, co, there, t0 == first,
                               part + (long)p * c * co);
  }
}

// Sums the splits of part [split][6][c][co] and gives dw [taps,c,co] = G^T s. Groups: x = c. Overwrites dw.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_filter_1d_weights(
    ARRAY(const real, part), ARRAY(stored, dw), const int taps, const int c, const int co, const int splits) {
  START(part);
  START(dw);
  const long all = (long)c * co, at = (long)get_group_id(0) * co;
  part += at;
  dw += at;
  for (int k = 0; k < co; k += VW, part += VW, dw += VW) {
    vreal s[6];
#pragma unroll
    for (int p = 0; p < 6; ++p) s[p] = VLOAD(part + p * all);
    for (int split = 1; split < splits; ++split) {
#pragma unroll
      for (int p = 0; p < 6; ++p) s[p] += VLOAD(part + ((long)split * 6 + p) * all);
    }
    const vreal even_far = s[1] + s[2], even_near = s[3] + s[4], odd_far = s[1] - s[2], odd_near = s[3] - s[4];
    const vreal root = (vreal)(WINOGRAD_FILTER_ROOT / 6), last = s[5], none = (vreal)(0);
    VSTORE(s[0] + FMA((vreal)(-4), even_near, even_far) / (vreal)(6), dw);
    VSTORE(FMA((vreal)(-2), odd_near, odd_far) * root, dw + all);
    VSTORE((even_far - even_near) / (vreal)(3) + (taps == 3 ? last : none), dw + 2 * all);
    if (taps > 3) VSTORE(FMA((vreal)(2), odd_far, -odd_near) * root + (taps == 4 ? last : none), dw + 3 * all);
    if (taps > 4) VSTORE(FMA((vreal)(4), even_far, -even_near) / (vreal)(6) + last, dw + 4 * all);
  }
}
