// Images of another size, channels last: src [batch, h, w, c] to dst [batch, oh, ow, c], nearest or bilinear. CPU: one
// work-item per group, rows_per_group rows (image, y) of the result per group, vectors over channels. The gradient
// gathers: each input pixel looks at the outputs that looked at it, in a fixed order. Coordinates and sums are in
// `real`.
#define RESIZE_BLOCK 4096  // elements of the result that a group is given, in whole rows
#define RESIZE_KNOWN 16    // outputs of a row that look at one pixel whose weights are computed once for all channels
#define RESIZE_NEAREST 0
#define RESIZE_ALIGNED 2  // 1: bilinear with pixel centres at half numbers

#define RESIZE_GEOMETRY                                                                                   \
  const int batch, const int h, const int w, const int c, const int oh, const int ow, const real scale_h, \
      const real scale_w, const int mode, const int rows_per_group

// What place o of an axis of `out` places looks at: (1 - weight) of place lo and weight of place hi of `in`.
typedef struct {
  int lo, hi;
  real weight;
} resize_point;

static resize_point resize_at(const int o, const int in, const int out, const real scale, const int mode) {
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
static int resize_guess(const int i, const int out, const real scale, const int mode) {
  if (scale == 0) return 0;
  const real at = mode == 1 ? (i + (real)0.5) / scale - (real)0.5 : i / scale;
  return (int)clamp(at, (real)0, (real)(out - 1));
}

// The first and the last place that looks at place i of `in`; the guess is corrected, since rounding may move it.
static int resize_first(const int i, const int in, const int out, const real scale, const int mode) {
  int o = resize_guess(i - 1, out, scale, mode);
  while (o > 0 && resize_at(o - 1, in, out, scale, mode).hi >= i) --o;
  while (o < out && resize_at(o, in, out, scale, mode).hi < i) ++o;
  return o;
}
static int resize_last(const int i, const int in, const int out, const real scale, const int mode) {
  int o = resize_guess(i + 1, out, scale, mode);
  while (o + 1 < out && resize_at(o + 1, in, out, scale, mode).lo <= i) ++o;
  while (o >= 0 && resize_at(o, in, out, scale, mode).lo > i) --o;
  return o;
}

// How much place o counts for place i.
static real resize_weight(const int o, const int i, const int in, const int out, const real scale, const int mode) {
  const resize_point p = resize_at(o, in, out, scale, mode);
  return (p.lo == i ? 1 - p.weight : 0) + (p.hi == i ? p.weight : 0);
}

// dst = src at the places that it looks at. Group g: rows_per_group rows of batch * oh.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void resize_fwd(ARRAY(const real, src), ARRAY(real, dst),
                                                                        RESIZE_GEOMETRY) {
  START(src);
  START(dst);
  const __global real* src_end = src + (long)batch * h * w * c;
  const long first = (long)get_group_id(0) * rows_per_group, last = min((long)batch * oh, first + rows_per_group);
  for (long row = first; row < last; ++row) {
    const long image = row / oh;
    const resize_point y = resize_at((int)(row - image * oh), h, oh, scale_h, mode);
    const __global real *top = src + (image * h + y.lo) * w * c, *bottom = src + (image * h + y.hi) * w * c;
    for (int ox = 0; ox < ow; ++ox) {
      const resize_point x = resize_at(ox, w, ow, scale_w, mode);
      const long lo = (long)x.lo * c, hi = (long)x.hi * c;
      __global real* to = dst + (row * ow + ox) * c;
      for (int k = 0; k < c; k += VW) {
        const int left = c - k;
        vreal v = sb_load(top + lo + k, left, src_end - (top + lo + k), 0);
        if (mode != RESIZE_NEAREST) {
          const vreal b = sb_load(top + hi + k, left, src_end - (top + hi + k), 0),
                      d = sb_load(bottom + lo + k, left, src_end - (bottom + lo + k), 0),
                      e = sb_load(bottom + hi + k, left, src_end - (bottom + hi + k), 0);
          const vreal upper = (1 - x.weight) * v + x.weight * b, lower = (1 - x.weight) * d + x.weight * e;
          v = (1 - y.weight) * upper + y.weight * lower;
        }
        sb_store(v, to + k, left);
      }
    }
  }
}

// dx = sum of dy over the outputs that look at the pixel, by their weights. Group g: rows_per_group rows of batch * h.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void resize_bwd(ARRAY(const real, dy), ARRAY(real, dx),
                                                                        RESIZE_GEOMETRY) {
  START(dy);
  START(dx);
  const __global real* dy_end = dy + (long)batch * oh * ow * c;
  const long first = (long)get_group_id(0) * rows_per_group, last = min((long)batch * h, first + rows_per_group);
  for (long row = first; row < last; ++row) {
    const long image = row / h;
    const int y = (int)(row - image * h);
    const int y0 = resize_first(y, h, oh, scale_h, mode), y1 = resize_last(y, h, oh, scale_h, mode);
    for (int x = 0; x < w; ++x) {
      const int x0 = resize_first(x, w, ow, scale_w, mode), x1 = resize_last(x, w, ow, scale_w, mode);
      real weights[RESIZE_KNOWN];
      for (int ox = x0; ox <= min(x1, x0 + RESIZE_KNOWN - 1); ++ox)
        weights[ox - x0] = resize_weight(ox, x, w, ow, scale_w, mode);
      for (int k = 0; k < c; k += VW) {
        vreal sum = (vreal)(0);
        for (int oy = y0; oy <= y1; ++oy) {
          vreal line = (vreal)(0);
          for (int ox = x0; ox <= x1; ++ox) {
            const real weight = ox - x0 < RESIZE_KNOWN ? weights[ox - x0] : resize_weight(ox, x, w, ow, scale_w, mode);
            const __global real* from = dy + ((image * oh + oy) * ow + ox) * c + k;
            line = FMA((vreal)(weight), sb_load(from, c - k, dy_end - from, 0), line);
          }
          sum = FMA((vreal)(resize_weight(oy, y, h, oh, scale_h, mode)), line, sum);
        }
        sb_store(sum, dx + (row * w + x) * c + k, c - k);
      }
    }
  }
}
#undef RESIZE_GEOMETRY
