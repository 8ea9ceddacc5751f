// Batch normalisation over src [R, C] (channels last, R values per channel), CPU: one work-item per group, vectors over
// columns.
//
// The statistics look at the same bytes as [ceil(R*C / W), W], where W (`wide`) is a multiple of C and, for C that are
// not large, of four vectors: column j then belongs to channel j % C whatever C is, and vectors are full for 1, 3 or 10
// channels too. The last row may end early, always after a whole number of channels' rows. Rows are split into parts by
// shape alone; parts are merged in order (Chan, Golub and LeVeque 1979), so results do not depend on the number of
// threads.
//
// The passes over the elements are pointwise and fused with their neighbours (engine/ops/batch_norm.cpp). group_norm.cl
// has passes of its own: its per-channel factors lie in rows of span + VW values with column j for channel j % C, where
// span is the smallest multiple of C that is at least VW.
// Program: convolution
#define BATCH_NORM_UNIT_VW16 64  // columns of one group of the statistics: four vectors
#define BATCH_NORM_UNIT_VW8 32
#define BATCH_NORM_UNIT_VW4 16
#define BATCH_NORM_UNIT_VW2 8
#define BATCH_NORM_UNIT SB_JOIN(BATCH_NORM_UNIT_VW, VW)
#define BATCH_NORM_PAD_VW16 16  // values after each row of coef, so that a vector may start anywhere in it
#define BATCH_NORM_PAD_VW8 8
#define BATCH_NORM_PAD_VW4 4
#define BATCH_NORM_PAD_VW2 2
#define BATCH_NORM_CHANNELS_VW16 16  // channels of one group of the merge
#define BATCH_NORM_CHANNELS_VW8 8
#define BATCH_NORM_CHANNELS_VW4 4
#define BATCH_NORM_CHANNELS_VW2 2
#define BATCH_NORM_GROUPS 64   // groups of the statistics that are aimed at
#define BATCH_NORM_PART 16384  // elements of a part and column block below which it is not split further
#define BATCH_NORM_BLOCK 64    // rows that stay in the nearest cache between the two looks at them

// p[(column + l) % channels] for each lane l.
#define BATCH_NORM_GATHER(T)                                                                       \
  SB_OVERLOAD vreal batch_norm_gather(const __global T* p, const int column, const int channels) { \
    real lanes[VW];                                                                                \
    for (int l = 0; l < VW; ++l) lanes[l] = LOAD(p + (column + l) % channels);                     \
    return VLOAD(lanes);                                                                           \
  }
BATCH_NORM_GATHER(real)
#ifdef SAMEBYTES_STORE_16
BATCH_NORM_GATHER(stored)
#endif
#undef BATCH_NORM_GATHER

// Values of column block [column, column + vectors * VW) in the rows [first, last) of one part that are there: whole
// rows, and 1 more in a last row that ends early. Mean and sum of squared distances of each column, counted from the
// first value of its channel, so that a large mean costs no accuracy. `lanes` < VW only for the end of a row with W not
// a multiple of VW.
static inline __attribute__((always_inline)) void batch_norm_moments(
    const __global stored* src, __global real* mean_out, __global real* m2_out, const long total, const int wide,
    const int channels, const int column, const long first, const long last, const int vectors, const int lanes) {
  vreal origin[4], mean[4], m2[4], sum[4], center[4], offset[4], square[4];
#pragma unroll
  for (int v = 0; v < vectors; ++v) {
    origin[v] = batch_norm_gather(src, column + v * VW, channels);
    mean[v] = m2[v] = (vreal)0;
  }
  const long whole = min(last, total / wide);
  real count = 0;
  for (long row = first; row < whole; row += BATCH_NORM_BLOCK) {
    const int rows = (int)min((long)BATCH_NORM_BLOCK, whole - row);
    const __global stored* block = src + row * wide + column;
#pragma unroll
    for (int v = 0; v < vectors; ++v) sum[v] = offset[v] = square[v] = (vreal)0;
    for (int i = 0; i < rows; ++i) {
#pragma unroll
      for (int v = 0; v < vectors; ++v) sum[v] += sb_load(block + (long)i * wide + v * VW, lanes, lanes, 0) - origin[v];
    }
    const real inverse = (real)1 / rows;
#pragma unroll
    for (int v = 0; v < vectors; ++v) center[v] = sum[v] * inverse;
    for (int i = 0; i < rows; ++i) {
#pragma unroll
      for (int v = 0; v < vectors; ++v) {
        const vreal d = sb_load(block + (long)i * wide + v * VW, lanes, lanes, 0) - origin[v] - center[v];
        offset[v] += d;  // what rounding of the first mean left
        square[v] = FMA(d, d, square[v]);
      }
    }
    const real both = count + rows;
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      const vreal delta = FMA(offset[v], (vreal)inverse, center[v]) - mean[v];
      mean[v] = FMA(delta, (vreal)(rows / both), mean[v]);
      m2[v] += square[v] - offset[v] * offset[v] * inverse + delta * delta * (count * rows / both);
    }
    count = both;
  }
  if (whole < last) {
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      const long at = whole * wide + column + v * VW;
      real there[VW];
      for (int l = 0; l < VW; ++l) there[l] = at + l < total ? 1 : 0;
      const vreal delta = (sb_load(src + at, total - at, total - at, 0) - origin[v] - mean[v]) * VLOAD(there);
      mean[v] = FMA(delta, (vreal)((real)1 / (count + 1)), mean[v]);
      m2[v] = FMA(delta * delta, (vreal)(count / (count + 1)), m2[v]);
    }
  }
#pragma unroll
  for (int v = 0; v < vectors; ++v) {
    sb_store(mean[v], mean_out + v * VW, lanes);
    sb_store(m2[v], m2_out + v * VW, lanes);
  }
}

// The same of a group's four vectors, and of one with `lanes` columns.
SB_APART void batch_norm_four_moments(const __global stored* src, __global real* mean_out, __global real* m2_out,
                                      const long total, const int wide, const int channels, const int column,
                                      const long first, const long last) {
  batch_norm_moments(src, mean_out, m2_out, total, wide, channels, column, first, last, 4, VW);
}
SB_APART void batch_norm_one_moments(const __global stored* src, __global real* mean_out, __global real* m2_out,
                                     const long total, const int wide, const int channels, const int column,
                                     const long first, const long last, const int lanes) {
  batch_norm_moments(src, mean_out, m2_out, total, wide, channels, column, first, last, 1, lanes);
}

// part [N, 2, parts, W]: mean, counted from src[n][0][c], and sum of squared distances of each column in each part of
// each of the N images. Group (p, b, n): part p of `rows_per_part` rows, column block b, image n of `total` elements;
// batch norm has one image, group norm N.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void batch_norm_stats(ARRAY(const stored, src),
                                                                              ARRAY(real, part), const long total,
                                                                              const int wide, const int channels,
                                                                              const int rows_per_part) {
  START(src);
  START(part);
  src += (long)get_group_id(2) * total;
  part += (long)get_group_id(2) * 2 * (long)get_num_groups(0) * wide;
  const long rows = (total + wide - 1) / wide;
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  int column = (int)get_group_id(1) * BATCH_NORM_UNIT;
  __global real* mean = part + p * wide;
  __global real* m2 = mean + (long)get_num_groups(0) * wide;
  if (column + BATCH_NORM_UNIT <= wide) {
    batch_norm_four_moments(src, mean + column, m2 + column, total, wide, channels, column, first, last);
    return;
  }
  for (; column < wide; column += VW)
    batch_norm_one_moments(src, mean + column, m2 + column, total, wide, channels, column, first, last,
                           min(VW, wide - column));
}

// Number of values that column block f (columns f*C to f*C + C) has in part p.
real batch_norm_count(const long p, const int f, const long total, const int wide, const int channels,
                      const int rows_per_part) {
  const long whole = total / wide;
  const long first = min(whole, p * rows_per_part);
  const long last = min(whole, (p + 1) * rows_per_part);
  const int more =
      (whole >= p * rows_per_part) & (whole < (p + 1) * rows_per_part) & (whole * wide + (long)f * channels < total);
  return (real)(last - first + more);
}

// Merges the parts of batch_norm_stats: mean [C], rstd [C] = 1 / sqrt(variance + eps); with `update` running =
// (1 - momentum) * running + momentum * batch, with the unbiased variance, in place. Group g: the g-th vector of
// channels.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void batch_norm_merge(
    ARRAY(const stored, src), ARRAY(const real, part), ARRAY(real, running_mean), ARRAY(real, running_var),
    ARRAY(real, mean), ARRAY(real, rstd), const long total, const int wide, const int channels, const int parts,
    const int rows_per_part, const real eps, const real momentum, const int update) {
  START(src);
  START(part);
  START(running_mean);
  START(running_var);
  START(mean);
  START(rstd);
  const int c = (int)get_group_id(0) * VW;
  const int n = min(VW, channels - c);
  const int folds = wide / channels;
  const long all_parts = (long)parts * wide;
  const real values = (real)(total / channels);
  const vreal origin = sb_load(part + c, n, n, 0);
  vreal sum = (vreal)0;
  for (int p = 0; p < parts; ++p)
    for (int f = 0; f < folds; ++f) {
      const real count = batch_norm_count(p, f, total, wide, channels, rows_per_part);
      sum = FMA(sb_load(part + (long)p * wide + f * channels + c, n, n, 0) - origin, (vreal)count, sum);
    }
  const vreal from_first = origin + sum / values;
  vreal m2 = (vreal)0;
  for (int p = 0; p < parts; ++p)
    for (int f = 0; f < folds; ++f) {
      const real count = batch_norm_count(p, f, total, wide, channels, rows_per_part);
      const long at = (long)p * wide + f * channels + c;
      const vreal delta = sb_load(part + at, n, n, 0) - from_first;
      // A part without values holds zeros, which must not meet an infinite mean.
      if (count > 0) m2 += FMA(delta * delta, (vreal)count, sb_load(part + all_parts + at, n, n, 0));
    }
  const vreal m = sb_load(src + c, n, n, 0) + from_first;
  const vreal r = (vreal)1 / sqrt(m2 / values + eps);
  sb_store(m, mean + c, n);
  sb_store(r, rstd + c, n);
  if (update) {
    const vreal old_mean = sb_load(running_mean + c, n, n, 0);
    const vreal old_var = sb_load(running_var + c, n, n, 0);
    sb_store(FMA((vreal)momentum, m, (1 - momentum) * old_mean), running_mean + c, n);
    sb_store(FMA((vreal)momentum, m2 / (values - 1), (1 - momentum) * old_var), running_var + c, n);
  }
}

// Sums of g and of g * (src - mean) over the rows [first, last), for `vectors` vectors of columns, where g is dy or,
// `masked`, dy where (src - mean) * (scale * rstd) + shift > 0 and else 0: the gradient before a ReLU.
static inline __attribute__((always_inline)) void batch_norm_bwd_sums(
    const __global stored* src, const __global stored* dy, const __global real* mean, const __global real* rstd,
    const __global real* scale, const __global real* shift, __global real* sum_out, __global real* dot_out,
    const long total, const int wide, const int channels, const int column, const long first, const long last,
    const int vectors, const int lanes, const int masked) {
  vreal center[4], factor[4], constant_part[4], sum[4], dot_product[4];
#pragma unroll
  for (int v = 0; v < vectors; ++v) {
    center[v] = batch_norm_gather(mean, column + v * VW, channels);
    sum[v] = dot_product[v] = (vreal)0;
    if (masked) {
      factor[v] =
          batch_norm_gather(scale, column + v * VW, channels) * batch_norm_gather(rstd, column + v * VW, channels);
      constant_part[v] = batch_norm_gather(shift, column + v * VW, channels);
    }
  }
  const long whole = min(last, total / wide);
  for (long row = first; row < whole; ++row) {
    const long at = row * wide + column;
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      vreal g = sb_load(dy + at + v * VW, lanes, lanes, 0);
      const vreal x = sb_load(src + at + v * VW, lanes, lanes, 0) - center[v];
      if (masked) g = select((vreal)0, g, FMA(x, factor[v], constant_part[v]) > (vreal)0);
      sum[v] += g;
      dot_product[v] = FMA(g, x, dot_product[v]);
    }
  }
  if (whole < last) {
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      const long at = whole * wide + column + v * VW;
      vreal g = sb_load(dy + at, total - at, total - at, 0);
      const vreal x = sb_load(src + at, total - at, total - at, 0) - center[v];
      if (masked) g = select((vreal)0, g, FMA(x, factor[v], constant_part[v]) > (vreal)0);
      sum[v] += g;
      dot_product[v] = FMA(g, x, dot_product[v]);
    }
  }
#pragma unroll
  for (int v = 0; v < vectors; ++v) {
    sb_store(sum[v], sum_out + v * VW, lanes);
    sb_store(dot_product[v], dot_out + v * VW, lanes);
  }
}

// The columns of one group.
void batch_norm_bwd_columns(const __global stored* src, const __global stored* dy, const __global real* mean,
                            const __global real* rstd, const __global real* scale, const __global real* shift,
                            __global real* sum, __global real* dots, const long total, const int wide,
                            const int channels, int column, const long first, const long last, const int masked) {
  if (column + BATCH_NORM_UNIT <= wide) {
    batch_norm_bwd_sums(src, dy, mean, rstd, scale, shift, sum + column, dots + column, total, wide, channels, column,
                        first, last, 4, VW, masked);
    return;
  }
  for (; column + VW <= wide; column += VW)
    batch_norm_bwd_sums(src, dy, mean, rstd, scale, shift, sum + column, dots + column, total, wide, channels, column,
                        first, last, 1, VW, masked);
  if (column < wide)
    batch_norm_bwd_sums(src, dy, mean, rstd, scale, shift, sum + column, dots + column, total, wide, channels, column,
                        first, last, 1, wide - column, masked);
}

// part [N, 2, parts, W]: sums of g and of g * (src - mean) of each column in each part of each image; mean [N, C]. g is
// dy, or with `masked` (one image only) the gradient before a ReLU of the normalised values. Groups as
// batch_norm_stats.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void batch_norm_bwd_stats(
    ARRAY(const stored, src), ARRAY(const stored, dy), ARRAY(const real, mean), ARRAY(const real, rstd),
    ARRAY(const real, scale), ARRAY(const real, shift), ARRAY(real, part), const long total, const int wide,
    const int channels, const int rows_per_part, const int masked) {
  START(src);
  START(dy);
  START(mean);
  START(rstd);
  START(scale);
  START(shift);
  START(part);
  src += (long)get_group_id(2) * total;
  dy += (long)get_group_id(2) * total;
  mean += (long)get_group_id(2) * channels;
  part += (long)get_group_id(2) * 2 * (long)get_num_groups(0) * wide;
  const long rows = (total + wide - 1) / wide;
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  const int column = (int)get_group_id(1) * BATCH_NORM_UNIT;
  __global real* sum = part + p * wide;
  __global real* dots = sum + (long)get_num_groups(0) * wide;
  if (masked)
    batch_norm_bwd_columns(src, dy, mean, rstd, scale, shift, sum, dots, total, wide, channels, column, first, last, 1);
  else
    batch_norm_bwd_columns(src, dy, mean, rstd, scale, shift, sum, dots, total, wide, channels, column, first, last, 0);
}

// dshift [C] = sum of dy, dscale [C] = sum of dy * (src - mean) * rstd, and with `with_dx` factors a, b, c [C] of
// dx = a * dy + b * (src - mean) + c: a = scale * rstd, b = -a * rstd * dscale / R, c = -a * dshift / R. Groups as
// batch_norm_merge.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void batch_norm_bwd_merge(
    ARRAY(const real, part), ARRAY(const real, scale), ARRAY(const real, rstd), ARRAY(real, dscale),
    ARRAY(real, dshift), ARRAY(real, a), ARRAY(real, b), ARRAY(real, c), const long total, const int wide,
    const int channels, const int parts, const int with_dx) {
  START(part);
  START(scale);
  START(rstd);
  START(dscale);
  START(dshift);
  START(a);
  START(b);
  START(c);
  const int at_channel = (int)get_group_id(0) * VW;
  const int n = min(VW, channels - at_channel);
  const int folds = wide / channels;
  const long all_parts = (long)parts * wide;
  vreal sum = (vreal)0, dots = (vreal)0;
  for (int p = 0; p < parts; ++p)
    for (int f = 0; f < folds; ++f) {
      const long at = (long)p * wide + f * channels + at_channel;
      sum += sb_load(part + at, n, n, 0);
      dots += sb_load(part + all_parts + at, n, n, 0);
    }
  const vreal r = sb_load(rstd + at_channel, n, n, 0);
  dots *= r;
  sb_store(dots, dscale + at_channel, n);
  sb_store(sum, dshift + at_channel, n);
  if (!with_dx) return;
  const vreal factor = sb_load(scale + at_channel, n, n, 0) * r;
  const vreal share = factor / (real)(total / channels);
  sb_store(factor, a + at_channel, n);
  sb_store(-share * r * dots, b + at_channel, n);
  sb_store(-share * sum, c + at_channel, n);
}
