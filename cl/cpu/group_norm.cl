// Group normalisation of src [N, R, C] (channels last, R values per channel of each of the N images), CPU: one
// work-item per group. The statistics of each image are those of batch_norm.cl (part [N, 2, parts, W]); here the parts
// of each image are merged in order to its channels and these to its groups of neighbouring channels, and a second pass
// streams the elements with factors per image and channel. Instance norm is one channel to a group.
//
// Factors lie in `coef`: for each image rows of coef_row values with column j for channel j % C, where a vector may
// start at any of the first `span` columns, a multiple of C. All sums are of `real`.
#include "shared/norm.h"

#define GROUP_NORM_ITEMS 1  // work-items of a group
#define GROUP_NORM_EACH 0  // 1: a work-group merges one group of channels; 0: all those of an image

// Number of values that column block f (columns f*C to f*C + C) has in part p of an image of `total` elements.
real group_norm_count(const long p, const int f, const long total, const int wide, const int channels,
                      const int rows_per_part) {
  const long whole = total / wide;
  const long first = min(whole, p * rows_per_part);
  const long last = min(whole, (p + 1) * rows_per_part);
  const int more =
      (whole >= p * rows_per_part) & (whole < (p + 1) * rows_per_part) & (whole * wide + (long)f * channels < total);
  return (real)(last - first + more);
}

// Merges the parts of batch_norm_stats: mean [N, C] and rstd [N, C] = 1 / sqrt(variance + eps), equal within a group;
// m2 [N, C]: sum of squared distances of each channel from its own mean; coef = rows (mean, scale * rstd, shift). All
// means are counted from a value of the group, so that a large one costs no accuracy. Group n: image n.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void group_norm_merge(
    ARRAY(const stored, src), ARRAY(const real, part), ARRAY(const real, scale), ARRAY(const real, shift),
    ARRAY(real, mean), ARRAY(real, rstd), ARRAY(real, m2), ARRAY(real, coef), const long total, const int wide,
    const int channels, const int groups, const int parts, const int rows_per_part, const int coef_row, const real eps,
    const int flags) {
  START(src);
  START(part);
  START(scale);
  START(shift);
  START(mean);
  START(rstd);
  START(m2);
  START(coef);
  const long n = get_group_id(0);
  const long all_parts = (long)parts * wide;
  src += n * total;
  part += n * 2 * all_parts;
  mean += n * channels;
  rstd += n * channels;
  m2 += n * channels;
  coef += n * 3 * coef_row;
  const int folds = wide / channels;
  const int values = (int)(total / channels);
  for (int c = 0; c < channels; c += VW) {
    const int lanes = min(VW, channels - c);
    const vreal origin = sb_load(part + c, lanes, lanes, 0);
    vreal sum = (vreal)0;
    for (int p = 0; p < parts; ++p)
      for (int f = 0; f < folds; ++f) {
        const real count = group_norm_count(p, f, total, wide, channels, rows_per_part);
        const vreal delta = sb_load(part + (long)p * wide + f * channels + c, lanes, lanes, 0) - origin;
        sum = FMA(delta, (vreal)count, sum);
      }
    const vreal from_first = origin + sum / values;
    vreal square = (vreal)0;
    for (int p = 0; p < parts; ++p)
      for (int f = 0; f < folds; ++f) {
        const real count = group_norm_count(p, f, total, wide, channels, rows_per_part);
        const long at = (long)p * wide + f * channels + c;
        const vreal delta = sb_load(part + at, lanes, lanes, 0) - from_first;
        // A part without values holds zeros, which must not meet an infinite mean.
        if (count > 0) square += FMA(delta * delta, (vreal)count, sb_load(part + all_parts + at, lanes, lanes, 0));
      }
    sb_store(from_first, mean + c, lanes);
    sb_store(square, m2 + c, lanes);
  }
  const int width = channels / groups;
  for (int first = 0; first < channels; first += width) {
    const real origin = LOAD(src + first);
    real sum = 0;
    for (int c = first; c < first + width; ++c) sum += (LOAD(src + c) - origin) + mean[c];
    const real center = sum / width;
    real square = 0;
    for (int c = first; c < first + width; ++c) {
      const real delta = (LOAD(src + c) - origin) + mean[c] - center;
      square += FMA(delta * delta, (real)values, m2[c]);
    }
    const real m = origin + center;
    const real r = (real)1 / sqrt(square / values / width + eps);
    for (int c = first; c < first + width; ++c) {
      mean[c] = m;
      rstd[c] = r;
      const real factor = flags & GROUP_NORM_SCALE ? scale[c] * r : r;
      const real constant_part = flags & GROUP_NORM_SHIFT ? shift[c] : 0;
      for (int j = c; j < coef_row; j += channels) {
        coef[j] = m;
        coef[coef_row + j] = factor;
        coef[2 * (long)coef_row + j] = constant_part;
      }
    }
  }
}

// running = (1 - momentum) * running + momentum * the mean over the images of mean [N, C] and of the unbiased variance
// m2 [N, C] / (values - 1), in place. Group g: one vector of channels.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void group_norm_running(
    ARRAY(const real, mean), ARRAY(const real, m2), ARRAY(real, running_mean), ARRAY(real, running_var),
    const int images, const int channels, const int values, const real momentum) {
  START(mean);
  START(m2);
  START(running_mean);
  START(running_var);
  const int c = (int)get_group_id(0) * VW;
  const int lanes = min(VW, channels - c);
  vreal a = (vreal)0, b = (vreal)0;
  for (int n = 0; n < images; ++n) {
    a += sb_load(mean + (long)n * channels + c, lanes, lanes, 0);
    b += sb_load(m2 + (long)n * channels + c, lanes, lanes, 0);
  }
  const vreal old_mean = sb_load(running_mean + c, lanes, lanes, 0);
  const vreal old_var = sb_load(running_var + c, lanes, lanes, 0);
  sb_store(FMA((vreal)momentum, a / images, (1 - momentum) * old_mean), running_mean + c, lanes);
  sb_store(FMA((vreal)momentum, b / (values - 1) / images, (1 - momentum) * old_var), running_var + c, lanes);
}

// dst = (src - mean) * (scale * rstd) + shift, streaming over `all` elements of images of `total`; coef as
// group_norm_merge wrote it. Geometry: over_elements(all).
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void group_norm_apply(ARRAY(const stored, src),
                                                                              ARRAY(const real, coef),
                                                                              ARRAY(stored, dst), const long all,
                                                                              const long total, const int span,
                                                                              const int coef_row) {
  START(src);
  START(coef);
  START(dst);
  const long end = SB_END(all);
  for (long i = SB_BEGIN(all); i < end;) {
    const long n = i / total;
    const long stop = min(end, (n + 1) * total);
    const __global real* mean = coef + n * 3 * coef_row;
    const __global real* factor = mean + coef_row;
    const __global real* shift = factor + coef_row;
    int j = (int)((i - n * total) % span);
    for (; i + VW <= stop; i += VW) {
      VSTORE(FMA(VLOAD(src + i) - VLOAD(mean + j), VLOAD(factor + j), VLOAD(shift + j)), dst + i);
      j += VW;
      if (j >= span) j -= span;
    }
    if (i < stop) {
      const vreal x = sb_load(src + i, stop - i, all - i, 0);
      sb_store(FMA(x - VLOAD(mean + j), VLOAD(factor + j), VLOAD(shift + j)), dst + i, stop - i);
    }
    i = stop;
  }
}

// Merges the parts of batch_norm_bwd_stats: dshift [N, C] = sum of dy, dscale [N, C] = sum of dy * xhat over each
// image, xhat = (src - mean) * rstd, and with GROUP_NORM_DSRC coef = rows (mean, a, b, c) of dx = a * dy + b * (src -
// mean) + c: with M values in a group, a = scale * rstd, b = -rstd^2 / M * sum of scale * dscale, c = -rstd / M * sum
// of scale * dshift over its channels. Group n: image n.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void group_norm_bwd_merge(
    ARRAY(const real, part), ARRAY(const real, scale), ARRAY(const real, mean), ARRAY(const real, rstd),
    ARRAY(real, dscale), ARRAY(real, dshift), ARRAY(real, coef), const long total, const int wide, const int channels,
    const int groups, const int parts, const int coef_row, const int flags) {
  START(part);
  START(scale);
  START(mean);
  START(rstd);
  START(dscale);
  START(dshift);
  START(coef);
  const long n = get_group_id(0);
  const long all_parts = (long)parts * wide;
  part += n * 2 * all_parts;
  mean += n * channels;
  rstd += n * channels;
  dscale += n * channels;
  dshift += n * channels;
  coef += n * 4 * coef_row;
  const int folds = wide / channels;
  for (int c = 0; c < channels; c += VW) {
    const int lanes = min(VW, channels - c);
    vreal sum = (vreal)0, dots = (vreal)0;
    for (int p = 0; p < parts; ++p)
      for (int f = 0; f < folds; ++f) {
        const long at = (long)p * wide + f * channels + c;
        sum += sb_load(part + at, lanes, lanes, 0);
        dots += sb_load(part + all_parts + at, lanes, lanes, 0);
      }
    sb_store(dots * sb_load(rstd + c, lanes, lanes, 0), dscale + c, lanes);
    sb_store(sum, dshift + c, lanes);
  }
  if (!(flags & GROUP_NORM_DSRC)) return;
  const int width = channels / groups;
  const real count = (real)(total / groups);
  for (int first = 0; first < channels; first += width) {
    real sum = 0, dots = 0;
    for (int c = first; c < first + width; ++c) {
      const real s = flags & GROUP_NORM_SCALE ? scale[c] : 1;
      sum = FMA(s, dshift[c], sum);
      dots = FMA(s, dscale[c], dots);
    }
    const real m = mean[first], r = rstd[first];
    const real b = -r * r * dots / count, constant_part = -r * sum / count;
    for (int c = first; c < first + width; ++c) {
      const real a = flags & GROUP_NORM_SCALE ? scale[c] * r : r;
      for (int j = c; j < coef_row; j += channels) {
        coef[j] = m;
        coef[coef_row + j] = a;
        coef[2 * (long)coef_row + j] = b;
        coef[3 * (long)coef_row + j] = constant_part;
      }
    }
  }
}

// dx = a * dy + b * (src - mean) + c, streaming; coef as group_norm_bwd_merge wrote it. Geometry: over_elements(all).
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void group_norm_bwd_apply(
    ARRAY(const stored, src), ARRAY(const stored, dy), ARRAY(const real, coef), ARRAY(stored, dx), const long all,
    const long total, const int span, const int coef_row) {
  START(src);
  START(dy);
  START(coef);
  START(dx);
  const long end = SB_END(all);
  for (long i = SB_BEGIN(all); i < end;) {
    const long n = i / total;
    const long stop = min(end, (n + 1) * total);
    const __global real* mean = coef + n * 4 * coef_row;
    const __global real* a = mean + coef_row;
    const __global real* b = a + coef_row;
    const __global real* c = b + coef_row;
    int j = (int)((i - n * total) % span);
    for (; i + VW <= stop; i += VW) {
      const vreal rest = FMA(VLOAD(b + j), VLOAD(src + i) - VLOAD(mean + j), VLOAD(c + j));
      VSTORE(FMA(VLOAD(a + j), VLOAD(dy + i), rest), dx + i);
      j += VW;
      if (j >= span) j -= span;
    }
    if (i < stop) {
      const vreal x = sb_load(src + i, stop - i, all - i, 0);
      const vreal rest = FMA(VLOAD(b + j), x - VLOAD(mean + j), VLOAD(c + j));
      sb_store(FMA(VLOAD(a + j), sb_load(dy + i, stop - i, all - i, 0), rest), dx + i, stop - i);
    }
    i = stop;
  }
}
