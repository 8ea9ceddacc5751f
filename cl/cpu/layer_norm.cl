// Layer normalisation over the last axis of src [R, C], CPU: one work-item per group, a block of rows per group,
// vectors over the row. A row is read from memory once: the later looks at it find it in the nearest cache. Row ends go
// through padded vectors.
// Program: transformer
#include "shared/norm.h"

#define LAYER_NORM_ROWS 8            // rows of one group of the forward pass
#define LAYER_NORM_PARTS 64          // parts of the rows that the gradients of scale and shift are summed in
#define LAYER_NORM_ITEMS 1           // work-items of a group
#define LAYER_NORM_CHANNELS_VW16 16  // columns of one group of layer_norm_reduce
#define LAYER_NORM_CHANNELS_VW8 8
#define LAYER_NORM_CHANNELS_VW4 4
#define LAYER_NORM_CHANNELS_VW2 2

// y = (x - mean) * rstd * scale + shift with mean [R] and rstd [R] = 1 / sqrt(variance + eps) of each row. The squared
// distances are summed around the mean, corrected by what its rounding left, so a large mean costs no accuracy. Group
// g: rows g * 8 to g * 8 + 8.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void layer_norm_fwd(
    ARRAY(const stored, src), ARRAY(const real, scale), ARRAY(const real, shift), ARRAY(stored, dst), ARRAY(real, mean),
    ARRAY(real, rstd), const int columns, const real eps, const int flags, const long rows) {
  START(src);
  START(scale);
  START(shift);
  START(dst);
  START(mean);
  START(rstd);
  const long first = (long)get_group_id(0) * LAYER_NORM_ROWS;
  const long last = min(rows, first + LAYER_NORM_ROWS);
  for (long r = first; r < last; ++r) {
    const __global stored* x = src + r * columns;
    const long readable = (rows - r) * columns;  // a whole vector is read wherever the array has one
    __global stored* y = dst + r * columns;
    vreal sum = (vreal)0;
    for (int j = 0; j < columns; j += VW) sum += sb_load(x + j, columns - j, readable - j, 0);
    const real center = sb_sum(sum) / columns;
    vreal offset = (vreal)0, square = (vreal)0;
    for (int j = 0; j < columns; j += VW) {
      const vreal d = sb_load(x + j, columns - j, readable - j, center) - center;
      offset += d;
      square = FMA(d, d, square);
    }
    const real left = sb_sum(offset);
    const real m = center + left / columns;
    const real s = (real)1 / sqrt((sb_sum(square) - left * left / columns) / columns + eps);
    mean[r] = m;
    rstd[r] = s;
    for (int j = 0; j < columns; j += VW) {
      const int n = columns - j;
      vreal v = (sb_load(x + j, n, readable - j, 0) - m) * s;
      if (flags & LAYER_NORM_SCALE) v *= sb_load(scale + j, n, n, 0);
      if (flags & LAYER_NORM_SHIFT) v += sb_load(shift + j, n, n, 0);
      sb_store(v, y + j, n);
    }
  }
}

// With g = dy * scale and xhat = (src - mean) * rstd of each row:
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)); part [2, parts, C]: sums of dy * xhat and of dy over the rows of
// each part. Group p: rows p * rows_per_part on; both images are read from memory once.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void layer_norm_bwd(
    ARRAY(const stored, src), ARRAY(const stored, dy), ARRAY(const real, scale), ARRAY(const real, mean),
    ARRAY(const real, rstd), ARRAY(stored, dx), ARRAY(real, part), const long rows, const int columns,
    const int rows_per_part, const int flags) {
  START(src);
  START(dy);
  START(scale);
  START(mean);
  START(rstd);
  START(dx);
  START(part);
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  __global real* dscale = part + p * columns;
  __global real* dshift = dscale + (long)get_num_groups(0) * columns;
  if (flags & LAYER_NORM_DSCALE)
    for (int j = 0; j < columns; j += VW) {
      sb_store((vreal)0, dscale + j, columns - j);
      sb_store((vreal)0, dshift + j, columns - j);
    }
  for (long r = first; r < last; ++r) {
    const __global stored* x = src + r * columns;
    const long readable = (rows - r) * columns;  // a whole vector is read wherever the array has one
    const __global stored* d = dy + r * columns;
    const real m = mean[r], s = rstd[r];
    vreal sum = (vreal)0, dots = (vreal)0;
    for (int j = 0; j < columns; j += VW) {
      const int n = columns - j;
      vreal g = sb_load(d + j, n, readable - j, 0);
      const vreal hat = (sb_load(x + j, n, readable - j, m) - m) * s;
      if (flags & LAYER_NORM_DSCALE) {
        sb_store(FMA(g, hat, sb_load(dscale + j, n, n, 0)), dscale + j, n);
        sb_store(g + sb_load(dshift + j, n, n, 0), dshift + j, n);
      }
      if (flags & LAYER_NORM_SCALE) g *= sb_load(scale + j, n, n, 0);
      sum += g;
      dots = FMA(g, hat, dots);
    }
    if (flags & LAYER_NORM_DSRC) {
      const real g_mean = sb_sum(sum) / columns;
      const real dot_mean = sb_sum(dots) / columns;
      for (int j = 0; j < columns; j += VW) {
        const int n = columns - j;
        vreal g = sb_load(d + j, n, readable - j, 0);
        if (flags & LAYER_NORM_SCALE) g *= sb_load(scale + j, n, n, 0);
        const vreal hat = (sb_load(x + j, n, readable - j, m) - m) * s;
        sb_store((g - g_mean - hat * dot_mean) * s, dx + r * columns + j, n);
      }
    }
  }
}

// dscale [C], dshift [C]: the parts of layer_norm_bwd added in order. Group g: one vector of columns.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void layer_norm_reduce(ARRAY(const real, part),
                                                                               ARRAY(real, dscale), ARRAY(real, dshift),
                                                                               const int columns, const int parts) {
  START(part);
  START(dscale);
  START(dshift);
  const int j = (int)get_group_id(0) * VW;
  const int n = columns - j;
  vreal a = (vreal)0, b = (vreal)0;
  for (int p = 0; p < parts; ++p) {
    a += sb_load(part + (long)p * columns + j, n, n, 0);
    b += sb_load(part + ((long)parts + p) * columns + j, n, n, 0);
  }
  sb_store(a, dscale + j, n);
  sb_store(b, dshift + j, n);
}
