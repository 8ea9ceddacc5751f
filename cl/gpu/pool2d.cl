// Pooling over windows of src [N, H, W, C] to [N, OH, OW, C], GPU: one work-item per element of the result, channels
// fastest, so that neighbours read neighbours. Windows start at (y * sh - ph, x * sw - pw), or are adaptive, and are
// cut at the image. Gradients gather: each input element looks at the windows that cover it, in a fixed order, so
// nothing is written twice. rows_per_group is for the CPU kernels.
// Program: convolution
#include "shared/pool2d.h"

// pool2d_max_fwd: dst = the largest value of each window, NaN if there is one; with_index: index [N, OH, OW, C] = place
// of that value in the uncut window, dy * kw + dx, the first of equal ones. pool2d_max_bwd: dx = sum of dy over the
// windows whose index points here. T holds an index: uchar for windows of up to 256 places, else int (entries *_wide).
#define POOL2D_MAX_FWD(T, SUFFIX)                                                                              \
  __kernel void SB_JOIN(pool2d_max_fwd, SUFFIX)(ARRAY(const stored, src), ARRAY(stored, dst), ARRAY(T, index), \
                                                const pool2d_sizes sizes, const int with_index) {              \
    START(src);                                                                                                \
    START(dst);                                                                                                \
    START(index);                                                                                              \
    POOL2D_NAMES(sizes);                                                                                       \
    const long n = (long)batch * oh * ow * c;                                                                  \
    for (long e = SB_BEGIN(n); e < SB_END(n); ++e) {                                                           \
      const int k = (int)(e % c);                                                                              \
      const long pixel = e / c, row = pixel / ow;                                                              \
      const int oy = (int)(row % oh), ox = (int)(pixel % ow);                                                  \
      const int top = pool2d_begin(oy, h, oh, sh, ph), left = pool2d_begin(ox, w, ow, sw, pw);                 \
      const int y0 = max(top, 0), y1 = min(pool2d_end(oy, h, oh, kh, sh, ph), h);                              \
      const int x0 = max(left, 0), x1 = min(pool2d_end(ox, w, ow, kw, sw, pw), w);                             \
      const __global stored* image = src + row / oh * h * w * c + k;                                           \
      real best = -INFINITY;                                                                                   \
      int place = (y0 - top) * kw + x0 - left;                                                                 \
      for (int y = y0; y < y1; ++y)                                                                            \
        for (int x = x0; x < x1; ++x) {                                                                        \
          const real v = LOAD(image + ((long)y * w + x) * c);                                                  \
          if (v > best || (isnan(v) && !isnan(best))) {                                                        \
            best = v;                                                                                          \
            place = (y - top) * kw + x - left;                                                                 \
          }                                                                                                    \
        }                                                                                                      \
      STORE(best, dst + e);                                                                                    \
      if (with_index) index[e] = (T)place;                                                                     \
    }                                                                                                          \
  }
#define POOL2D_MAX_BWD(T, SUFFIX)                                                                                  \
  __kernel void SB_JOIN(pool2d_max_bwd, SUFFIX)(ARRAY(const stored, dy), ARRAY(const T, index), ARRAY(stored, dx), \
                                                const pool2d_sizes sizes) {                                        \
    START(dy);                                                                                                     \
    START(index);                                                                                                  \
    START(dx);                                                                                                     \
    POOL2D_NAMES(sizes);                                                                                           \
    const long n = (long)batch * h * w * c;                                                                        \
    for (long e = SB_BEGIN(n); e < SB_END(n); ++e) {                                                               \
      const int k = (int)(e % c);                                                                                  \
      const long pixel = e / c, row = pixel / w;                                                                   \
      const int y = (int)(row % h), x = (int)(pixel % w);                                                          \
      const int y0 = pool2d_first(y, h, oh, kh, sh, ph), y1 = pool2d_last(y, h, oh, sh, ph);                       \
      const int x0 = pool2d_first(x, w, ow, kw, sw, pw), x1 = pool2d_last(x, w, ow, sw, pw);                       \
      const long image = row / h * oh;                                                                             \
      real sum = 0;                                                                                                \
      for (int oy = y0; oy <= y1; ++oy)                                                                            \
        for (int ox = x0; ox <= x1; ++ox) {                                                                        \
          const long at = ((image + oy) * ow + ox) * c + k;                                                        \
          const int here = (y - pool2d_begin(oy, h, oh, sh, ph)) * kw + x - pool2d_begin(ox, w, ow, sw, pw);       \
          if (index[at] == here) sum += LOAD(dy + at);                                                             \
        }                                                                                                          \
      STORE(sum, dx + e);                                                                                          \
    }                                                                                                              \
  }
#define POOL2D_MAX(T, SUFFIX) POOL2D_MAX_FWD(T, SUFFIX) POOL2D_MAX_BWD(T, SUFFIX)
POOL2D_MAX(uchar, )
POOL2D_MAX(int, _wide)

// dst = sum of each window over its divisor.
__kernel void pool2d_avg_fwd(ARRAY(const stored, src), ARRAY(stored, dst), const pool2d_sizes sizes, const int padded) {
  START(src);
  START(dst);
  POOL2D_NAMES(sizes);
  const long n = (long)batch * oh * ow * c;
  for (long e = SB_BEGIN(n); e < SB_END(n); ++e) {
    const int k = (int)(e % c);
    const long pixel = e / c, row = pixel / ow;
    const int oy = (int)(row % oh), ox = (int)(pixel % ow);
    const int top = pool2d_begin(oy, h, oh, sh, ph), left = pool2d_begin(ox, w, ow, sw, pw);
    const int y0 = max(top, 0), y1 = min(pool2d_end(oy, h, oh, kh, sh, ph), h);
    const int x0 = max(left, 0), x1 = min(pool2d_end(ox, w, ow, kw, sw, pw), w);
    const __global stored* image = src + row / oh * h * w * c + k;
    real sum = 0;
    for (int y = y0; y < y1; ++y)
      for (int x = x0; x < x1; ++x) sum += LOAD(image + ((long)y * w + x) * c);
    STORE(sum / pool2d_divisor(sizes, oy, ox, padded), dst + e);
  }
}

// dx = sum over the windows that cover the pixel of dy / divisor.
__kernel void pool2d_avg_bwd(ARRAY(const stored, dy), ARRAY(stored, dx), const pool2d_sizes sizes, const int padded) {
  START(dy);
  START(dx);
  POOL2D_NAMES(sizes);
  const long n = (long)batch * h * w * c;
  for (long e = SB_BEGIN(n); e < SB_END(n); ++e) {
    const int k = (int)(e % c);
    const long pixel = e / c, row = pixel / w;
    const int y = (int)(row % h), x = (int)(pixel % w);
    const int y0 = pool2d_first(y, h, oh, kh, sh, ph), y1 = pool2d_last(y, h, oh, sh, ph);
    const int x0 = pool2d_first(x, w, ow, kw, sw, pw), x1 = pool2d_last(x, w, ow, sw, pw);
    const long image = row / h * oh;
    real sum = 0;
    for (int oy = y0; oy <= y1; ++oy)
      for (int ox = x0; ox <= x1; ++ox)
        sum += LOAD(dy + ((image + oy) * ow + ox) * c + k) / pool2d_divisor(sizes, oy, ox, padded);
    STORE(sum, dx + e);
  }
}
#undef POOL2D_MAX
#undef POOL2D_MAX_FWD
#undef POOL2D_MAX_BWD
