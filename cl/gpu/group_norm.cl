// Group normalisation of src [N, R, C] (channels last, R values per channel of each of the N images), GPU. As in the
// CPU file the statistics of each image are those of batch_norm.cl (part [N, 2, parts, W]); here 64 work-items merge
// one group of neighbouring channels in a fixed order, and a second pass has one work-item per element. All sums are of
// `real`.
#include "shared/norm.h"

#define GROUP_NORM_ITEMS 64  // work-items of a group
#define GROUP_NORM_EACH 1  // 1: a work-group merges one group of channels; 0: all those of an image

// Number of values that columns f*C to f*C + C have in part p of an image of `total` elements.
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
// m2 [N, C], written for groups of one channel only: sum of squared distances from the mean; coef = rows (mean, scale *
// rstd, shift). All means are counted from a value of the group, so that a large one costs no accuracy. Group n *
// groups
// + g of 64: group g of image n.
__attribute__((reqd_work_group_size(GROUP_NORM_ITEMS, 1, 1))) __kernel void group_norm_merge(
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
  __local real shared[GROUP_NORM_ITEMS];
  const int l = get_local_id(0);
  const long n = get_group_id(0) / groups;
  const int width = channels / groups;
  const int first = ((int)get_group_id(0) - (int)n * groups) * width;
  const long all_parts = (long)parts * wide;
  src += n * total;
  part += n * 2 * all_parts;
  coef += n * 3 * coef_row;
  const int folds = wide / channels;
  const long pieces = (long)parts * folds;
  const real values = (real)(total / groups);
  const real origin = LOAD(src + first);
  real sum = 0;
  for (long q = l; q < pieces * width; q += GROUP_NORM_ITEMS) {
    const long piece = q / width, p = piece / folds, f = piece - p * folds;
    const int c = first + (int)(q - piece * width);
    const real count = group_norm_count(p, (int)f, total, wide, channels, rows_per_part);
    if (count > 0) sum = FMA((LOAD(src + c) - origin) + part[p * wide + f * channels + c], count, sum);
  }
  const real center = sb_lanes_sum(sum, shared, GROUP_NORM_ITEMS) / values;
  real square = 0;
  for (long q = l; q < pieces * width; q += GROUP_NORM_ITEMS) {
    const long piece = q / width, p = piece / folds, f = piece - p * folds;
    const int c = first + (int)(q - piece * width);
    const long at = p * wide + f * channels + c;
    const real count = group_norm_count(p, (int)f, total, wide, channels, rows_per_part);
    const real delta = (LOAD(src + c) - origin) + part[at] - center;
    if (count > 0) square += FMA(delta * delta, count, part[all_parts + at]);
  }
  square = sb_lanes_sum(square, shared, GROUP_NORM_ITEMS);
  const real m = origin + center;
  const real r = (real)1 / sqrt(square / values + eps);
  for (int c = first + l; c < first + width; c += GROUP_NORM_ITEMS) {
    mean[n * channels + c] = m;
    rstd[n * channels + c] = r;
    if (width == 1) m2[n * channels + c] = square;
    const real factor = flags & GROUP_NORM_SCALE ? scale[c] * r : r;
    const real constant_part = flags & GROUP_NORM_SHIFT ? shift[c] : 0;
    for (int j = c; j < coef_row; j += channels) {
      coef[j] = m;
      coef[coef_row + j] = factor;
      coef[2 * (long)coef_row + j] = constant_part;
    }
  }
}

// running = (1 - momentum) * running + momentum * the mean over the images of mean [N, C] and of the unbiased variance
// m2 [N, C] / (values - 1), in place. Group g of 64: one channel per work-item.
__attribute__((reqd_work_group_size(GROUP_NORM_ITEMS, 1, 1))) __kernel void group_norm_running(
    ARRAY(const real, mean), ARRAY(const real, m2), ARRAY(real, running_mean), ARRAY(real, running_var),
    const int images, const int channels, const int values, const real momentum) {
  START(mean);
  START(m2);
  START(running_mean);
  START(running_var);
  const int c = get_global_id(0);
  if (c < channels) {
    real a = 0, b = 0;
    for (int n = 0; n < images; ++n) {
      a += mean[(long)n * channels + c];
      b += m2[(long)n * channels + c];
    }
    running_mean[c] = FMA(momentum, a / images, (1 - momentum) * running_mean[c]);
    running_var[c] = FMA(momentum, b / (values - 1) / images, (1 - momentum) * running_var[c]);
  }
}

// dst = (src - mean) * (scale * rstd) + shift over `all` elements of images of `total`; coef as group_norm_merge wrote
// it. Geometry: over_elements(all).
__kernel void group_norm_apply(ARRAY(const stored, src), ARRAY(const real, coef), ARRAY(stored, dst), const long all,
                               const long total, const int span, const int coef_row) {
  START(src);
  START(coef);
  START(dst);
  for (long i = SB_BEGIN(all); i < SB_END(all); ++i) {
    const long n = i / total;
    const __global real* mean = coef + n * 3 * coef_row;
    const int j = (int)((ulong)(i - n * total) % (uint)span);
    STORE(FMA(LOAD(src + i) - mean[j], mean[coef_row + j], mean[2 * (long)coef_row + j]), dst + i);
  }
}

// Merges the parts of batch_norm_bwd_stats: dshift [N, C] = sum of dy, dscale [N, C] = sum of dy * xhat over each
// image, xhat = (src - mean) * rstd, and with GROUP_NORM_DSRC coef = rows (mean, a, b, c) of dx = a * dy + b * (src -
// mean) + c: with M values in a group, a = scale * rstd, b = -rstd^2 / M * sum of scale * dscale, c = -rstd / M * sum
// of scale * dshift over its channels. Group n * groups + g of 64: group g of image n; a work-item adds up its own
// channels.
__attribute__((reqd_work_group_size(GROUP_NORM_ITEMS, 1, 1))) __kernel void group_norm_bwd_merge(
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
  __local real shared[GROUP_NORM_ITEMS];
  const int l = get_local_id(0);
  const long n = get_group_id(0) / groups;
  const int width = channels / groups;
  const int first = ((int)get_group_id(0) - (int)n * groups) * width;
  const long all_parts = (long)parts * wide;
  part += n * 2 * all_parts;
  coef += n * 4 * coef_row;
  const int folds = wide / channels;
  const real m = mean[n * channels + first], r = rstd[n * channels + first];
  real sum = 0, dots = 0;
  for (int c = first + l; c < first + width; c += GROUP_NORM_ITEMS) {
    real a = 0, b = 0;
    for (int p = 0; p < parts; ++p)
      for (int f = 0; f < folds; ++f) {
        const long at = (long)p * wide + f * channels + c;
        a += part[at];
        b += part[all_parts + at];
      }
    b *= r;
    dshift[n * channels + c] = a;
    dscale[n * channels + c] = b;
    const real s = flags & GROUP_NORM_SCALE ? scale[c] : 1;
    sum = FMA(s, a, sum);
    dots = FMA(s, b, dots);
  }
  const real count = (real)(total / groups);
  sum = sb_lanes_sum(sum, shared, GROUP_NORM_ITEMS);
  dots = sb_lanes_sum(dots, shared, GROUP_NORM_ITEMS);
  if (flags & GROUP_NORM_DSRC) {
    const real b = -r * r * dots / count, constant_part = -r * sum / count;
    for (int c = first + l; c < first + width; c += GROUP_NORM_ITEMS) {
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

// dx = a * dy + b * (src - mean) + c; coef as group_norm_bwd_merge wrote it. Geometry: over_elements(all).
__kernel void group_norm_bwd_apply(ARRAY(const stored, src), ARRAY(const stored, dy), ARRAY(const real, coef),
                                   ARRAY(stored, dx), const long all, const long total, const int span,
                                   const int coef_row) {
  START(src);
  START(dy);
  START(coef);
  START(dx);
  for (long i = SB_BEGIN(all); i < SB_END(all); ++i) {
    const long n = i / total;
    const __global real* mean = coef + n * 4 * coef_row;
    const int j = (int)((ulong)(i - n * total) % (uint)span);
    const real rest = FMA(mean[2 * (long)coef_row + j], LOAD(src + i) - mean[j], mean[3 * (long)coef_row + j]);
    STORE(FMA(mean[coef_row + j], LOAD(dy + i), rest), dx + i);
  }
}
