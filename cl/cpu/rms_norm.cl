// Root-mean-square normalisation over the last axis of src [R, C], CPU: one work-item per group, a block of rows per
// group, vectors over the row. A row is read from memory once: the later look at it finds it in the nearest cache. Row
// ends go through padded vectors. All sums are of `real`.
// Program: transformer
#include "shared/norm.h"

#define RMS_NORM_ROWS 8            // rows of one group of the forward pass
#define RMS_NORM_PARTS 64          // parts of the rows that the gradient of scale is summed in
#define RMS_NORM_ITEMS 1           // work-items of a group
#define RMS_NORM_CHANNELS_VW16 16  // columns of one group of rms_norm_reduce
#define RMS_NORM_CHANNELS_VW8 8
#define RMS_NORM_CHANNELS_VW4 4
#define RMS_NORM_CHANNELS_VW2 2

// y = x * rstd * scale with rstd [R] = 1 / sqrt(mean(x^2) + eps) of each row. Group g: rows g * 8 to g * 8 + 8.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void rms_norm_fwd(ARRAY(const stored, src),
                                                                          ARRAY(const real, scale), ARRAY(stored, dst),
                                                                          ARRAY(real, rstd), const int columns,
                                                                          const real eps, const int flags,
                                                                          const long rows) {
  START(src);
  START(scale);
  START(dst);
  START(rstd);
  const long first = (long)get_group_id(0) * RMS_NORM_ROWS;
  const long last = min(rows, first + RMS_NORM_ROWS);
  for (long r = first; r < last; ++r) {
    const __global stored* x = src + r * columns;
    const long readable = (rows - r) * columns;  // a whole vector is read wherever the array has one
    __global stored* y = dst + r * columns;
    vreal a = (vreal)0, b = (vreal)0;  // two sums, so that one addition need not wait for the other
    int j = 0;
    for (; columns - j >= 2 * VW; j += 2 * VW) {
      const vreal v = VLOAD(x + j), w = VLOAD(x + j + VW);
      a = FMA(v, v, a);
      b = FMA(w, w, b);
    }
    for (; j < columns; j += VW) {
      const vreal v = sb_load(x + j, columns - j, readable - j, 0);
      a = FMA(v, v, a);
    }
    const real s = (real)1 / sqrt(sb_sum(a + b) / columns + eps);
    rstd[r] = s;
    for (j = 0; j < columns; j += VW) {
      const int n = columns - j;
      vreal v = sb_load(x + j, n, readable - j, 0) * s;
      if (flags & RMS_NORM_SCALE) v *= sb_load(scale + j, n, n, 0);
      sb_store(v, y + j, n);
    }
  }
}

// With g = dy * scale and xhat = src * rstd of each row: dx = rstd * (g - xhat * mean(g * xhat)); part [parts, C]: sums
// of dy * xhat over the rows of each part. Group p: rows p * rows_per_part on; both images are read from memory once.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void rms_norm_bwd(
    ARRAY(const stored, src), ARRAY(const stored, dy), ARRAY(const real, scale), ARRAY(const real, rstd),
    ARRAY(stored, dx), ARRAY(real, part), const long rows, const int columns, const int rows_per_part,
    const int flags) {
  START(src);
  START(dy);
  START(scale);
  START(rstd);
  START(dx);
  START(part);
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  __global real* dscale = part + p * columns;
  if (flags & RMS_NORM_DSCALE)
    for (int j = 0; j < columns; j += VW) sb_store((vreal)0, dscale + j, columns - j);
  for (long r = first; r < last; ++r) {
    const __global stored* x = src + r * columns;
    const __global stored* d = dy + r * columns;
    const long readable = (rows - r) * columns;
    const real s = rstd[r];
    vreal dots = (vreal)0;
    for (int j = 0; j < columns; j += VW) {
      const int n = columns - j;
      vreal g = sb_load(d + j, n, readable - j, 0);
      const vreal hat = sb_load(x + j, n, readable - j, 0) * s;
      if (flags & RMS_NORM_DSCALE) sb_store(FMA(g, hat, sb_load(dscale + j, n, n, 0)), dscale + j, n);
      if (flags & RMS_NORM_SCALE) g *= sb_load(scale + j, n, n, 0);
      dots = FMA(g, hat, dots);
    }
    if (flags & RMS_NORM_DSRC) {
      const real dot_mean = sb_sum(dots) / columns;
      for (int j = 0; j < columns; j += VW) {
        const int n = columns - j;
        vreal g = sb_load(d + j, n, readable - j, 0);
        if (flags & RMS_NORM_SCALE) g *= sb_load(scale + j, n, n, 0);
        const vreal hat = sb_load(x + j, n, readable - j, 0) * s;
        sb_store((g - hat * dot_mean) * s, dx + r * columns + j, n);
      }
    }
  }
}

// dscale [C]: the parts of rms_norm_bwd added in order. Group g: one vector of columns.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void rms_norm_reduce(ARRAY(const real, part),
                                                                             ARRAY(real, dscale), const int columns,
                                                                             const int parts) {
  START(part);
  START(dscale);
  const int j = (int)get_group_id(0) * VW;
  const int n = columns - j;
  vreal a = (vreal)0;
  for (int p = 0; p < parts; ++p) a += sb_load(part + (long)p * columns + j, n, n, 0);
  sb_store(a, dscale + j, n);
}
