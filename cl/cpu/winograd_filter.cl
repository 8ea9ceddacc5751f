// Weight gradient of the convolutions of winograd.cl on a CPU device: x [n,h,wd,c], dy [n,oh,ow,co] to dw [3,3,c,co].
//
// The gradient is linear in the transformed weights: for each of the 24 positions of a tile the products of the
// transformed x and the transformed dy (A dy A^T of the same paper) are summed over all tiles, [c x tiles][tiles x co],
// and the sums go back by G^T s G. A block of tiles is transformed into private memory, then each position's sums,
// which lie in global memory, take its products with register tiles of channels.
// Program: convolution
#include "cpu/winograd_filter_tile.clh"

// part [split][4][6][c][co]: the sums of a group's tiles at `rows` of the four rows of positions. Groups: x = splits of
// tiles_per_split tiles, y = 4 / rows. block tiles, c and co fit WINOGRAD_FILTER_VALUES. Overwrites its part of `part`.
SB_APART void winograd_filter_group(SB_AT(const stored, x), SB_AT(const stored, dy), SB_AT(real, part),
                                    const winograd_sizes sizes, const winograd_filter_shares share, const int group,
                                    const int group_y) {
  const int tiles_per_split = share.tiles, block = share.block, rows = share.rows, r0 = group_y * rows;
  const int n = sizes.n, h = sizes.in_h, wd = sizes.in_w, c = sizes.depth, oh = sizes.out_h, ow = sizes.out_w,
            co = sizes.columns, pad_h = sizes.pad_h, pad_w = sizes.pad_w;
  const int across = (ow + 3) / 4, down = (oh + 1) / 2;
  const int first = group * tiles_per_split, last = min(n * down * across, first + tiles_per_split);
  part += ((long)group * 4 + r0) * 6 * c * co;
  real source[WINOGRAD_FILTER_VALUES] __attribute__((aligned(64)));
  real* other = source + 6 * rows * block * c;
  const vreal zero = (vreal)(0);
  for (int t0 = first; t0 < last; t0 += block) {
    const int there = min(block, last - t0);
    for (int t = 0; t < there; ++t) {
      const int line = (t0 + t) / across, tx = t0 + t - line * across, image = line / down, ty = line - image * down;
      const int top = 2 * ty - pad_h, column = 4 * tx - pad_w;
      const int is_inside = column >= 0 && column + 6 <= wd, has_all = 4 * tx + 4 <= ow;
      if (rows == 4) {
        const winograd_tile tile = {(((long)image * h + top) * wd + column) * c, 0, top, column, 0, 0};
        winograd_squares unused = winograd_no_squares();
        for (int k = 0; k < c; k += VW)
          winograd_input(x + k, &tile, h, wd, c, 6 * block * c, block * c, source + t * c + k, &unused);
      }
      for (int r = 0; r < rows && rows < 4; ++r) {
        // A row of positions is the sum or difference of two source lines.
        const int row = r0 + r, one = top + (row > 0) + (row == 2), two = top + 2 - (row == 2) + (row == 3);
        const int has_one = one >= 0 && one < h, has_two = two >= 0 && two < h;
        const vreal sign = (vreal)(row == 1 ? 1 : -1);
        __global const stored* at_one = x + (((long)image * h + one) * wd + column) * c;
        __global const stored* at_two = x + (((long)image * h + two) * wd + column) * c;
        for (int k = 0; k < c; k += VW, at_one += VW, at_two += VW) {
          vreal a[6];
          if (is_inside && has_one && has_two) {
#pragma unroll
            for (int i = 0; i < 6; ++i) a[i] = FMA(sign, VLOAD(at_two + i * c), VLOAD(at_one + i * c));
          } else {
#pragma unroll
            for (int i = 0; i < 6; ++i) {
              const int is_there = column + i >= 0 && column + i < wd;
              const vreal p = is_there && has_one ? VLOAD(at_one + i * c) : zero,
                          q = is_there && has_two ? VLOAD(at_two + i * c) : zero;
              a[i] = FMA(sign, q, p);
            }
          }
          winograd_line(a, block * c, source + (r * 6 * block + t) * c + k);
        }
      }
      const int has_lower = 2 * ty + 1 < oh;
      __global const stored* at = dy + (((long)image * oh + 2 * ty) * ow + 4 * tx) * co;
      for (int k = 0; k < co; k += VW, at += VW) {
        vreal upper[4], lower[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int is_there = has_all || 4 * tx + i < ow;
          upper[i] = is_there ? VLOAD(at + i * co) : zero;
          lower[i] = is_there && has_lower ? VLOAD(at + (ow + i) * co) : zero;
        }
        for (int r = 0; r < rows; ++r) {
          const int row = r0 + r;
          vreal a[4];
#pragma unroll
          for (int i = 0; i < 4; ++i)
            a[i] = row == 0 ? upper[i] : row == 1 ? upper[i] + lower[i] : row == 2 ? upper[i] - lower[i] : -lower[i];
          winograd_filter_line(a, block * co, other + (r * 6 * block + t) * co + k);
        }
      }
    }
    for (int p = 0; p < 6 * rows; ++p) {
      const real *a = source + p * block * c, *b = other + p * block * co;
      __global real* to = part + (long)p * c * co;
      winograd_filter_products(a, c, b, co, there, t0 == first, to);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_filter_bwd(ARRAY(const stored, x),
                                                                                 ARRAY(const stored, dy),
                                                                                 ARRAY(real, part),
                                                                                 const winograd_sizes sizes,
                                                                                 const winograd_filter_shares share) {
  START(x);
  START(dy);
  START(part);
  winograd_filter_group(x, dy, part, sizes, share, get_group_id(0), get_group_id(1));
}

// Sums the splits of part [split][4][6][c][co] and gives dw [3,3,c,co] = G^T s G. Groups: x = c.
// Overwrites dw.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_filter_weights(ARRAY(const real, part),
                                                                                     ARRAY(stored, dw), const int c,
                                                                                     const int co, const int splits) {
  START(part);
  START(dw);
  const long all = (long)c * co, at = (long)get_group_id(0) * co;
  part += at;
  dw += at;
  for (int k = 0; k < co; k += VW, part += VW, dw += VW) {
    vreal g[4][3];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      vreal s[6];
#pragma unroll
      for (int p = 0; p < 6; ++p) s[p] = VLOAD(part + (r * 6 + p) * all);
      for (int split = 1; split < splits; ++split) {
#pragma unroll
        for (int p = 0; p < 6; ++p) s[p] += VLOAD(part + ((long)split * 24 + r * 6 + p) * all);
      }
      const vreal even_far = s[1] + s[2], even_near = s[3] + s[4];
      const vreal odd_far = s[1] - s[2], odd_near = s[3] - s[4];
      g[r][0] = s[0] + FMA((vreal)(-4), even_near, even_far) / (vreal)(6);
      g[r][1] = FMA((vreal)(-2), odd_near, odd_far) * (vreal)(WINOGRAD_FILTER_ROOT / 6);
      g[r][2] = s[5] + (even_far - even_near) / (vreal)(3);
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const vreal half_even = (vreal)(REAL_C(0.5)) * (g[1][i] + g[2][i]),
                  half_odd = (vreal)(REAL_C(0.5)) * (g[1][i] - g[2][i]);
      VSTORE(g[0][i] + half_even, dw + i * all);
      VSTORE(half_odd, dw + (3 + i) * all);
      VSTORE(g[3][i] + half_even, dw + (6 + i) * all);
    }
  }
}
