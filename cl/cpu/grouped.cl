// Convolution in groups of one channel (depthwise) of a CPU device, channels last, over volumes: x [n,d,h,wd,c],
// w [kd,kh,kw,1,c], y [n,od,oh,ow,c]; c = co = groups. Images have depth 1 and sequences height 1, too.
//
// Vectors run over channels, so nothing is gathered or packed. Forward and input gradient keep GROUPED_PIXELS
// neighbouring pixels of a line in registers and walk over the taps; pixels near the border, where a tap may lie
// outside, are taken one by one. The weight gradient keeps up to four taps of a row of the kernel in registers and
// walks over the pixels of a line. Lines are cut into strips, so that long ones are shared. Everything is summed in
// `real`.
#include "shared/conv.h"

#define GROUPED_PIXELS 8

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

// A vector at p of a pixel whose channels have `left` more; `end` is the end of its array.
static vreal grouped_load(const __global real* p, const int full, const int left, const __global real* end) {
  return full ? VLOAD(p) : sb_load_tail(p, left, end - p, 0);
}

// Where sums go, and what is added and cut as they are stored, by `flags` (shared/conv.h, without a gate): `residual`
// lies as the target does.
typedef struct {
  __global real* target;
  __global const real *residual, *bias;
  int flags;
} grouped_target;

// A vector's sums to value `at` of the target.
static void grouped_put(vreal v, const grouped_target* o, const long at, const int left) {
  if (o->flags & CONV_RESIDUAL) v += sb_load(o->residual + at, left, left, 0);
  if (o->flags & CONV_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
  if (o->flags & CONV_ACTIVATION) v = sb_activated(v, o->flags & CONV_RELU6);
  sb_store(v, o->target + at, left);
}

// PIXELS places of a line from place a on, one vector of channels: sums over the taps into the target from value `to`
// on. source and to start at the channel, in a volume and in a line. CHECKED: taps may lie beside the line. FULL: the
// vector has all its channels.
#define GROUPED_MICRO(name, PIXELS, CHECKED, FULL)                                                                     \
  static void name(const __global real* source, const __global real* source_end, const __global real* w,               \
                   const __global real* w_end, const grouped_target* o, const long to, const vreal bias,               \
                   const grouped_axis D, const grouped_axis H, const grouped_axis W, const int pos_d, const int pos_h, \
                   const int a, const int c, const int left) {                                                         \
    vreal acc[PIXELS];                                                                                                 \
    _Pragma("unroll") for (int p = 0; p < PIXELS; ++p) acc[p] = bias;                                                  \
    for (int i = 0; i < D.count; ++i) {                                                                                \
      const int z = pos_d + D.off + i * D.off_step;                                                                    \
      if (z < 0 || z >= D.in) continue;                                                                                \
      for (int j = 0; j < H.count; ++j) {                                                                              \
        const int y = pos_h + H.off + j * H.off_step;                                                                  \
        if (y < 0 || y >= H.in) continue;                                                                              \
        const __global real* line = source + ((long)z * H.in + y) * W.in * c;                                          \
        const __global real* taps =                                                                                    \
            w + ((long)(D.first + i * D.step) * H.kernel_size + H.first + j * H.step) * W.kernel_size * c;             \
        for (int k = 0; k < W.count; ++k) {                                                                            \
          const int x = a * W.mul + W.off + k * W.off_step;                                                            \
          if (CHECKED && (x < 0 || x >= W.in)) continue;                                                               \
          const vreal f = grouped_load(taps + (long)(W.first + k * W.step) * c, FULL, left, w_end);                    \
          const __global real* from = line + (long)x * c;                                                              \
          _Pragma("unroll") for (int p = 0; p < PIXELS; ++p) acc[p] =                                                  \
              FMA(grouped_load(from + (long)p * W.mul * c, FULL, left, source_end), f, acc[p]);                        \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
    _Pragma("unroll") for (int p = 0; p < PIXELS; ++p)                                                                 \
        grouped_put(acc[p], o, to + (long)((a + p) * W.out_mul + W.out_add) * c, FULL ? VW : left);                    \
  }
GROUPED_MICRO(grouped_eight, GROUPED_PIXELS, 0, 1)
GROUPED_MICRO(grouped_four, 4, 0, 1)
GROUPED_MICRO(grouped_one, 1, 1, 1)
GROUPED_MICRO(grouped_eight_tail, GROUPED_PIXELS, 0, 0)
GROUPED_MICRO(grouped_four_tail, 4, 0, 0)
GROUPED_MICRO(grouped_one_tail, 1, 1, 0)

// The same places for all channels k0 <= k < k1: what neighbouring places share is then still in the nearest cache.
#define GROUPED_TILE(name)                                                                                            \
  static void name##_tile(const __global real* source, const __global real* source_end, const __global real* w,       \
                          const __global real* w_end, const grouped_target* o, const long to, const grouped_axis D,   \
                          const grouped_axis H, const grouped_axis W, const int pos_d, const int pos_h, const int c,  \
                          const int k0, const int k1, const int a) {                                                  \
    const int has_bias = o->flags & CONV_BIAS;                                                                        \
    int k = k0;                                                                                                       \
    for (; k + VW <= k1; k += VW)                                                                                     \
      name(source + k, source_end, w + k, w_end, o, to + k, has_bias ? VLOAD(o->bias + k) : (vreal)(0), D, H, W,      \
           pos_d, pos_h, a, c, c - k);                                                                                \
    if (k < k1)                                                                                                       \
      name##_tail(source + k, source_end, w + k, w_end, o, to + k,                                                    \
                  has_bias ? sb_load(o->bias + k, c - k, c - k, 0) : (vreal)(0), D, H, W, pos_d, pos_h, a, c, c - k); \
  }
GROUPED_TILE(grouped_eight)
GROUPED_TILE(grouped_four)
GROUPED_TILE(grouped_one)

// The strips of one group, channels k0 <= k < k1.
static void grouped_strips(const __global real* source, const __global real* w, const grouped_target target,
                           const grouped_axis D, const grouped_axis H, const grouped_axis W, const int n, const int c,
                           const int strip, const int strips_per_group, const int k0, const int k1) {
  const grouped_target* o = &target;
  const int strips = (W.grid + strip - 1) / strip, all = n * D.grid * H.grid * strips;
  const int begin = min(all, (int)get_group_id(0) * strips_per_group), end = min(all, begin + strips_per_group);
  const __global real *source_end = source + (long)n * D.in * H.in * W.in * c,
                      *w_end = w + (long)D.kernel_size * H.kernel_size * W.kernel_size * c;
  // Places from `inner` to before `outer` see all taps inside the line.
  const int near = min(W.off, W.off + (W.count - 1) * W.off_step), far = max(W.off, W.off + (W.count - 1) * W.off_step);
  const int inner = W.count == 0 || near >= 0 ? 0 : (-near + W.mul - 1) / W.mul;
  const int outer = W.count == 0 ? W.grid : W.in - 1 - far < 0 ? 0 : (W.in - 1 - far) / W.mul + 1;
  for (int s = begin; s < end; ++s) {
    const int line = s / strips, a0 = (s - line * strips) * strip, a1 = min(W.grid, a0 + strip);
    const int slice = line / H.grid, at_h = line - slice * H.grid;
    const int volume = slice / D.grid, at_d = slice - volume * D.grid;
    const int lo = clamp(inner, a0, a1), hi = clamp(outer, lo, a1);
    const __global real* from = source + (long)volume * D.in * H.in * W.in * c;
    const long to =
        (((long)volume * D.out + at_d * D.out_mul + D.out_add) * H.out + at_h * H.out_mul + H.out_add) * W.out * c;
#define GROUPED_ARGUMENTS from, source_end, w, w_end, o, to, D, H, W, at_d *D.mul, at_h *H.mul, c, k0, k1
    // The last tile of a range begins early rather than being narrower.
    for (int a = a0; a < lo; ++a) grouped_one_tile(GROUPED_ARGUMENTS, a);
    if (hi - lo >= GROUPED_PIXELS) {
      for (int a = lo; a < hi; a += GROUPED_PIXELS) grouped_eight_tile(GROUPED_ARGUMENTS, min(a, hi - GROUPED_PIXELS));
    } else if (hi - lo >= 4) {
      for (int a = lo; a < hi; a += 4) grouped_four_tile(GROUPED_ARGUMENTS, min(a, hi - 4));
    } else {
      for (int a = lo; a < hi; ++a) grouped_one_tile(GROUPED_ARGUMENTS, a);
    }
    for (int a = hi; a < a1; ++a) grouped_one_tile(GROUPED_ARGUMENTS, a);
  }
}

// y = x * w, with the epilogue of conv_tiles by `flags`, without a gate. Groups: x =
// ceil(n*od*oh*ceil(ow/strip)/strips_per_group), y = ceil(c/tile_n). tile_n: a multiple of VW.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grouped_fwd(ARRAY(const real, x), ARRAY(const real, w),
                                                                         ARRAY(const real, bias),
                                                                         ARRAY(const real, residual), ARRAY(real, y),
                                                                         const conv_sizes sizes,
                                                                         const grouped_shares share, const int flags) {
  START(x);
  START(w);
  START(bias);
  START(residual);
  START(y);
  CONV_NAMES(sizes);
  const int strip = share.strip, strips_per_group = share.units, tile_n = share.columns;
  const int k0 = (int)get_group_id(1) * tile_n;
  const grouped_target target = {y, residual, bias, flags};
  grouped_strips(x, w, target, grouped_axis_fwd(d, od, kd, sd, pd, dd), grouped_axis_fwd(h, oh, kh, sh, ph, dh),
                 grouped_axis_fwd(wd, ow, kw, sw, pw, dw), n, c, strip, strips_per_group, k0, min(c, k0 + tile_n));
}

// dx = the gradient of grouped_fwd for x (+ bias [c]: a transposed convolution has one), by phase of the stride.
// Groups: x = ceil(n*ceil(d/sd)*ceil(h/sh)*ceil(ceil(wd/sw)/strip)/strips_per_group), y = ceil(c/tile_n), z = sd*sh*sw
// phases.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grouped_bwd_input(
    ARRAY(const real, dy), ARRAY(const real, w), ARRAY(const real, bias), ARRAY(real, dx), const conv_sizes sizes,
    const grouped_shares share, const int flags) {
  START(dy);
  START(w);
  START(bias);
  START(dx);
  CONV_NAMES(sizes);
  const int strip = share.strip, strips_per_group = share.units, tile_n = share.columns;
  const int k0 = (int)get_group_id(1) * tile_n, phase = get_group_id(2);
  const int phase_dh = phase / sw, phase_d = phase_dh / sh;
  const grouped_axis D = grouped_axis_bwd(d, od, kd, sd, pd, dd, phase_d),
                     H = grouped_axis_bwd(h, oh, kh, sh, ph, dh, phase_dh - phase_d * sh),
                     W = grouped_axis_bwd(wd, ow, kw, sw, pw, dw, phase - phase_dh * sw);
  if (D.grid <= 0 || H.grid <= 0 || W.grid <= 0) return;
  const grouped_target target = {dx, dx, bias, flags};
  grouped_strips(dy, w, target, D, H, W, n, c, strip, strips_per_group, k0, min(c, k0 + tile_n));
}

// Adds to part the sums over output places p0 <= p < p1 of a line for TAPS neighbouring taps, the first of which looks
// at input place p*sw + left. x and dy start at the line and the channel. Places where all taps are inside go two at a
// time; the others tap by tap.
#define GROUPED_FILTER(name, TAPS, FULL)                                                                          \
  static void name(const __global real* x, const __global real* x_end, const __global real* dy,                   \
                   const __global real* dy_end, __global real* part, const int p0, const int p1, const int wd,    \
                   const int sw, const int dw, const int left, const int c, const int channels) {                 \
    int from[TAPS], to[TAPS];                                                                                     \
    vreal acc[TAPS], odd[TAPS];                                                                                   \
    _Pragma("unroll") for (int t = 0; t < TAPS; ++t) {                                                            \
      const int at = left + t * dw, last = wd - 1 - at;                                                           \
      from[t] = clamp(at >= 0 ? 0 : (-at + sw - 1) / sw, p0, p1);                                                 \
      to[t] = clamp(last < 0 ? 0 : last / sw + 1, from[t], p1);                                                   \
      acc[t] = odd[t] = (vreal)(0);                                                                               \
    }                                                                                                             \
    const int lo = from[0], hi = max(lo, to[TAPS - 1]);                                                           \
    for (int p = lo; p < hi; p += 2) {                                                                            \
      const vreal g = grouped_load(dy + (long)p * c, FULL, channels, dy_end);                                     \
      const __global real* at = x + ((long)p * sw + left) * c;                                                    \
      _Pragma("unroll") for (int t = 0; t < TAPS; ++t) acc[t] =                                                   \
          FMA(grouped_load(at + (long)t * dw * c, FULL, channels, x_end), g, acc[t]);                             \
      if (p + 1 < hi) {                                                                                           \
        const vreal g1 = grouped_load(dy + (long)(p + 1) * c, FULL, channels, dy_end);                            \
        _Pragma("unroll") for (int t = 0; t < TAPS; ++t) odd[t] =                                                 \
            FMA(grouped_load(at + ((long)sw + t * dw) * c, FULL, channels, x_end), g1, odd[t]);                   \
      }                                                                                                           \
    }                                                                                                             \
    _Pragma("unroll") for (int t = 0; t < TAPS; ++t) {                                                            \
      for (int p = from[t]; p < to[t]; ++p) {                                                                     \
        if (p == lo && hi > lo) p = hi;                                                                           \
        if (p >= to[t]) break;                                                                                    \
        acc[t] = FMA(grouped_load(x + ((long)p * sw + left + t * dw) * c, FULL, channels, x_end),                 \
                     grouped_load(dy + (long)p * c, FULL, channels, dy_end), acc[t]);                             \
      }                                                                                                           \
      __global real* sum = part + (long)t * c;                                                                    \
      sb_store(grouped_load(sum, FULL, channels, sum + channels) + (acc[t] + odd[t]), sum, FULL ? VW : channels); \
    }                                                                                                             \
  }
GROUPED_FILTER(grouped_filter_4, 4, 1)
GROUPED_FILTER(grouped_filter_3, 3, 1)
GROUPED_FILTER(grouped_filter_2, 2, 1)
GROUPED_FILTER(grouped_filter_1, 1, 1)
GROUPED_FILTER(grouped_filter_tail, 1, 0)

// part [splits][kd][kh][kw][c]: split s is the weight gradient over strips s*strips_per_group and the next
// strips_per_group - 1 of n*od*oh*ceil(ow/strip). Groups: x = splits, y = ceil(c/tile_n). tile_n: a multiple of VW.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grouped_bwd_filter(ARRAY(const real, x),
                                                                                ARRAY(const real, dy),
                                                                                ARRAY(real, part),
                                                                                const conv_sizes sizes,
                                                                                const grouped_shares share) {
  START(x);
  START(dy);
  START(part);
  CONV_NAMES(sizes);
  const int strip = share.strip, strips_per_group = share.units, tile_n = share.columns;
  const int strips = (ow + strip - 1) / strip, all = n * od * oh * strips;
  const int begin = min(all, (int)get_group_id(0) * strips_per_group), end = min(all, begin + strips_per_group);
  const int k0 = (int)get_group_id(1) * tile_n, k1 = min(c, k0 + tile_n), taps = kd * kh * kw;
  const __global real *x_end = x + (long)n * d * h * wd * c, *dy_end = dy + (long)n * od * oh * ow * c;
  part += (long)get_group_id(0) * taps * c;
  for (int t = 0; t < taps; ++t) {
    for (int k = k0; k < k1; k += VW) sb_store((vreal)(0), part + (long)t * c + k, k1 - k);
  }
  for (int s = begin; s < end; ++s) {
    const int line = s / strips, p0 = (s - line * strips) * strip, p1 = min(ow, p0 + strip);
    const int slice = line / oh, volume = slice / od;
    const int at_d = (slice - volume * od) * sd - pd, at_h = (line - slice * oh) * sh - ph;
    for (int k = k0; k < k1; k += VW) {
      const int channels = c - k;
      const __global real* g = dy + (long)line * ow * c + k;
      for (int tz = 0; tz < kd; ++tz) {
        const int z = at_d + tz * dd;
        if (z < 0 || z >= d) continue;
        for (int ty = 0; ty < kh; ++ty) {
          const int y = at_h + ty * dh;
          if (y < 0 || y >= h) continue;
          const __global real* from = x + (((long)volume * d + z) * h + y) * wd * c + k;
          __global real* sums = part + (long)(tz * kh + ty) * kw * c + k;
#define GROUPED_FILTER_ARGUMENTS \
  from, x_end, g, dy_end, sums + (long)tx *c, p0, p1, wd, sw, dw, tx *dw - pw, c, channels
          for (int tx = 0; tx < kw;) {
            const int width = channels < VW ? 1 : min(4, kw - tx);
            if (channels < VW)
              grouped_filter_tail(GROUPED_FILTER_ARGUMENTS);
            else if (width == 4)
              grouped_filter_4(GROUPED_FILTER_ARGUMENTS);
            else if (width == 3)
              grouped_filter_3(GROUPED_FILTER_ARGUMENTS);
            else if (width == 2)
              grouped_filter_2(GROUPED_FILTER_ARGUMENTS);
            else
              grouped_filter_1(GROUPED_FILTER_ARGUMENTS);
            tx += width;
          }
        }
      }
    }
  }
}
