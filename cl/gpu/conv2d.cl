// Two-dimensional convolution of a GPU, channels last: x [n,h,wd,c], w [kh,kw,c/groups,co], y [n,oh,ow,co].
//
// The three passes are matrix products whose left side is gathered while it is loaded into local memory (implicit
// GEMM): groups of 16 x 16 work-items make a 64 x 64 tile, four by four values each. Forward and input gradient read
// the weights from panels of 64 columns with zeros behind the last one. The weight gradient sums a fixed number of
// parts. Every work-item takes part in every load and barrier; padding and what lies outside the matrices is zero.
#define CONV2D_NR 64  // columns of a panel of packed weights, and of a tile
#define CONV2D_TILE_M 64
#define CONV2D_TILE_N 64
#define CONV2D_FILTER_TILE_M 64
#define CONV2D_FILTER_TILE_N 64
#define CONV2D_STEP 16           // values of the summed axis in local memory at a time
#define CONV2D_PITCH 65          // of a row in local memory; odd, so that a column's values lie in different banks
#define CONV2D_REDUCE_BLOCK 256  // values per group of conv2d_bwd_filter_reduce

#define CONV2D_ACCUMULATE 1
#define CONV2D_BIAS 2
#define CONV2D_RELU 4

#define CONV2D_GEOMETRY                                                                                        \
  const int n, const int h, const int wd, const int c, const int oh, const int ow, const int co, const int kh, \
      const int kw, const int sh, const int sw, const int ph, const int pw, const int dh, const int dw,        \
      const int groups, const int flags

// Packs w for conv2d_fwd (transposed 0: columns are output channels, depth the input channels) or conv2d_bwd_input
// (transposed 1: the reverse). packed [groups][panels][taps][depth][64], missing columns zero. ci and co are per group.
// Groups of 256: x = taps, y = panels = ceil(columns/64), z = groups.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void conv2d_pack_weights(ARRAY(const real, w),
                                                                                   ARRAY(real, packed), const int taps,
                                                                                   const int ci, const int co,
                                                                                   const int groups,
                                                                                   const int transposed) {
  START(w);
  START(packed);
  const int tap = get_group_id(0), panel = get_group_id(1), g = get_group_id(2), panels = get_num_groups(1);
  const int depth = transposed ? co : ci, columns = transposed ? ci : co;
  const long depth_step = transposed ? 1 : (long)co * groups, column_step = transposed ? (long)co * groups : 1;
  const int first = panel * CONV2D_NR;
  __global const real *from = w + (long)tap * ci * co * groups + g * co + first * column_step;
  __global real *to = packed + (((long)g * panels + panel) * taps + tap) * depth * CONV2D_NR;
  for (int e = get_local_id(0); e < depth * CONV2D_NR; e += 256) {
    const int d = e / CONV2D_NR, j = e % CONV2D_NR;
    to[e] = first + j < columns ? from[d * depth_step + j * column_step] : 0;
  }
}

// acc += the product of the tiles in local memory, for rows ly + 16 r and columns lx + 16 s.
void conv2d_multiply(__local const real *a_tile, __local const real *b_tile, real (*acc)[4]) {
  const int lx = get_local_id(0), ly = get_local_id(1);
#pragma unroll
  for (int p = 0; p < CONV2D_STEP; ++p) {
    real av[4], bv[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) av[r] = a_tile[p * CONV2D_PITCH + ly + 16 * r];
#pragma unroll
    for (int s = 0; s < 4; ++s) bv[s] = b_tile[p * CONV2D_PITCH + lx + 16 * s];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int s = 0; s < 4; ++s) acc[r][s] = FMA(av[r], bv[s], acc[r][s]);
    }
  }
}

// One tile of forward or input gradient: rows are target pixels (image, a, b) of [n, grid_h, grid_w], the summed axis
// is (tap, channel). A tap (ty, tx) of the pixel looks at source position ((a*mul_h + add_h + ty*step_h)/divide_h, the
// same in w), which counts where the division is exact and the position inside. source [n, in_h, in_w, in_c] starts at
// the group's first channel, panel [taps][depth][64], target and bias at the group's first column.
void conv2d_tile(__global const real *source, __global const real *panel, __global const real *bias,
                 __global real *target, __local real *a_tile, __local real *b_tile, const int row0, const int n,
                 const int grid_h, const int grid_w, const int mul_h, const int mul_w, const int add_h, const int add_w,
                 const int step_h, const int step_w, const int divide_h, const int divide_w, const int in_h,
                 const int in_w, const int in_c, const int out_c, const int depth, const int kh, const int kw,
                 const int columns, const int flags) {
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int rows = n * grid_h * grid_w, sum = kh * kw * depth;
  // This work-item loads summed index item % 16 of four rows.
  int at_h[4], at_w[4];
  long image[4];
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const int row = row0 + item / 16 + 16 * q;
    const int pixel = row % (grid_h * grid_w);
    at_h[q] = pixel / grid_w * mul_h + add_h;
    at_w[q] = pixel % grid_w * mul_w + add_w;
    image[q] = row < rows ? (long)(row / (grid_h * grid_w)) * in_h * in_w * in_c : -1;
  }
  real acc[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int s = 0; s < 4; ++s) acc[r][s] = 0;
  }
  for (int k0 = 0; k0 < sum; k0 += CONV2D_STEP) {
    const int k = k0 + item % 16;
    const int tap = k / depth, channel = k - tap * depth;
    const int ty = tap / kw, tx = tap - ty * kw;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int y = at_h[q] + ty * step_h, x = at_w[q] + tx * step_w;
      const int sy = y / divide_h, sx = x / divide_w;
      const int inside = k < sum && image[q] >= 0 && y >= 0 && x >= 0 && sy < in_h && sx < in_w && sy * divide_h == y &&
                         sx * divide_w == x;
      a_tile[item % 16 * CONV2D_PITCH + item / 16 + 16 * q] =
          inside ? source[image[q] + ((long)sy * in_w + sx) * in_c + channel] : 0;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int p = item / 64 + 4 * q, j = item % 64;
      b_tile[p * CONV2D_PITCH + j] = k0 + p < sum ? panel[(long)(k0 + p) * CONV2D_NR + j] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    conv2d_multiply(a_tile, b_tile, acc);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = row0 + ly + 16 * r;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const int j = lx + 16 * s;
      if (row < rows && j < columns) {
        __global real *to = target + (long)row * out_c + j;
        real v = acc[r][s];
        if (flags & CONV2D_ACCUMULATE) v += *to;
        if (flags & CONV2D_BIAS) v += bias[j];
        if (flags & CONV2D_RELU) v = v < 0 ? 0 : v;
        *to = v;
      }
    }
  }
}

// y = x * w (packed), with the epilogue of `flags` (accumulate 1, bias 2, ReLU 4). Groups: x =
// ceil(n*oh*ow/64)*ceil((co/groups)/64), column tile fastest, z = groups. tile_m and tile_n are 64.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv2d_fwd(ARRAY(const real, x), ARRAY(const real, w),
                                                                          ARRAY(const real, bias), ARRAY(real, y),
                                                                          CONV2D_GEOMETRY, const int tile_m,
                                                                          const int tile_n) {
  START(x);
  START(w);
  START(bias);
  START(y);
  __local real a_tile[CONV2D_STEP * CONV2D_PITCH];
  __local real b_tile[CONV2D_STEP * CONV2D_PITCH];
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2);
  const int panels = (co_group + CONV2D_NR - 1) / CONV2D_NR;
  const int row0 = (int)(get_group_id(0) / panels) * CONV2D_TILE_M, panel = get_group_id(0) % panels;
  const int first = g * co_group + panel * CONV2D_NR;
  conv2d_tile(x + g * ci_group, w + ((long)g * panels + panel) * kh * kw * ci_group * CONV2D_NR, bias + first,
              y + first, a_tile, b_tile, row0, n, oh, ow, sh, sw, -ph, -pw, dh, dw, 1, 1, h, wd, c, co, ci_group, kh,
              kw, co_group - panel * CONV2D_NR, flags);
}

// dx = dy * w (packed, transposed) where the stride divides; flag 1 accumulates. Groups: x =
// ceil(n*h*wd/64)*ceil((c/groups)/64), column tile fastest, z = groups. tile_m and tile_n are 64.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv2d_bwd_input(ARRAY(const real, dy),
                                                                                ARRAY(const real, w), ARRAY(real, dx),
                                                                                CONV2D_GEOMETRY, const int tile_m,
                                                                                const int tile_n) {
  START(dy);
  START(w);
  START(dx);
  __local real a_tile[CONV2D_STEP * CONV2D_PITCH];
  __local real b_tile[CONV2D_STEP * CONV2D_PITCH];
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2);
  const int panels = (ci_group + CONV2D_NR - 1) / CONV2D_NR;
  const int row0 = (int)(get_group_id(0) / panels) * CONV2D_TILE_M, panel = get_group_id(0) % panels;
  const int first = g * ci_group + panel * CONV2D_NR;
  conv2d_tile(dy + g * co_group, w + ((long)g * panels + panel) * kh * kw * co_group * CONV2D_NR, dx + first,
              dx + first, a_tile, b_tile, row0, n, h, wd, 1, 1, ph, pw, -dh, -dw, sh, sw, oh, ow, co, c, co_group, kh,
              kw, ci_group - panel * CONV2D_NR, flags & CONV2D_ACCUMULATE);
}

// part [splits][kh][kw][c/groups][co]: split s is the weight gradient over output rows (image*oh + row) of
// s*rows_per_split and the next rows_per_split - 1. Rows of a tile are (tap, input channel), columns output channels,
// the summed axis output pixels in order. Groups: x = splits, y = ceil(kh*kw*(c/groups)/64)*ceil((co/groups)/64),
// column tile fastest, z = groups. tile_m and tile_n are 64.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv2d_bwd_filter(ARRAY(const real, x),
                                                                                 ARRAY(const real, dy),
                                                                                 ARRAY(real, part), CONV2D_GEOMETRY,
                                                                                 const int rows_per_split,
                                                                                 const int tile_m, const int tile_n) {
  START(x);
  START(dy);
  START(part);
  __local real a_tile[CONV2D_STEP * CONV2D_PITCH];
  __local real b_tile[CONV2D_STEP * CONV2D_PITCH];
  // Where the pixels of a step lie: image, position before the tap's step. Two sets, so that the next is made while
  // this one is used.
  __local int pixel_image[2][CONV2D_STEP], pixel_h[2][CONV2D_STEP], pixel_w[2][CONV2D_STEP];
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2), split = get_group_id(0);
  const int column_tiles = (co_group + CONV2D_FILTER_TILE_N - 1) / CONV2D_FILTER_TILE_N;
  const int row0 = (int)(get_group_id(1) / column_tiles) * CONV2D_FILTER_TILE_M;
  const int column0 = (int)(get_group_id(1) % column_tiles) * CONV2D_FILTER_TILE_N;
  const int rows = kh * kw * ci_group;
  const int begin = split * rows_per_split * ow, end = min(n * oh, (split + 1) * rows_per_split) * ow;
  // This work-item loads row item % 64 of four pixels, and column item % 64 of the same ones.
  const int row = row0 + item % 64, column = column0 + item % 64;
  const int tap = row / ci_group, channel = row - tap * ci_group;
  const int tap_h = tap / kw * dh - ph, tap_w = tap % kw * dw - pw;
  x += g * ci_group + channel;
  dy += g * co_group + column;
  real acc[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int s = 0; s < 4; ++s) acc[r][s] = 0;
  }
  int set = 0;
  for (int p0 = begin - CONV2D_STEP; p0 < end; p0 += CONV2D_STEP, set = 1 - set) {
    if (item < CONV2D_STEP) {
      const int pixel = p0 + CONV2D_STEP + item, image_row = pixel / ow;
      pixel_image[1 - set][item] = image_row / oh;
      pixel_h[1 - set][item] = image_row % oh * sh;
      pixel_w[1 - set][item] = pixel % ow * sw;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int p = item / 64 + 4 * q;
      real a = 0, b = 0;
      if (p0 >= begin && p0 + p < end) {
        const int at_h = pixel_h[set][p] + tap_h, at_w = pixel_w[set][p] + tap_w;
        if (row < rows && at_h >= 0 && at_h < h && at_w >= 0 && at_w < wd)
          a = x[(((long)pixel_image[set][p] * h + at_h) * wd + at_w) * c];
        if (column < co_group) b = dy[(long)(p0 + p) * co];
      }
      a_tile[p * CONV2D_PITCH + item % 64] = a;
      b_tile[p * CONV2D_PITCH + item % 64] = b;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    conv2d_multiply(a_tile, b_tile, acc);  // the first time with zeros
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  part += (long)split * rows * co + g * co_group;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i = row0 + ly + 16 * r;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const int j = column0 + lx + 16 * s;
      if (i < rows && j < co_group) part[(long)i * co + j] = acc[r][s];
    }
  }
}

// dw[i] = sum over s, ascending, of part[s*total + i] (flags 1: added to dw). Groups: x = ceil(total/256), one value
// per work-item.
__kernel __attribute__((reqd_work_group_size(CONV2D_REDUCE_BLOCK, 1, 1))) void conv2d_bwd_filter_reduce(
    ARRAY(const real, part), ARRAY(real, dw), const long total, const int splits, const int flags) {
  START(part);
  START(dw);
  const long i = get_global_id(0);
  if (i < total) {
    real v = part[i];
    for (int s = 1; s < splits; ++s) v += part[s * total + i];
    if (flags & CONV2D_ACCUMULATE) v += dw[i];
    dw[i] = v;
  }
}
#undef CONV2D_GEOMETRY
