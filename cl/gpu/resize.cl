// Images of another size, channels last: src [batch, h, w, c] to dst [batch, oh, ow, c], nearest or bilinear. GPU: one
// work-item per element of the result, channels fastest, so that neighbours read neighbours. The gradient gathers: each
// input element looks at the outputs that looked at it, in a fixed order. Coordinates and sums are in `real`.
// rows_per_group is for the CPU kernels.
#define RESIZE_NEAREST 0
#define RESIZE_ALIGNED 2  // 1: bilinear with pixel centres at half numbers

#define RESIZE_GEOMETRY                                                                                   \
  const int batch, const int h, const int w, const int c, const int oh, const int ow, const real scale_h, \
      const real scale_w, const int mode

// What place o of an axis of `out` places looks at: (1 - weight) of place lo and weight of place hi of `in`.
typedef struct {
  int lo, hi;
  real weight;
} resize_point;

resize_point resize_at(const int o, const int in, const int out, const real scale, const int mode) {
  resize_point p = {o, o, 0};
  if (in == out) return p;
  if (mode == RESIZE_NEAREST) {  // in float whatever `real` is, as in PyTorch
    p.lo = p.hi = out == 2 * in ? o / 2 : min((int)floor((float)o * (float)scale), in - 1);
    return p;
  }
  const real at = mode == RESIZE_ALIGNED ? o * scale : max((o + (real)0.5) * scale - (real)0.5, (real)0);
  p.lo = min((int)floor(at), in - 1);
  p.hi = min(p.lo + 1, in - 1);
  p.weight = clamp(at - p.lo, (real)0, (real)1);
  return p;
}

// About the place that looks at place i.
int resize_guess(const int i, const int out, const real scale, const int mode) {
  if (scale == 0) return 0;
  const real at = mode == 1 ? (i + (real)0.5) / scale - (real)0.5 : i / scale;
  return (int)clamp(at, (real)0, (real)(out - 1));
}

// The first and the last place that looks at place i of `in`; the guess is corrected, since rounding may move it.
int resize_first(const int i, const int in, const int out, const real scale, const int mode) {
  int o = resize_guess(i - 1, out, scale, mode);
  while (o > 0 && resize_at(o - 1, in, out, scale, mode).hi >= i) --o;
  while (o < out && resize_at(o, in, out, scale, mode).hi < i) ++o;
  return o;
}
int resize_last(const int i, const int in, const int out, const real scale, const int mode) {
  int o = resize_guess(i + 1, out, scale, mode);
  while (o + 1 < out && resize_at(o + 1, in, out, scale, mode).lo <= i) ++o;
  while (o >= 0 && resize_at(o, in, out, scale, mode).lo > i) --o;
  return o;
}

// How much place o counts for place i.
real resize_weight(const int o, const int i, const int in, const int out, const real scale, const int mode) {
  const resize_point p = resize_at(o, in, out, scale, mode);
  return (p.lo == i ? 1 - p.weight : 0) + (p.hi == i ? p.weight : 0);
}

// dst = src at the places that it looks at. Geometry: over_elements(batch * oh * ow * c).
__kernel void resize_fwd(ARRAY(const real, src), ARRAY(real, dst), RESIZE_GEOMETRY) {
  START(src);
  START(dst);
  const long n = (long)batch * oh * ow * c;
  for (long e = SB_BEGIN(n); e < SB_END(n); ++e) {
    const long pixel = e / c, row = pixel / ow, image = row / oh;
    const int k = (int)(e - pixel * c);
    const resize_point x = resize_at((int)(pixel - row * ow), w, ow, scale_w, mode),
                       y = resize_at((int)(row - image * oh), h, oh, scale_h, mode);
    const __global real *top = src + (image * h + y.lo) * w * c + k, *bottom = src + (image * h + y.hi) * w * c + k;
    const long lo = (long)x.lo * c, hi = (long)x.hi * c;
    real v = top[lo];
    if (mode != RESIZE_NEAREST) {
      const real upper = (1 - x.weight) * v + x.weight * top[hi],
                 lower = (1 - x.weight) * bottom[lo] + x.weight * bottom[hi];
      v = (1 - y.weight) * upper + y.weight * lower;
    }
    dst[e] = v;
  }
}

// dx = sum of dy over the outputs that look at the pixel, by their weights. Geometry: over_elements(batch * h * w * c).
__kernel void resize_bwd(ARRAY(const real, dy), ARRAY(real, dx), RESIZE_GEOMETRY) {
  START(dy);
  START(dx);
  const long n = (long)batch * h * w * c;
  for (long e = SB_BEGIN(n); e < SB_END(n); ++e) {
    const long pixel = e / c, row = pixel / w, image = row / h;
    const int k = (int)(e - pixel * c), x = (int)(pixel - row * w), y = (int)(row - image * h);
    const int y0 = resize_first(y, h, oh, scale_h, mode), y1 = resize_last(y, h, oh, scale_h, mode);
    const int x0 = resize_first(x, w, ow, scale_w, mode), x1 = resize_last(x, w, ow, scale_w, mode);
    real sum = 0;
    for (int oy = y0; oy <= y1; ++oy) {
      real line = 0;
      for (int ox = x0; ox <= x1; ++ox)
        line = FMA(resize_weight(ox, x, w, ow, scale_w, mode), dy[((image * oh + oy) * ow + ox) * c + k], line);
      sum = FMA(resize_weight(oy, y, h, oh, scale_h, mode), line, sum);
    }
    dx[e] = sum;
  }
}
#undef RESIZE_GEOMETRY
