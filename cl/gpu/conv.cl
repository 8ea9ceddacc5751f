// Convolution over volumes of a GPU, channels last: x [n,d,h,wd,c], w [kd,kh,kw,c/groups,co], y [n,od,oh,ow,co]. Images
// have depth 1 and sequences height 1, too.
//
// The passes are matrix products whose left side is gathered while it is loaded into local memory (implicit GEMM):
// groups of 16 x 16 work-items make a 64 x 64 tile, four by four values each. The weights come from panels of 64
// columns with zeros behind the last one. Every work-item takes part in every load and barrier; padding and what lies
// outside the matrices is zero.
#define CONV_NR 64  // columns of a panel of packed weights, and of a tile
#define CONV_TILE_M 64
#define CONV_TILE_N 64
#define CONV_STEP 16   // values of the summed axis in local memory at a time
#define CONV_PITCH 65  // of a row in local memory; odd, so that a column's values lie in different banks

#define CONV_ACCUMULATE 1
#define CONV_BIAS 2
#define CONV_RELU 4

// s* stride, p* padding, d* dilation of an axis; flags: CONV_ACCUMULATE and so on.
#define CONV_GEOMETRY                                                                                                 \
  const int n, const int d, const int h, const int wd, const int c, const int od, const int oh, const int ow,         \
      const int co, const int kd, const int kh, const int kw, const int sd, const int sh, const int sw, const int pd, \
      const int ph, const int pw, const int dd, const int dh, const int dw, const int groups, const int flags

// Packs w for conv_fwd (transposed 0: columns are output channels, depth the input channels) or conv_bwd_input
// (transposed 1: the reverse). packed [groups/bundle][panels][taps][depth][64], missing columns zero. ci and co are per
// group. `bundle` neighbouring groups are packed as one, with zeros where a column and a depth belong to different
// groups. Groups of 256: x = taps, y = panels = ceil(columns/64), z = groups/bundle.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void conv_pack_weights(ARRAY(const real, w),
                                                                                 ARRAY(real, packed), const int taps,
                                                                                 const int ci, const int co,
                                                                                 const int groups, const int bundle,
                                                                                 const int transposed) {
  START(w);
  START(packed);
  const int tap = get_group_id(0), panel = get_group_id(1), g = get_group_id(2), panels = get_num_groups(1);
  const int depth_one = transposed ? co : ci, columns_one = transposed ? ci : co;  // of one group
  const int depth = depth_one * bundle, columns = columns_one * bundle;
  const long depth_step = transposed ? 1 : (long)co * groups, column_step = transposed ? (long)co * groups : 1;
  const int first = panel * CONV_NR;
  __global const real* from = w + (long)tap * ci * co * groups + (long)g * bundle * co;
  __global real* to = packed + (((long)g * panels + panel) * taps + tap) * depth * CONV_NR;
  for (int e = get_local_id(0); e < depth * CONV_NR; e += 256) {
    const int k = e / CONV_NR, j = e - k * CONV_NR;
    const int member = k / depth_one, column = first + j - member * columns_one;
    to[e] = first + j < columns && column >= 0 && column < columns_one
                ? from[member * co + (k - member * depth_one) * depth_step + column * column_step]
                : 0;
  }
}

// acc += the product of the tiles in local memory, for rows ly + 16 r and columns lx + 16 s.
void conv_multiply(__local const real* a_tile, __local const real* b_tile, real (*acc)[4]) {
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

// One tile of forward or input gradient: rows are target places of the n volumes, the summed axis is (tap, channel).
// source starts at the group's first channel, panel [taps][depth][64], target and bias at the group's first column.
void conv_tile(__global const real* source, __global const real* panel, __global const real* bias,
               __global real* target, __local real* a_tile, __local real* b_tile, const int row0, const int n,
               const conv_space g, const int depth, const int kd, const int kh, const int kw, const int columns,
               const int flags) {
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
  real acc[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int s = 0; s < 4; ++s) acc[r][s] = 0;
  }
  for (int k0 = 0; k0 < sum; k0 += CONV_STEP) {
    const int k = k0 + item % 16;
    const int tap = k / depth, channel = k - tap * depth;
    const int tap_line = tap / kw, tz = tap_line / kh;
    const int ty = tap_line - tz * kh, tx = tap - tap_line * kw;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int z = at_d[q] + tz * g.step_d, y = at_h[q] + ty * g.step_h, x = at_w[q] + tx * g.step_w;
      const int sz = z / g.divide_d, sy = y / g.divide_h, sx = x / g.divide_w;
      const int inside = k < sum && volume[q] >= 0 && z >= 0 && y >= 0 && x >= 0 && sz < g.in_d && sy < g.in_h &&
                         sx < g.in_w && sz * g.divide_d == z && sy * g.divide_h == y && sx * g.divide_w == x;
      a_tile[item % 16 * CONV_PITCH + item / 16 + 16 * q] =
          inside ? source[volume[q] + (((long)sz * g.in_h + sy) * g.in_w + sx) * g.in_c + channel] : 0;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int p = item / 64 + 4 * q, j = item % 64;
      b_tile[p * CONV_PITCH + j] = k0 + p < sum ? panel[(long)(k0 + p) * CONV_NR + j] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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
        __global real* to = target + (long)row * g.out_c + j;
        real v = acc[r][s];
        if (flags & CONV_ACCUMULATE) v += *to;
        if (flags & CONV_BIAS) v += bias[j];
        if (flags & CONV_RELU) v = v < 0 ? 0 : v;
        *to = v;
      }
    }
  }
}

// y = x * w (packed), with the epilogue of `flags` (accumulate 1, bias 2, ReLU 4). Groups: x =
// ceil(n*od*oh*ow/64)*ceil((co/groups)/64), column tile fastest, z = groups. tile_m and tile_n are 64.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv_fwd(ARRAY(const real, x), ARRAY(const real, w),
                                                                        ARRAY(const real, bias), ARRAY(real, y),
                                                                        CONV_GEOMETRY, const int tile_m,
                                                                        const int tile_n) {
  START(x);
  START(w);
  START(bias);
  START(y);
  __local real a_tile[CONV_STEP * CONV_PITCH];
  __local real b_tile[CONV_STEP * CONV_PITCH];
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2);
  const int panels = (co_group + CONV_NR - 1) / CONV_NR;
  const int row_tile = (int)get_group_id(0) / panels, panel = (int)get_group_id(0) - row_tile * panels;
  const int first = g * co_group + panel * CONV_NR;
  const conv_space s = {od, oh, ow, sd, sh, sw, -pd, -ph, -pw, dd, dh, dw, 1, 1, 1, d, h, wd, c, co};
  conv_tile(x + g * ci_group, w + ((long)g * panels + panel) * kd * kh * kw * ci_group * CONV_NR, bias + first,
            y + first, a_tile, b_tile, row_tile * CONV_TILE_M, n, s, ci_group, kd, kh, kw, co_group - panel * CONV_NR,
            flags);
}

// dx = dy * w (packed, transposed) where the stride divides, with the epilogue of `flags` (accumulate 1, bias [c] 2).
// Groups: x = ceil(n*d*h*wd/64)*ceil((c/groups)/64), column tile fastest, z = groups. tile_m and tile_n are 64.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv_bwd_input(ARRAY(const real, dy),
                                                                              ARRAY(const real, w),
                                                                              ARRAY(const real, bias), ARRAY(real, dx),
                                                                              CONV_GEOMETRY, const int tile_m,
                                                                              const int tile_n) {
  START(dy);
  START(w);
  START(bias);
  START(dx);
  __local real a_tile[CONV_STEP * CONV_PITCH];
  __local real b_tile[CONV_STEP * CONV_PITCH];
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2);
  const int panels = (ci_group + CONV_NR - 1) / CONV_NR;
  const int row_tile = (int)get_group_id(0) / panels, panel = (int)get_group_id(0) - row_tile * panels;
  const int first = g * ci_group + panel * CONV_NR;
  const conv_space s = {d, h, wd, 1, 1, 1, pd, ph, pw, -dd, -dh, -dw, sd, sh, sw, od, oh, ow, co, c};
  conv_tile(dy + g * co_group, w + ((long)g * panels + panel) * kd * kh * kw * co_group * CONV_NR, bias + first,
            dx + first, a_tile, b_tile, row_tile * CONV_TILE_M, n, s, co_group, kd, kh, kw, ci_group - panel * CONV_NR,
            flags & (CONV_ACCUMULATE | CONV_BIAS));
}
#undef CONV_GEOMETRY
