// Images of another size, channels last: src [batch, h, w, c] to dst [batch, oh, ow, c], nearest or bilinear. CPU: one
// work-item per group, rows_per_group rows (image, y) of the result per group, vectors over channels. The gradient
// gathers: each input pixel looks at the outputs that looked at it, in a fixed order. What the columns look at is
// computed once for all rows of a group. Coordinates and sums are in `real`.
#define RESIZE_BLOCK 4096   // elements of the result that a group is given at least, in whole rows
#define RESIZE_COLUMNS 128  // columns of the result whose places are known at a time
#define RESIZE_KNOWN 16     // outputs that look at one pixel whose weights are computed once
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

// How much the places [first, last] count for place i, the first RESIZE_KNOWN of them.
static void resize_weights(real* weights, const int first, const int last, const int i, const int in, const int out,
                           const real scale, const int mode) {
  for (int o = first; o <= min(last, first + RESIZE_KNOWN - 1); ++o)
    weights[o - first] = resize_weight(o, i, in, out, scale, mode);
}

static inline vreal resize_mix(const vreal a, const vreal b, const vreal d, const vreal e, const real x, const real y) {
  const vreal upper = (1 - x) * a + x * b, lower = (1 - x) * d + x * e;
  return (1 - y) * upper + y * lower;
}

// dst = src at the places that it looks at. Group g: rows_per_group rows of batch * oh.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void resize_fwd(ARRAY(const real, src), ARRAY(real, dst),
                                                                        RESIZE_GEOMETRY, const int rows_per_group) {
  START(src);
  START(dst);
  const __global real* src_end = src + (long)batch * h * w * c;
  const long first = (long)get_group_id(0) * rows_per_group, last = min((long)batch * oh, first + rows_per_group);
  const int whole = c / VW * VW;
  for (int begin = 0; begin < ow; begin += RESIZE_COLUMNS) {
    const int columns = min(RESIZE_COLUMNS, ow - begin);
    resize_point points[RESIZE_COLUMNS];
    for (int i = 0; i < columns; ++i) points[i] = resize_at(begin + i, w, ow, scale_w, mode);
    long image = first / oh;
    int oy = (int)(first - image * oh);
    for (long row = first; row < last; ++row) {
      const resize_point y = resize_at(oy, h, oh, scale_h, mode);
      const __global real *top = src + (image * h + y.lo) * w * c, *bottom = src + (image * h + y.hi) * w * c;
      __global real* to = dst + (row * ow + begin) * c;
      for (int i = 0; i < columns; ++i, to += c) {
        const resize_point x = points[i];
        const long lo = (long)x.lo * c, hi = (long)x.hi * c;
        if (mode == RESIZE_NEAREST) {
          for (int k = 0; k < whole; k += VW) VSTORE(VLOAD(top + lo + k), to + k);
          for (int k = whole; k < c; ++k) to[k] = top[lo + k];
          continue;
        }
        const __global real *a = top + lo, *b = top + hi, *d = bottom + lo, *e = bottom + hi;
        int k = 0;
        for (; k < whole; k += VW)
          VSTORE(resize_mix(VLOAD(a + k), VLOAD(b + k), VLOAD(d + k), VLOAD(e + k), x.weight, y.weight), to + k);
        if (k < c) {
          const int left = c - k;
          sb_store(resize_mix(sb_load(a + k, left, src_end - (a + k), 0), sb_load(b + k, left, src_end - (b + k), 0),
                              sb_load(d + k, left, src_end - (d + k), 0), sb_load(e + k, left, src_end - (e + k), 0),
                              x.weight, y.weight),
                   to + k, left);
        }
      }
      if (++oy == oh) {
        oy = 0;
        ++image;
      }
    }
  }
}

// dx = sum of dy over the outputs that look at the pixel, by their weights. Group g: rows_per_group rows of batch * h.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void resize_bwd(ARRAY(const real, dy), ARRAY(real, dx),
                                                                        RESIZE_GEOMETRY, const int rows_per_group) {
  START(dy);
  START(dx);
  const __global real* dy_end = dy + (long)batch * oh * ow * c;
  const long first = (long)get_group_id(0) * rows_per_group, last = min((long)batch * h, first + rows_per_group);
  for (int begin = 0; begin < w; begin += RESIZE_COLUMNS) {
    const int columns = min(RESIZE_COLUMNS, w - begin);
    int firsts[RESIZE_COLUMNS], lasts[RESIZE_COLUMNS];
    real weights[RESIZE_COLUMNS * RESIZE_KNOWN];
    for (int i = 0; i < columns; ++i) {
      firsts[i] = resize_first(begin + i, w, ow, scale_w, mode);
      lasts[i] = resize_last(begin + i, w, ow, scale_w, mode);
      resize_weights(weights + i * RESIZE_KNOWN, firsts[i], lasts[i], begin + i, w, ow, scale_w, mode);
    }
    long image = first / h;
    int y = (int)(first - image * h);
    for (long row = first; row < last; ++row) {
      const int y0 = resize_first(y, h, oh, scale_h, mode), y1 = resize_last(y, h, oh, scale_h, mode);
      real heights[RESIZE_KNOWN];
      resize_weights(heights, y0, y1, y, h, oh, scale_h, mode);
      for (int i = 0; i < columns; ++i) {
        const int x0 = firsts[i], x1 = lasts[i];
        const real* known = weights + i * RESIZE_KNOWN;
        for (int k = 0; k < c; k += VW) {
          vreal sum = (vreal)(0);
          for (int oy = y0; oy <= y1; ++oy) {
            vreal line = (vreal)(0);
            const __global real* from = dy + ((image * oh + oy) * ow + x0) * c + k;
            for (int ox = x0; ox <= x1; ++ox, from += c) {
              const real weight =
                  ox - x0 < RESIZE_KNOWN ? known[ox - x0] : resize_weight(ox, begin + i, w, ow, scale_w, mode);
              line = FMA((vreal)(weight), sb_load(from, c - k, dy_end - from, 0), line);
            }
            const real weight = oy - y0 < RESIZE_KNOWN ? heights[oy - y0] : resize_weight(oy, y, h, oh, scale_h, mode);
            sum = FMA((vreal)(weight), line, sum);
          }
          sb_store(sum, dx + (row * w + begin + i) * c + k, c - k);
        }
      }
      if (++y == h) {
        y = 0;
        ++image;
      }
    }
  }
}
#undef RESIZE_GEOMETRY
