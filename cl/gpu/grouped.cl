// Convolution in groups of few channels of a GPU, channels last, over volumes: x [n,d,h,wd,c], w
// [kd,kh,kw,c/groups,co], y [n,od,oh,ow,co]. Images have depth 1 and sequences height 1, too.
//
// Tiles of a matrix product would be mostly empty, so each work-item sums GROUPED_PIXELS neighbouring places of one
// channel on its own; neighbouring work-items are neighbouring channels, so what they read lies side by side. The
// weight gradient gives each work-item one tap and input channel of an output channel and a quarter of the pixels.
// Everything is summed in `real`.
#include "shared/conv.h"

#define GROUPED_PIXELS 4
#define GROUPED_CHANNELS 64  // of a group of the weight gradient

// One axis of a launch. Target place a of `grid` lies at a*out_mul + out_add of `out`; tap first + i*step, i < count,
// looks at source place a*mul + off + i*off_step, which counts where it is inside `in`.
typedef struct {
  int grid, mul, in, out, out_mul, out_add, kernel_size, count, first, step, off, off_step;
} grouped_axis;

static grouped_axis grouped_axis_fwd(const int in, const int out, const int kernel_size, const int stride,
                                     const int pad, const int dilation) {
  const grouped_axis axis = {out, stride, in, out, 1, 0, kernel_size, kernel_size, 0, 1, -pad, dilation};
  return axis;
}

// Of the input gradient: target are the input places of one phase (place mod stride), which meet the taps t with
// phase + pad - t*dilation a multiple of the stride: every step-th one from the first.
static grouped_axis grouped_axis_bwd(const int in, const int out, const int kernel_size, const int stride,
                                     const int pad, const int dilation, const int phase) {
  int first = 0, step = 1, quotient = (phase + pad) / stride;
  while (first < kernel_size && quotient * stride != phase + pad - first * dilation)
    quotient = (phase + pad - ++first * dilation) / stride;
  while (step * dilation / stride * stride != step * dilation) ++step;
  const grouped_axis axis = {(in - phase + stride - 1) / stride,
                             1,
                             out,
                             in,
                             stride,
                             phase,
                             kernel_size,
                             first < kernel_size ? (kernel_size - 1 - first) / step + 1 : 0,
                             first,
                             step,
                             quotient,
                             -(step * dilation / stride)};
  return axis;
}

// Where sums go, and what is added and cut as they are stored, by `flags` (shared/conv.h, without a gate): `residual`
// lies as the target does.
typedef struct {
  __global real* target;
  __global const real* residual;
  int flags;
} grouped_target;

// One work-item: places a to a + GROUPED_PIXELS - 1 of a line, target channel k of out_c. Of the source's in_c channels
// it sums `depth` from `channel` on; weight (tap, i) lies at w[tap*w_tap + i*w_step].
void grouped_item(__global const real* source, __global const real* w, const real start, const grouped_target o,
                  const grouped_axis D, const grouped_axis H, const grouped_axis W, const long item, const int in_c,
                  const int out_c, const int channel, const int depth, const long w_tap, const long w_step) {
  const int tiles = (W.grid + GROUPED_PIXELS - 1) / GROUPED_PIXELS;
  const long tile = item / out_c, line = tile / tiles;
  const int k = (int)(item - tile * out_c), a = (int)(tile - line * tiles) * GROUPED_PIXELS;
  const long slice = line / H.grid, volume = slice / D.grid;
  const int at_h = (int)(line - slice * H.grid), at_d = (int)(slice - volume * D.grid);
  real acc[GROUPED_PIXELS];
#pragma unroll
  for (int p = 0; p < GROUPED_PIXELS; ++p) acc[p] = start;
  for (int i = 0; i < D.count; ++i) {
    const int z = at_d * D.mul + D.off + i * D.off_step;
    if (z < 0 || z >= D.in) continue;
    for (int j = 0; j < H.count; ++j) {
      const int y = at_h * H.mul + H.off + j * H.off_step;
      if (y < 0 || y >= H.in) continue;
      __global const real* from = source + ((volume * D.in + z) * H.in + y) * W.in * in_c + channel;
      const long taps = ((long)(D.first + i * D.step) * H.kernel_size + H.first + j * H.step) * W.kernel_size + W.first;
      for (int l = 0; l < W.count; ++l) {
        const int x = a * W.mul + W.off + l * W.off_step;
        __global const real* weights = w + (taps + l * W.step) * w_tap;
        for (int q = 0; q < depth; ++q) {
          const real f = weights[q * w_step];
#pragma unroll
          for (int p = 0; p < GROUPED_PIXELS; ++p) {
            const int at = x + p * W.mul;
            if (at >= 0 && at < W.in) acc[p] = FMA(from[(long)at * in_c + q], f, acc[p]);
          }
        }
      }
    }
  }
  const long to = (((volume * D.out + at_d * D.out_mul + D.out_add) * H.out + at_h * H.out_mul + H.out_add) * W.out +
                   a * W.out_mul + W.out_add) *
                      out_c +
                  k;
#pragma unroll
  for (int p = 0; p < GROUPED_PIXELS; ++p) {
    if (a + p >= W.grid) continue;
    const long place = to + (long)p * W.out_mul * out_c;
    real v = acc[p];
    if (o.flags & CONV_RESIDUAL) v += o.residual[place];
    if (o.flags & CONV_RELU) v = v < 0 ? 0 : v;
    if (o.flags & CONV_ACTIVATION) v = sb_activated(v, o.flags & CONV_RELU6);
    o.target[place] = v;
  }
}

// y = x * w, with the epilogue of conv_tiles by `flags`, without a gate. Groups of 256: x =
// ceil(n*od*oh*ceil(ow/GROUPED_PIXELS)*co/256).
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void grouped_fwd(ARRAY(const real, x), ARRAY(const real, w),
                                                                           ARRAY(const real, bias),
                                                                           ARRAY(const real, residual), ARRAY(real, y),
                                                                           const conv_sizes sizes, const int flags) {
  START(x);
  START(w);
  START(bias);
  START(residual);
  START(y);
  CONV_NAMES(sizes);
  const long item = get_global_id(0);
  const long items = (long)n * od * oh * ((ow + GROUPED_PIXELS - 1) / GROUPED_PIXELS) * co;
  if (item < items) {
    const int ci_group = c / groups, k = (int)(item - item / co * co);
    const grouped_target target = {y, residual, flags};
    grouped_item(x, w + k, flags & CONV_BIAS ? bias[k] : 0, target, grouped_axis_fwd(d, od, kd, sd, pd, dd),
                 grouped_axis_fwd(h, oh, kh, sh, ph, dh), grouped_axis_fwd(wd, ow, kw, sw, pw, dw), item, c, co,
                 k / (co / groups) * ci_group, ci_group, (long)ci_group * co, co);
  }
}

// dx = the gradient of grouped_fwd for x (+ bias [c]: a transposed convolution has one), by phase of the stride. Groups
// of 256: x = ceil(n*ceil(d/sd)*ceil(h/sh)*ceil(ceil(wd/sw)/GROUPED_PIXELS)*c/256), z = sd*sh*sw phases.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void grouped_bwd_input(
    ARRAY(const real, dy), ARRAY(const real, w), ARRAY(const real, bias), ARRAY(real, dx), const conv_sizes sizes,
    const int flags) {
  START(dy);
  START(w);
  START(bias);
  START(dx);
  CONV_NAMES(sizes);
  const int phase = get_group_id(2), phase_dh = phase / sw, phase_d = phase_dh / sh;
  const grouped_axis D = grouped_axis_bwd(d, od, kd, sd, pd, dd, phase_d),
                     H = grouped_axis_bwd(h, oh, kh, sh, ph, dh, phase_dh - phase_d * sh),
                     W = grouped_axis_bwd(wd, ow, kw, sw, pw, dw, phase - phase_dh * sw);
  const long item = get_global_id(0);
  const long items = (long)n * D.grid * H.grid * ((W.grid + GROUPED_PIXELS - 1) / GROUPED_PIXELS) * c;
  if (item < items) {
    const grouped_target target = {dx, dx, flags};
    const int ci_group = c / groups, co_group = co / groups, k = (int)(item - item / c * c), g = k / ci_group;
    grouped_item(dy, w + (long)(k - g * ci_group) * co + g * co_group, flags & CONV_BIAS ? bias[k] : 0, target, D, H, W,
                 item, co, c, g * co_group, co_group, (long)ci_group * co, 1);
  }
}

// part [splits][kd][kh][kw][c/groups][co]: split s is the weight gradient over strips s*strips_per_group and the next
// strips_per_group - 1 of n*od*oh*ceil(ow/strip). Groups of 256, GROUPED_CHANNELS output channels x 4 pixels: x =
// splits, y = kd*kh*kw*(c/groups)*ceil(co/GROUPED_CHANNELS), channel tile fastest.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void grouped_bwd_filter(
    ARRAY(const real, x), ARRAY(const real, dy), ARRAY(real, part), const conv_sizes sizes, const conv_strips share) {
  START(x);
  START(dy);
  START(part);
  CONV_NAMES(sizes);
  const int strip = share.strip, strips_per_group = share.per_group;
  __local real sums[256];
  const int item = get_local_id(0), lane = item / GROUPED_CHANNELS;
  const int ci_group = c / groups, tiles = (co + GROUPED_CHANNELS - 1) / GROUPED_CHANNELS;
  const int row = (int)get_group_id(1) / tiles;  // of (tap, input channel)
  const int k = ((int)get_group_id(1) - row * tiles) * GROUPED_CHANNELS + item - lane * GROUPED_CHANNELS;
  const int tap = row / ci_group, tap_line = tap / kw, tz = tap_line / kh;
  const int front = tz * dd - pd, top = (tap_line - tz * kh) * dh - ph, left = (tap - tap_line * kw) * dw - pw;
  const int strips = (ow + strip - 1) / strip, all = n * od * oh * strips;
  const int begin = min(all, (int)get_group_id(0) * strips_per_group), end = min(all, begin + strips_per_group);
  real acc = 0;
  if (k < co) {
    const int channel = k / (co / groups) * ci_group + row - tap * ci_group;
    for (int s = begin; s < end; ++s) {
      const int line = s / strips, first = (s - line * strips) * strip;
      const int slice = line / oh, volume = slice / od;
      const int z = (slice - volume * od) * sd + front, y = (line - slice * oh) * sh + top;
      if (z < 0 || z >= d || y < 0 || y >= h) continue;
      __global const real* from = x + (((long)volume * d + z) * h + y) * wd * c + channel;
      __global const real* with = dy + (long)line * ow * co + k;
      for (int p = first + lane; p < min(ow, first + strip); p += 256 / GROUPED_CHANNELS) {
        const int at = p * sw + left;
        if (at >= 0 && at < wd) acc = FMA(from[(long)at * c], with[(long)p * co], acc);
      }
    }
  }
  sums[item] = acc;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane == 0 && k < co) {
    real total = 0;
    for (int l = 0; l < 256 / GROUPED_CHANNELS; ++l) total += sums[item + l * GROUPED_CHANNELS];
    part[((long)get_group_id(0) * kd * kh * kw * ci_group + row) * co + k] = total;
  }
}
