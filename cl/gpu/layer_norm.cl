// Layer normalisation over the last axis of src [R, C], GPU: 64 work-items share a row and reduce in local memory.
// Program: transformer
#include "shared/norm.h"

#define LAYER_NORM_ROWS 1       // rows of one group of the forward pass
#define LAYER_NORM_PARTS 1024   // parts of the rows that the gradients of scale and shift are summed in
#define LAYER_NORM_ITEMS 64     // work-items of a group
#define LAYER_NORM_CHANNELS 16  // columns of one group of layer_norm_reduce; its work-items share each column's parts
#define LAYER_NORM_HELD 16      // values of a row that a work-item holds in registers, where that is enough

// The sum of `mine` over the group, the same in every work-item. All work-items of the group call it.
static real layer_norm_total(__local real* a, const real mine) {
  const int l = get_local_id(0);
  a[l] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = LAYER_NORM_ITEMS / 2; half_size > 0; half_size /= 2) {
    if (l < half_size) a[l] += a[l + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const real result = a[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return result;
}

// In layer_norm_fwd's names: m and s, the moments of row r, from what the work-items have of it.
#define LAYER_NORM_MOMENTS                                                                                   \
  const real left = layer_norm_total(shared, offset);                                                        \
  const real m = center + left / columns;                                                                    \
  const real s = (real)1 / sqrt((layer_norm_total(shared, square) - left * left / columns) / columns + eps); \
  if (l == 0) {                                                                                              \
    mean[r] = m;                                                                                             \
    rstd[r] = s;                                                                                             \
  }

// y = (x - mean) * rstd * scale + shift with mean [R] and rstd [R] = 1 / sqrt(variance + eps) of each row. The squared
// distances are summed around the mean, corrected by what its rounding left, so a large mean costs no accuracy. Group r
// of 64: row r.
__attribute__((reqd_work_group_size(LAYER_NORM_ITEMS, 1, 1))) __kernel void layer_norm_fwd(
    ARRAY(const stored, src), ARRAY(const real, scale), ARRAY(const real, shift), ARRAY(stored, dst), ARRAY(real, mean),
    ARRAY(real, rstd), const int columns, const real eps, const int flags) {
  START(src);
  START(scale);
  START(shift);
  START(dst);
  START(mean);
  START(rstd);
  __local real shared[LAYER_NORM_ITEMS];
  const int l = get_local_id(0);
  const long r = get_group_id(0);
  const __global stored* x = src + r * columns;
  real sum = 0;
  if (columns <= LAYER_NORM_HELD * LAYER_NORM_ITEMS) {  // read once
    real held[LAYER_NORM_HELD];
#pragma unroll
    for (int e = 0; e < LAYER_NORM_HELD; ++e) {
      held[e] = l + e * LAYER_NORM_ITEMS < columns ? LOAD(x + l + e * LAYER_NORM_ITEMS) : 0;
      sum += held[e];
    }
    const real center = layer_norm_total(shared, sum) / columns;
    real offset = 0, square = 0;
#pragma unroll
    for (int e = 0; e < LAYER_NORM_HELD; ++e) {
      const real d = l + e * LAYER_NORM_ITEMS < columns ? held[e] - center : 0;
      offset += d;
      square = FMA(d, d, square);
    }
    LAYER_NORM_MOMENTS
#pragma unroll
    for (int e = 0; e < LAYER_NORM_HELD; ++e) {
      const int j = l + e * LAYER_NORM_ITEMS;
      if (j >= columns) continue;
      real v = (held[e] - m) * s;
      if (flags & LAYER_NORM_SCALE) v *= scale[j];
      if (flags & LAYER_NORM_SHIFT) v += shift[j];
      STORE(v, dst + r * columns + j);
    }
    return;  // all items of the launch do
  }
#pragma unroll 8
  for (int j = l; j < columns; j += LAYER_NORM_ITEMS) sum += LOAD(x + j);
  const real center = layer_norm_total(shared, sum) / columns;
  real offset = 0, square = 0;
#pragma unroll 8
  for (int j = l; j < columns; j += LAYER_NORM_ITEMS) {
    const real d = LOAD(x + j) - center;
    offset += d;
    square = FMA(d, d, square);
  }
  LAYER_NORM_MOMENTS
#pragma unroll 4
  for (int j = l; j < columns; j += LAYER_NORM_ITEMS) {
    real v = (LOAD(x + j) - m) * s;
    if (flags & LAYER_NORM_SCALE) v *= scale[j];
    if (flags & LAYER_NORM_SHIFT) v += shift[j];
    STORE(v, dst + r * columns + j);
  }
}

// With g = dy * scale and xhat = (src - mean) * rstd of each row:
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)); part [2, parts, C]: sums of dy * xhat and of dy over the rows of
// each part. Group p of 64: rows p * rows_per_part on, one after another; a work-item adds to its own columns of part.
__attribute__((reqd_work_group_size(LAYER_NORM_ITEMS, 1, 1))) __kernel void layer_norm_bwd(
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
  __local real shared[LAYER_NORM_ITEMS];
  const int l = get_local_id(0);
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  __global real* dscale = part + p * columns;
  __global real* dshift = dscale + (long)get_num_groups(0) * columns;
  for (long r = first; r < last; ++r) {
    const __global stored* x = src + r * columns;
    const __global stored* d = dy + r * columns;
    const real m = mean[r], s = rstd[r];
    real sum = 0, dots = 0;
    for (int j = l; j < columns; j += LAYER_NORM_ITEMS) {
      real g = LOAD(d + j);
      const real hat = (LOAD(x + j) - m) * s;
      if (flags & LAYER_NORM_DSCALE) {
        dscale[j] = r == first ? g * hat : FMA(g, hat, dscale[j]);
        dshift[j] = r == first ? g : g + dshift[j];
      }
      if (flags & LAYER_NORM_SCALE) g *= scale[j];
      sum += g;
      dots = FMA(g, hat, dots);
    }
    const real g_mean = layer_norm_total(shared, sum) / columns;
    const real dot_mean = layer_norm_total(shared, dots) / columns;
    if (flags & LAYER_NORM_DSRC)
      for (int j = l; j < columns; j += LAYER_NORM_ITEMS) {
        const real g = flags & LAYER_NORM_SCALE ? LOAD(d + j) * scale[j] : LOAD(d + j);
        STORE((g - g_mean - (LOAD(x + j) - m) * s * dot_mean) * s, dx + r * columns + j);
      }
  }
}

// dscale [C], dshift [C]: the parts of layer_norm_bwd added up; a work-item takes every fourth part of a column, then
// the four sums are added in order. Group g of 64: columns 16 g and the next 15.
__attribute__((reqd_work_group_size(LAYER_NORM_ITEMS, 1, 1))) __kernel void layer_norm_reduce(
    ARRAY(const real, part), ARRAY(real, dscale), ARRAY(real, dshift), const int columns, const int parts) {
  START(part);
  START(dscale);
  START(dshift);
  __local real sums[2][LAYER_NORM_ITEMS];
  const int l = get_local_id(0), lanes = LAYER_NORM_ITEMS / LAYER_NORM_CHANNELS;
  const int j = (int)get_group_id(0) * LAYER_NORM_CHANNELS + l % LAYER_NORM_CHANNELS;
  real a = 0, b = 0;
  if (j < columns) {
#pragma unroll 8
    for (int p = l / LAYER_NORM_CHANNELS; p < parts; p += lanes) {
      a += part[(long)p * columns + j];
      b += part[((long)parts + p) * columns + j];
    }
  }
  sums[0][l] = a;
  sums[1][l] = b;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l < LAYER_NORM_CHANNELS && j < columns) {
    for (int lane = 1; lane < lanes; ++lane) {
      a += sums[0][lane * LAYER_NORM_CHANNELS + l];
      b += sums[1][lane * LAYER_NORM_CHANNELS + l];
    }
    dscale[j] = a;
    dshift[j] = b;
  }
}
