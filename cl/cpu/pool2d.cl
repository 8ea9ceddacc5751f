// Pooling over windows of src [N, H, W, C] to [N, OH, OW, C], CPU: one work-item per group, a block of rows (image, y)
// per group, vectors over channels. A vector at the end of a pixel may read into the next one; only its own lanes are
// stored. Windows start at (y * sh - ph, x * sw - pw), or are adaptive, and are cut at the image. Gradients gather:
// each input pixel looks at the windows that cover it, in a fixed order, so nothing is written twice.
// Program: convolution
#include "shared/pool2d.h"

#define POOL2D_KNOWN 16    // windows over a pixel whose places or divisors are computed once for all channels
#define POOL2D_BLOCK 4096  // elements of the result that a group is given, in whole rows

#ifdef SAMEBYTES_F64
typedef SB_JOIN(long, VW) pool2d_lanes;  // of the width that comparisons of vreal give
#define POOL2D_LANES(v) SB_JOIN(convert_long, VW)(v)
#else
typedef SB_JOIN(int, VW) pool2d_lanes;
#define POOL2D_LANES(v) SB_JOIN(convert_int, VW)(v)
#endif

// A vector at element i of `total`; zeros beyond the end of the array.
vreal pool2d_load(const __global stored* p, const long i, const long total) {
  if (i + VW <= total) return VLOAD(p + i);
  real padded[VW];
  for (int l = 0; l < VW; ++l) padded[l] = i + l < total ? LOAD(p + i + l) : 0;
  return VLOAD(padded);
}

// pool2d_max_fwd: dst = the largest value of each window, NaN if there is one; with_index: index [N, OH, OW, C] = place
// of that value in the uncut window, dy * kw + dx, the first of equal ones. Group g: rows_per_group rows of N * OH.
// pool2d_max_bwd: dx = sum of dy over the windows whose index points here. Group g: rows_per_group rows of N * H.
// T holds an index: uchar for windows of up to 256 places, else int (entries *_wide).
// The larger of v and best, and its place; the first of equal ones, the first NaN before everything.
#define POOL2D_BETTER(value, best, place, n)                   \
  {                                                            \
    const vreal v = value;                                     \
    const pool2d_lanes better = ~(v <= best) & (best == best); \
    best = select(best, v, better);                            \
    place = select(place, (pool2d_lanes)(n), better);          \
  }
#define POOL2D_MAX_READ(T, SUFFIX)                                                                         \
  SB_JOIN(T, VW) SB_JOIN(pool2d_load_index, SUFFIX)(const __global T* p, const long i, const long total) { \
    if (i + VW <= total) return sb_vload(p + i);                                                           \
    T padded[VW];                                                                                          \
    for (int l = 0; l < VW; ++l) padded[l] = i + l < total ? p[i + l] : 0;                                 \
    return sb_vload(padded);                                                                               \
  }
// One row of dx below windows that do not overlap and begin at 0: the row's places in them start at `place`.
#define POOL2D_MAX_APART(T, SUFFIX)                                                                                    \
  static void SB_JOIN(pool2d_apart, SUFFIX)(const __global stored* dy, const __global T* index, __global stored* dx,   \
                                            const long total, const int place, const int w, const int c, const int ow, \
                                            const int kw, const int sw) {                                              \
    for (int x = 0; x < ow; ++x) {                                                                                     \
      const int width = min(kw, w - x * sw), end = x + 1 == ow ? w - x * sw : sw;                                      \
      for (int k = 0; k < c; k += VW) {                                                                                \
        const long at = (long)x * c + k;                                                                               \
        const pool2d_lanes here = POOL2D_LANES(SB_JOIN(pool2d_load_index, SUFFIX)(index, at, total));                  \
        const vreal g = pool2d_load(dy, at, total);                                                                    \
        __global stored* to = dx + (long)x * sw * c + k;                                                               \
        for (int i = 0; i < width; ++i, to += c)                                                                       \
          sb_store(select((vreal)0, g, here == (pool2d_lanes)(place + i)), to, c - k);                                 \
        for (int i = width; i < end; ++i, to += c) sb_store((vreal)0, to, c - k);                                      \
      }                                                                                                                \
    }                                                                                                                  \
  }
#define POOL2D_MAX_FWD(T, SUFFIX)                                                                                    \
  __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void SB_JOIN(pool2d_max_fwd, SUFFIX)(                      \
      ARRAY(const stored, src), ARRAY(stored, dst), ARRAY(T, index), const pool2d_sizes sizes, const int with_index, \
      const int rows_per_group) {                                                                                    \
    START(src);                                                                                                      \
    START(dst);                                                                                                      \
    START(index);                                                                                                    \
    POOL2D_NAMES(sizes);                                                                                             \
    const long total = (long)batch * h * w * c;                                                                      \
    const long first = (long)get_group_id(0) * rows_per_group;                                                       \
    const long last = min((long)batch * oh, first + rows_per_group);                                                 \
    for (long row = first; row < last; ++row) {                                                                      \
      const int oy = (int)(row % oh), top = pool2d_begin(oy, h, oh, sh, ph);                                         \
      const int y0 = max(top, 0), y1 = min(pool2d_end(oy, h, oh, kh, sh, ph), h);                                    \
      const long image = row / oh * h;                                                                               \
      for (int x = 0; x < ow; ++x) {                                                                                 \
        const int left = pool2d_begin(x, w, ow, sw, pw);                                                             \
        const int x0 = max(left, 0), x1 = min(pool2d_end(x, w, ow, kw, sw, pw), w);                                  \
        const long out = (row * ow + x) * c, in = ((image + y0) * w + x0) * c;                                       \
        const int place = (y0 - top) * kw + x0 - left;                                                               \
        int k = 0;                                                                                                   \
        for (; k + 2 * VW <= c; k += 2 * VW) {                                                                       \
          vreal best0 = (vreal)(-INFINITY), best1 = best0;                                                           \
          pool2d_lanes place0 = (pool2d_lanes)(place), place1 = place0;                                              \
          for (int y = y0; y < y1; ++y) {                                                                            \
            const __global stored* p = src + in + (long)(y - y0) * w * c + k;                                        \
            int n = place + (y - y0) * kw;                                                                           \
            for (int i = x0; i < x1; ++i, ++n, p += c) {                                                             \
              POOL2D_BETTER(VLOAD(p), best0, place0, n)                                                              \
              POOL2D_BETTER(VLOAD(p + VW), best1, place1, n)                                                         \
            }                                                                                                        \
          }                                                                                                          \
          VSTORE(best0, dst + out + k);                                                                              \
          VSTORE(best1, dst + out + k + VW);                                                                         \
          if (with_index) {                                                                                          \
            sb_vstore(SB_JOIN(SB_JOIN(convert_, T), VW)(place0), index + out + k);                                   \
            sb_vstore(SB_JOIN(SB_JOIN(convert_, T), VW)(place1), index + out + k + VW);                              \
          }                                                                                                          \
        }                                                                                                            \
        for (; k < c; k += VW) {                                                                                     \
          vreal best = (vreal)(-INFINITY);                                                                           \
          pool2d_lanes place0 = (pool2d_lanes)(place);                                                               \
          for (int y = y0; y < y1; ++y) {                                                                            \
            long at = in + (long)(y - y0) * w * c + k;                                                               \
            int n = place + (y - y0) * kw;                                                                           \
            for (int i = x0; i < x1; ++i, ++n, at += c) POOL2D_BETTER(pool2d_load(src, at, total), best, place0, n)  \
          }                                                                                                          \
          sb_store(best, dst + out + k, c - k);                                                                      \
          if (with_index) {                                                                                          \
            const SB_JOIN(T, VW) narrow = SB_JOIN(SB_JOIN(convert_, T), VW)(place0);                                 \
            if (k + VW <= c) {                                                                                       \
              sb_vstore(narrow, index + out + k);                                                                    \
            } else {                                                                                                 \
              T padded[VW];                                                                                          \
              sb_vstore(narrow, padded);                                                                             \
              for (int l = 0; l < c - k; ++l) index[out + k + l] = padded[l];                                        \
            }                                                                                                        \
          }                                                                                                          \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
  }
#define POOL2D_MAX_BWD(T, SUFFIX)                                                                                    \
  __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void SB_JOIN(pool2d_max_bwd, SUFFIX)(                      \
      ARRAY(const stored, dy), ARRAY(const T, index), ARRAY(stored, dx), const pool2d_sizes sizes,                   \
      const int rows_per_group) {                                                                                    \
    START(dy);                                                                                                       \
    START(index);                                                                                                    \
    START(dx);                                                                                                       \
    POOL2D_NAMES(sizes);                                                                                             \
    const long total = (long)batch * oh * ow * c;                                                                    \
    const long first = (long)get_group_id(0) * rows_per_group;                                                       \
    const long last = min((long)batch * h, first + rows_per_group);                                                  \
    for (long row = first; row < last; ++row) {                                                                      \
      const int y = (int)(row % h);                                                                                  \
      const int y0 = pool2d_first(y, h, oh, kh, sh, ph), y1 = pool2d_last(y, h, oh, sh, ph);                         \
      const long image = row / h * oh;                                                                               \
      if (sh >= kh && sw >= kw && y1 == y0 && pw == 0) {                                                             \
        SB_JOIN(pool2d_apart, SUFFIX)                                                                                \
        (dy + (image + y0) * ow * c, index + (image + y0) * ow * c, dx + row * w * c, total - (image + y0) * ow * c, \
         (y - pool2d_begin(y0, h, oh, sh, ph)) * kw, w, c, ow, kw, sw);                                              \
        continue;                                                                                                    \
      }                                                                                                              \
      int x0 = 0, x1 = -1;                                                                                           \
      for (int i = 0; i < w; ++i) {                                                                                  \
        while (x0 < ow && pool2d_end(x0, w, ow, kw, sw, pw) <= i) ++x0;                                              \
        while (x1 + 1 < ow && pool2d_begin(x1 + 1, w, ow, sw, pw) <= i) ++x1;                                        \
        for (int k = 0; k < c; k += VW) {                                                                            \
          vreal sum = (vreal)0;                                                                                      \
          for (int oy = y0; oy <= y1; ++oy) {                                                                        \
            int place = (y - pool2d_begin(oy, h, oh, sh, ph)) * kw + i - pool2d_begin(x0, w, ow, sw, pw);            \
            long at = ((image + oy) * ow + x0) * c + k;                                                              \
            for (int ox = x0; ox <= x1; ++ox, at += c) {                                                             \
              const pool2d_lanes here =                                                                              \
                  POOL2D_LANES(SB_JOIN(pool2d_load_index, SUFFIX)(index, at, total)) == (pool2d_lanes)(place);       \
              sum += select((vreal)0, pool2d_load(dy, at, total), here);                                             \
              place = sw ? place - sw                                                                                \
                         : (y - pool2d_begin(oy, h, oh, sh, ph)) * kw + i - pool2d_begin(ox + 1, w, ow, sw, pw);     \
            }                                                                                                        \
          }                                                                                                          \
          sb_store(sum, dx + (row * w + i) * c + k, c - k);                                                          \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
  }
#define POOL2D_MAX(T, SUFFIX) \
  POOL2D_MAX_READ(T, SUFFIX) POOL2D_MAX_APART(T, SUFFIX) POOL2D_MAX_FWD(T, SUFFIX) POOL2D_MAX_BWD(T, SUFFIX)
POOL2D_MAX(uchar, )
POOL2D_MAX(int, _wide)

// dst = sum of each window over its divisor. Group g: rows_per_group rows of N * OH.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void pool2d_avg_fwd(ARRAY(const stored, src),
                                                                            ARRAY(stored, dst),
                                                                            const pool2d_sizes sizes, const int padded,
                                                                            const int rows_per_group) {
  START(src);
  START(dst);
  POOL2D_NAMES(sizes);
  const long total = (long)batch * h * w * c;
  const long first = (long)get_group_id(0) * rows_per_group;
  const long last = min((long)batch * oh, first + rows_per_group);
  for (long row = first; row < last; ++row) {
    const int oy = (int)(row % oh), top = pool2d_begin(oy, h, oh, sh, ph);
    const int y0 = max(top, 0), y1 = min(pool2d_end(oy, h, oh, kh, sh, ph), h);
    const long image = row / oh * h;
    for (int x = 0; x < ow; ++x) {
      const int left = pool2d_begin(x, w, ow, sw, pw);
      const int x0 = max(left, 0), x1 = min(pool2d_end(x, w, ow, kw, sw, pw), w);
      const real divisor = pool2d_divisor(sizes, oy, x, padded);
      for (int k = 0; k < c; k += VW) {
        vreal sum = (vreal)0;
        for (int y = y0; y < y1; ++y)
          for (int i = x0; i < x1; ++i) sum += pool2d_load(src, ((image + y) * w + i) * c + k, total);
        sb_store(sum / divisor, dst + (row * ow + x) * c + k, c - k);
      }
    }
  }
}

// dx = sum over the windows that cover the pixel of dy / divisor. Group g: rows_per_group rows of N * H.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void pool2d_avg_bwd(ARRAY(const stored, dy), ARRAY(stored, dx),
                                                                            const pool2d_sizes sizes, const int padded,
                                                                            const int rows_per_group) {
  START(dy);
  START(dx);
  POOL2D_NAMES(sizes);
  const long total = (long)batch * oh * ow * c;
  const long first = (long)get_group_id(0) * rows_per_group;
  const long last = min((long)batch * h, first + rows_per_group);
  for (long row = first; row < last; ++row) {
    const int y = (int)(row % h);
    const int y0 = pool2d_first(y, h, oh, kh, sh, ph), y1 = pool2d_last(y, h, oh, sh, ph);
    const long image = row / h * oh;
    for (int i = 0; i < w; ++i) {
      const int x0 = pool2d_first(i, w, ow, kw, sw, pw), x1 = pool2d_last(i, w, ow, sw, pw);
      real divisors[POOL2D_KNOWN];
      const int known = (y1 - y0 + 1) * (x1 - x0 + 1) <= POOL2D_KNOWN;
      if (known)
        for (int oy = y0, n = 0; oy <= y1; ++oy)
          for (int ox = x0; ox <= x1; ++ox, ++n) divisors[n] = pool2d_divisor(sizes, oy, ox, padded);
      for (int k = 0; k < c; k += VW) {
        vreal sum = (vreal)0;
        for (int oy = y0, n = 0; oy <= y1; ++oy)
          for (int ox = x0; ox <= x1; ++ox, ++n) {
            const real divisor = known ? divisors[n] : pool2d_divisor(sizes, oy, ox, padded);
            sum += pool2d_load(dy, ((image + oy) * ow + ox) * c + k, total) / divisor;
          }
        sb_store(sum, dx + (row * w + i) * c + k, c - k);
      }
    }
  }
}
#undef POOL2D_LANES
#undef POOL2D_BETTER
#undef POOL2D_MAX
#undef POOL2D_MAX_READ
#undef POOL2D_MAX_APART
#undef POOL2D_MAX_FWD
#undef POOL2D_MAX_BWD
