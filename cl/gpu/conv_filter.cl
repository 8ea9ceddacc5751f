// Weight gradient of the convolutions of conv.cl on a GPU: x [n,d,h,wd,c], dy [n,od,oh,ow,co] to dw
// [kd,kh,kw,c/groups,co].
//
// A matrix product with output pixels as the summed axis: groups of 16 x 16 work-items make a 64 x 64 tile of (tap,
// input channel) x output channel, whose left side is gathered while it is loaded into local memory. A fixed number of
// partial sums, chosen by shape, gives the device enough groups.
// Program: convolution
#include "shared/conv.h"
#define CONV_FILTER_TILE_M 64
#define CONV_FILTER_TILE_N 64
#define CONV_FILTER_STEP 16           // pixels in local memory at a time
#define CONV_FILTER_PITCH 65          // of a row in local memory; odd, so that a column's values lie in different banks
#define CONV_FILTER_REDUCE_BLOCK 256  // values per group of conv_filter_reduce

// acc += the product of the tiles in local memory, for rows ly + 16 r and columns lx + 16 s.
static inline __attribute__((always_inline)) void conv_filter_multiply(__local const real* a_tile,
                                                                       __local const real* b_tile, real (*acc)[4]) {
  const int lx = get_local_id(0), ly = get_local_id(1);
#pragma unroll
  for (int p = 0; p < CONV_FILTER_STEP; ++p) {
    real av[4], bv[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) av[r] = a_tile[p * CONV_FILTER_PITCH + ly + 16 * r];
#pragma unroll
    for (int s = 0; s < 4; ++s) bv[s] = b_tile[p * CONV_FILTER_PITCH + lx + 16 * s];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int s = 0; s < 4; ++s) acc[r][s] = FMA(av[r], bv[s], acc[r][s]);
    }
  }
}

// In conv_filter_bwd's names: where the pixels of the step at p0 lie, and the values of a work-item for it.
#define CONV_FILTER_PLACES(p0, set)                                                           \
  if (item < CONV_FILTER_STEP) {                                                              \
    const int pixel = (p0) + item, line = pixel / ow, slice = line / oh, volume = slice / od; \
    pixel_volume[set][item] = volume;                                                         \
    pixel_d[set][item] = (slice - volume * od) * sd;                                          \
    pixel_h[set][item] = (line - slice * oh) * sh;                                            \
    pixel_w[set][item] = (pixel - line * ow) * sw;                                            \
  }
#define CONV_FILTER_NEXT(p0, set)                                                                               \
  _Pragma("unroll") for (int q = 0; q < 4; ++q) {                                                               \
    const int p = item / 64 + 4 * q;                                                                            \
    a_next[q] = b_next[q] = 0;                                                                                  \
    if ((p0) + p < end) {                                                                                       \
      const int at_d = pixel_d[set][p] + tap_d, at_h = pixel_h[set][p] + tap_h, at_w = pixel_w[set][p] + tap_w; \
      if (row < rows && at_d >= 0 && at_d < d && at_h >= 0 && at_h < h && at_w >= 0 && at_w < wd)               \
        a_next[q] = LOAD(x + ((((long)pixel_volume[set][p] * d + at_d) * h + at_h) * wd + at_w) * c);           \
      if (column < co_group) b_next[q] = LOAD(dy + (long)((p0) + p) * co);                                      \
    }                                                                                                           \
  }

// part [splits][kd][kh][kw][c/groups][co]: split s is the weight gradient over strips s*strips_per_split and the next
// strips_per_split - 1 of n*od*oh*ceil(ow/strip), the pieces of output lines. Rows of a tile are (tap, input channel),
// columns output channels, the summed axis output pixels in order. Groups: x = splits, y =
// ceil(kd*kh*kw*(c/groups)/64)*ceil((co/groups)/64), column tile fastest, z = groups.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv_filter_bwd(ARRAY(const stored, x),
                                                                               ARRAY(const stored, dy),
                                                                               ARRAY(real, part),
                                                                               const conv_sizes sizes,
                                                                               const conv_strips share) {
  START(x);
  START(dy);
  START(part);
  CONV_NAMES(sizes);
  const int strip = share.strip, strips_per_split = share.per_group;
  __local real a_tile[CONV_FILTER_STEP * CONV_FILTER_PITCH];
  __local real b_tile[CONV_FILTER_STEP * CONV_FILTER_PITCH];
  // Where the pixels of a step lie: volume, position before the tap's step. Two sets, so that the next is made while
  // this one is used.
  __local int pixel_volume[2][CONV_FILTER_STEP], pixel_d[2][CONV_FILTER_STEP], pixel_h[2][CONV_FILTER_STEP],
      pixel_w[2][CONV_FILTER_STEP];
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2), split = get_group_id(0);
  const int column_tiles = (co_group + CONV_FILTER_TILE_N - 1) / CONV_FILTER_TILE_N;
  const int row_tile = (int)get_group_id(1) / column_tiles;
  const int row0 = row_tile * CONV_FILTER_TILE_M;
  const int column0 = ((int)get_group_id(1) - row_tile * column_tiles) * CONV_FILTER_TILE_N;
  const int rows = kd * kh * kw * ci_group;
  // The pixels of this split: strip s of the whole begins in line s / strips.
  const int strips = (ow + strip - 1) / strip, all = n * od * oh * strips;
  const int strip0 = min(all, split * strips_per_split), strip1 = min(all, strip0 + strips_per_split);
  const int line0 = strip0 / strips, line1 = strip1 / strips;
  const int begin = line0 * ow + (strip0 - line0 * strips) * strip,
            end = line1 * ow + (strip1 - line1 * strips) * strip;
  // This work-item loads row item % 64 of four pixels, and column item % 64 of the same ones.
  const int row = row0 + item % 64, column = column0 + item % 64;
  const int tap = row / ci_group, channel = row - tap * ci_group;
  const int tap_line = tap / kw, tz = tap_line / kh;
  const int tap_d = tz * dd - pd, tap_h = (tap_line - tz * kh) * dh - ph, tap_w = (tap - tap_line * kw) * dw - pw;
  x += g * ci_group + channel;
  dy += g * co_group + column;
  real acc[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int s = 0; s < 4; ++s) acc[r][s] = 0;
  }
  // The next step's values are on their way while this one's are multiplied; the places of the one after that are
  // found.
  real a_next[4], b_next[4];
  CONV_FILTER_PLACES(begin, 0)
  CONV_FILTER_PLACES(begin + CONV_FILTER_STEP, 1)
  barrier(CLK_LOCAL_MEM_FENCE);
  CONV_FILTER_NEXT(begin, 0)
  int set = 0;
  for (int p0 = begin; p0 < end; p0 += CONV_FILTER_STEP, set = 1 - set) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      a_tile[(item / 64 + 4 * q) * CONV_FILTER_PITCH + item % 64] = a_next[q];
      b_tile[(item / 64 + 4 * q) * CONV_FILTER_PITCH + item % 64] = b_next[q];
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // all have read the places of this step, too
    CONV_FILTER_PLACES(p0 + 2 * CONV_FILTER_STEP, set)
    CONV_FILTER_NEXT(p0 + CONV_FILTER_STEP, 1 - set)
    conv_filter_multiply(a_tile, b_tile, acc);
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

// dw[i] = sum over s, ascending, of part[s*total + i]. Groups: x = ceil(total/256), one value
// per work-item.
__kernel __attribute__((reqd_work_group_size(CONV_FILTER_REDUCE_BLOCK, 1, 1))) void conv_filter_reduce(
    ARRAY(const real, part), ARRAY(stored, dw), const long total, const int splits) {
  START(part);
  START(dw);
  const long i = get_global_id(0);
  if (i < total) {
    real v = part[i];
    for (int s = 1; s < splits; ++s) v += part[s * total + i];
    STORE(v, dw + i);
  }
}

// Takes the groups out of bundles: dw [taps][ci][co] = sum over s, ascending, of part [splits][taps][bundle*ci][co],
// where column k of group k/co_group lies in rows (k/co_group mod bundle)*ci and the next ci - 1. Groups of 64: x = row
// of taps*ci.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void conv_filter_unbundle(ARRAY(const real, part),
                                                                                   ARRAY(stored, dw), const int taps,
                                                                                   const int ci, const int co,
                                                                                   const int co_group, const int bundle,
                                                                                   const int splits) {
  START(part);
  START(dw);
  const int row = get_group_id(0), tap = row / ci, i = row - tap * ci;
  const long total = (long)taps * bundle * ci * co;
  for (int k = get_local_id(0); k < co; k += 64) {
    const int group = k / co_group, member = group - group / bundle * bundle;
    __global const real* from = part + ((long)(tap * bundle + member) * ci + i) * co + k;
    real v = *from;
    for (int s = 1; s < splits; ++s) v += from[s * total];
    STORE(v, dw + (long)row * co + k);
  }
}
