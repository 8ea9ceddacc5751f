// Batch normalisation over src [R, C] (channels last, R values per channel), GPU. As in the CPU file the statistics
// look at the same bytes as [ceil(R*C / W), W] with W (`wide`) a multiple of C and, for C that are not large, of 64:
// neighbouring work-items read neighbouring elements whatever C is. Parts by shape, merged in a fixed order.
// Program: convolution
#define BATCH_NORM_UNIT 64     // columns of one group of the statistics
#define BATCH_NORM_LANES 4     // rows that a group reads at once
#define BATCH_NORM_PAD 0       // values after each row of coef
#define BATCH_NORM_CHANNELS 1  // channels of one group of the merge
#define BATCH_NORM_GROUPS 512  // groups of the statistics that are aimed at
#define BATCH_NORM_PART 4096   // elements of a part and column block below which it is not split further
#define BATCH_NORM_MERGERS 64  // work-items that merge one channel

// part [N, 2, parts, W]: mean, counted from src[n][0][c], and sum of squared distances of each column in each part of
// each of the N images. Group (p, b, n) of 64 x 4: part p of `rows_per_part` rows, 64 columns, image n of `total`
// elements; batch norm has one image, group norm N. Each work-item runs Welford's update on the distances from
// its channel's first value, then four merge in local memory.
__attribute__((reqd_work_group_size(BATCH_NORM_UNIT, BATCH_NORM_LANES, 1))) __kernel void batch_norm_stats(
    ARRAY(const stored, src), ARRAY(real, part), const long total, const int wide, const int channels,
    const int rows_per_part) {
  START(src);
  START(part);
  src += (long)get_group_id(2) * total;
  part += (long)get_group_id(2) * 2 * (long)get_num_groups(0) * wide;
  __local real counts[BATCH_NORM_LANES][BATCH_NORM_UNIT];
  __local real means[BATCH_NORM_LANES][BATCH_NORM_UNIT];
  __local real squares[BATCH_NORM_LANES][BATCH_NORM_UNIT];
  const long rows = (total + wide - 1) / wide;
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  const int lx = get_local_id(0), ly = get_local_id(1);
  const int column = (int)get_group_id(1) * BATCH_NORM_UNIT + lx;
  const real origin = LOAD(src + column % channels);
  // Rows in which this column has a value: the last one may end early.
  const long stop = column < wide ? min(last, (total - column + wide - 1) / wide) : first;
  real count = 0, mean = 0, m2 = 0;
  for (long row = first + ly; row < stop; row += BATCH_NORM_LANES) {
    const real x = LOAD(src + row * wide + column) - origin;
    const real delta = x - mean;
    count += 1;
    mean += delta / count;
    m2 = FMA(delta, x - mean, m2);
  }
  counts[ly][lx] = count;
  means[ly][lx] = mean;
  squares[ly][lx] = m2;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (ly == 0 && column < wide) {
    for (int i = 1; i < BATCH_NORM_LANES; ++i) {
      const real more = counts[i][lx];
      if (more > 0) {
        const real both = count + more;
        const real delta = means[i][lx] - mean;
        mean = FMA(delta, more / both, mean);
        m2 += FMA(delta * delta, count * more / both, squares[i][lx]);
        count = both;
      }
    }
    part[p * wide + column] = mean;
    part[((long)get_num_groups(0) + p) * wide + column] = m2;
  }
}

// Number of values that columns f*C to f*C + C have in part p.
real batch_norm_count(const long p, const int f, const long total, const int wide, const int channels,
                      const int rows_per_part) {
  const long whole = total / wide;
  const long first = min(whole, p * rows_per_part);
  const long last = min(whole, (p + 1) * rows_per_part);
  const int more =
      (whole >= p * rows_per_part) & (whole < (p + 1) * rows_per_part) & (whole * wide + (long)f * channels < total);
  return (real)(last - first + more);
}

// The sum of a[0] to a[63], the same in every work-item. All work-items of the group call it.
real batch_norm_total(__local real* a, const real mine) {
  const int l = get_local_id(0);
  a[l] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = BATCH_NORM_MERGERS / 2; half_size > 0; half_size /= 2) {
    if (l < half_size) a[l] += a[l + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const real result = a[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return result;
}

// Merges the parts of batch_norm_stats: mean [C], rstd [C] = 1 / sqrt(variance + eps); with `update` running =
// (1 - momentum) * running + momentum * batch, with the unbiased variance, in place. Group g of 64: channel g.
__attribute__((reqd_work_group_size(BATCH_NORM_MERGERS, 1, 1))) __kernel void batch_norm_merge(
    ARRAY(const stored, src), ARRAY(const real, part), ARRAY(real, running_mean), ARRAY(real, running_var),
    ARRAY(real, mean), ARRAY(real, rstd), const long total, const int wide, const int channels, const int parts,
    const int rows_per_part, const real eps, const real momentum, const int update) {
  START(src);
  START(part);
  START(running_mean);
  START(running_var);
  START(mean);
  START(rstd);
  __local real shared[BATCH_NORM_MERGERS];
  const int c = get_group_id(0);
  const int l = get_local_id(0);
  const int folds = wide / channels;
  const long pieces = (long)parts * folds;
  const real values = (real)(total / channels);
  const real origin = part[c];
  real sum = 0;
  for (long q = l; q < pieces; q += BATCH_NORM_MERGERS) {
    const long p = q / folds, f = q - p * folds;
    const real count = batch_norm_count(p, (int)f, total, wide, channels, rows_per_part);
    if (count > 0) sum = FMA(part[p * wide + f * channels + c] - origin, count, sum);
  }
  const real from_first = origin + batch_norm_total(shared, sum) / values;
  real m2 = 0;
  for (long q = l; q < pieces; q += BATCH_NORM_MERGERS) {
    const long p = q / folds, f = q - p * folds, at = p * wide + f * channels + c;
    const real count = batch_norm_count(p, (int)f, total, wide, channels, rows_per_part);
    const real delta = part[at] - from_first;
    if (count > 0) m2 += FMA(delta * delta, count, part[(long)parts * wide + at]);
  }
  m2 = batch_norm_total(shared, m2);
  if (l == 0) {
    const real m = LOAD(src + c) + from_first;
    const real r = (real)1 / sqrt(m2 / values + eps);
    mean[c] = m;
    rstd[c] = r;
    if (update) {
      running_mean[c] = FMA(momentum, m, (1 - momentum) * running_mean[c]);
      running_var[c] = FMA(momentum, m2 / (values - 1), (1 - momentum) * running_var[c]);
    }
  }
}

// part [N, 2, parts, W]: sums of g and of g * (src - mean) of each column in each part of each image; mean [N, C]. g is
// dy or, with `masked` (one image only), dy where (src - mean) * (scale * rstd) + shift > 0 and else 0: the gradient
// before a ReLU. Groups as batch_norm_stats.
__attribute__((reqd_work_group_size(BATCH_NORM_UNIT, BATCH_NORM_LANES, 1))) __kernel void batch_norm_bwd_stats(
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
  __local real sums[BATCH_NORM_LANES][BATCH_NORM_UNIT];
  __local real dots[BATCH_NORM_LANES][BATCH_NORM_UNIT];
  const long rows = (total + wide - 1) / wide;
  const long p = get_group_id(0);
  const long first = p * rows_per_part;
  const long last = min(rows, first + rows_per_part);
  const int lx = get_local_id(0), ly = get_local_id(1);
  const int column = (int)get_group_id(1) * BATCH_NORM_UNIT + lx;
  const int channel = column % channels;
  const real center = mean[channel];
  real factor = 0, constant_part = 1;
  if (masked) {
    factor = scale[channel] * rstd[channel];
    constant_part = shift[channel];
  }
  const long stop = column < wide ? min(last, (total - column + wide - 1) / wide) : first;
  real sum = 0, dot_product = 0;
  for (long row = first + ly; row < stop; row += BATCH_NORM_LANES) {
    const real x = LOAD(src + row * wide + column) - center;
    const real g = !masked || FMA(x, factor, constant_part) > 0 ? LOAD(dy + row * wide + column) : (real)0;
    sum += g;
    dot_product = FMA(g, x, dot_product);
  }
  sums[ly][lx] = sum;
  dots[ly][lx] = dot_product;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (ly == 0 && column < wide) {
    for (int i = 1; i < BATCH_NORM_LANES; ++i) {
      sum += sums[i][lx];
      dot_product += dots[i][lx];
    }
    part[p * wide + column] = sum;
    part[((long)get_num_groups(0) + p) * wide + column] = dot_product;
  }
}

// dshift [C] = sum of dy, dscale [C] = sum of dy * (src - mean) * rstd, and with `with_dx` factors a, b, c [C] of
// dx = a * dy + b * (src - mean) + c: a = scale * rstd, b = -a * rstd * dscale / R, c = -a * dshift / R. Groups as
// batch_norm_merge.
__attribute__((reqd_work_group_size(BATCH_NORM_MERGERS, 1, 1))) __kernel void batch_norm_bwd_merge(
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
  __local real shared[BATCH_NORM_MERGERS];
  const int channel = get_group_id(0);
  const int l = get_local_id(0);
  const int folds = wide / channels;
  const long pieces = (long)parts * folds;
  real sum = 0, dots = 0;
  for (long q = l; q < pieces; q += BATCH_NORM_MERGERS) {
    const long p = q / folds, f = q - p * folds, at = p * wide + f * channels + channel;
    sum += part[at];
    dots += part[(long)parts * wide + at];
  }
  sum = batch_norm_total(shared, sum);
  dots = batch_norm_total(shared, dots);
  if (l == 0) {
    const real r = rstd[channel];
    dots *= r;
    dscale[channel] = dots;
    dshift[channel] = sum;
    if (with_dx) {
      const real factor = scale[channel] * r;
      const real share = factor / (real)(total / channels);
      a[channel] = factor;
      b[channel] = -share * r * dots;
      c[channel] = -share * sum;
    }
  }
}
