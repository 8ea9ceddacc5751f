// Root-mean-square normalisation over the last axis of src [R, C], GPU: 64 work-items share a row and reduce in local
// memory. All sums are of `real`.
// Program: transformer
#include "shared/norm.h"

#define RMS_NORM_ROWS 1       // rows of one group of the forward pass
#define RMS_NORM_PARTS 1024   // parts of the rows that the gradient of scale is summed in
#define RMS_NORM_ITEMS 64     // work-items of a group
#define RMS_NORM_CHANNELS 64  // columns of one group of rms_norm_reduce

// y = x * rstd * scale with rstd [R] = 1 / sqrt(mean(x^2) + eps) of each row. Group r of 64: row r.
__attribute__((reqd_work_group_size(RMS_NORM_ITEMS, 1, 1))) __kernel void rms_norm_fwd(
    ARRAY(const stored, src), ARRAY(const real, scale), ARRAY(stored, dst), ARRAY(real, rstd), const int columns,
    const real eps, const int flags) {
  START(src);
  START(scale);
  START(dst);
  START(rstd);
  __local real shared[RMS_NORM_ITEMS];
  const int l = get_local_id(0);
  const long r = get_group_id(0);
  const __global stored* x = src + r * columns;
  real square = 0;
  for (int j = l; j < columns; j += RMS_NORM_ITEMS) square = FMA(LOAD(x + j), LOAD(x + j), square);
  const real s = (real)1 / sqrt(sb_lanes_sum(square, shared, RMS_NORM_ITEMS) / columns + eps);
  if (l == 0) rstd[r] = s;
  for (int j = l; j < columns; j += RMS_NORM_ITEMS)
    STORE(flags & RMS_NORM_SCALE ? LOAD(x + j) * s * scale[j] : LOAD(x + j) * s, dst + r * columns + j);
}

// With g = dy * scale and xhat = src * rstd of each row: dx = rstd * (g - xhat * mean(g * xhat)); part [parts, C]: sums
// of dy * xhat over the rows of each part. Group p of 64: rows p * rows_per_part on, one after another; a work-item
// adds to its own columns of part.
__attribute__((reqd_work_group_size(RMS_NORM_ITEMS, 1, 1))) __kernel void rms_norm_bwd(
    ARRAY(const stored, src), ARRAY(const stored, dy), ARRAY(const real, scale), ARRAY(const real, rstd),
    ARRAY(stored, dx), ARRAY(real, part), const long rows, const int columns, const int rows_per_part,
    const int flags) {
  START(src);
  START(dy);
  START(scale);
  START(rstd);
  START(dx);
  START(part);
  __local real shared[RMS_NORM_ITEMS];
  const int l = get_local_id(0);
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  __global real* dscale = part + p * columns;
  for (long r = first; r < last; ++r) {
    const __global stored* x = src + r * columns;
    const __global stored* d = dy + r * columns;
    const real s = rstd[r];
    real dots = 0;
    for (int j = l; j < columns; j += RMS_NORM_ITEMS) {
      const real hat = LOAD(x + j) * s;
      if (flags & RMS_NORM_DSCALE) dscale[j] = r == first ? LOAD(d + j) * hat : FMA(LOAD(d + j), hat, dscale[j]);
      dots = FMA(flags & RMS_NORM_SCALE ? LOAD(d + j) * scale[j] : LOAD(d + j), hat, dots);
    }
    const real dot_mean = sb_lanes_sum(dots, shared, RMS_NORM_ITEMS) / columns;
    if (flags & RMS_NORM_DSRC)
      for (int j = l; j < columns; j += RMS_NORM_ITEMS) {
        const real g = flags & RMS_NORM_SCALE ? LOAD(d + j) * scale[j] : LOAD(d + j);
        STORE((g - LOAD(x + j) * s * dot_mean) * s, dx + r * columns + j);
      }
  }
}

// dscale [C]: the parts of rms_norm_bwd added in order. Group g of 64: one column per work-item.
__attribute__((reqd_work_group_size(RMS_NORM_CHANNELS, 1, 1))) __kernel void rms_norm_reduce(ARRAY(const real, part),
                                                                                             ARRAY(real, dscale),
                                                                                             const int columns,
                                                                                             const int parts) {
  START(part);
  START(dscale);
  const int j = get_global_id(0);
  if (j < columns) {
    real a = 0;
    for (int p = 0; p < parts; ++p) a += part[(long)p * columns + j];
    dscale[j] = a;
  }
}
