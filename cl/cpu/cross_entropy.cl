// Cross-entropy of soft-max. Letters: rows, C classes; logits [rows, C]. The target of a row is a label (labels_i32 or
// labels_u8 [rows]) or C probabilities; the other two are null. class_weight [C] or null. With w the class weights (1
// where null), s the smoothing and t the target's distribution (1 at the label), a row's weights are q[c] = w[c] * ((1
// - s) * t[c] + s / C), its loss sum(q[c] * (log(sum) - (x[c] - max))) and its gradient p[c] * sum(q) - q[c], p the
// soft-max. A row whose label is `ignored` (where has_ignored) counts nothing; a label outside [0, C) gives NaN. A
// work-group takes rows_per_group rows.

static inline int cross_entropy_label(const __global int* labels_i32, const __global uchar* labels_u8,
                                       const long row) {
  return labels_i32 ? labels_i32[row] : labels_u8[row];
}

// losses [rows]; row_weights [rows] are what a row counts in the weighted mean: w[label], 0 where ignored, 1 for
// probabilities; statistics [rows, 2] are max and sum(exp(x - max)) for the backward kernel.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cross_entropy_fwd(
    ARRAY(const stored, logits), ARRAY(const int, labels_i32), ARRAY(const uchar, labels_u8),
    ARRAY(const real, probabilities), ARRAY(const real, class_weight), ARRAY(real, losses), ARRAY(real, row_weights),
    ARRAY(real, statistics), const long rows, const long classes, const int rows_per_group, const int has_ignored,
    const int ignored, const real smoothing) {
  START(logits);
  START(labels_i32);
  START(labels_u8);
  START(probabilities);
  START(class_weight);
  START(losses);
  START(row_weights);
  START(statistics);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  const real smooth = smoothing / classes;
  for (long row = first; row < end; ++row) {
    const __global stored* x = logits + row * classes;
    const long readable = (rows - row) * classes;
    const real largest = sb_row_max(x, classes, readable);
    const real sum = sb_row_sum_exp(x, classes, readable, largest), log_sum = log(sum);
    statistics[2 * row] = largest;
    statistics[2 * row + 1] = sum;
    real loss = 0, weight = 1;
    bool spread = smoothing > 0;
    if (!probabilities) {
      const int label = cross_entropy_label(labels_i32, labels_u8, row);
      if (has_ignored && label == ignored) {
        weight = 0;
        spread = false;
      } else if (label < 0 || label >= (int)classes) {
        loss = NAN;
        spread = false;
      } else {
        if (class_weight) weight = class_weight[label];
        loss = (1 - smoothing) * weight * (log_sum - (LOAD(x + label) - largest));
      }
    }
    if (probabilities || spread) {
      const __global real* t = probabilities + row * classes;
      vreal total = 0;
      for (long i = 0; i < classes;) {
        const long block_end = min(classes, i + SB_SUM_BLOCK * VW);
        vreal part = 0;
        for (; i < block_end; i += VW) {
          const long left = classes - i;
          vreal q = smooth;
          if (probabilities) q = FMA((vreal)(1 - smoothing), sb_load(t + i, left, readable - i, 0), q);
          if (class_weight) q *= sb_load(class_weight + i, left, left, 0);
          const vreal term = q * (log_sum - (sb_load(x + i, left, readable - i, largest) - largest));
          part += left >= VW ? term : select((vreal)(0), term, SB_LANES < (vmask)((real_int)left));
        }
        total += part;
      }
      loss += sb_sum(total);
    }
    losses[row] = loss;
    row_weights[row] = weight;
  }
}

// One work-group: loss [1] = sum(losses) / denominator [1], which is sum(row_weights) where is_mean and 1 else.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cross_entropy_total(ARRAY(const real, losses),
                                                                                 ARRAY(const real, row_weights),
                                                                                 ARRAY(real, loss),
                                                                                 ARRAY(real, denominator),
                                                                                 const long rows, const int is_mean) {
  START(losses);
  START(row_weights);
  START(loss);
  START(denominator);
  vreal loss_total = 0, weight_total = 0;
  for (long i = 0; i < rows;) {
    const long block_end = min(rows, i + SB_SUM_BLOCK * VW);
    vreal loss_part = 0, weight_part = 0;
    for (; i < block_end; i += VW) {
      loss_part += sb_load(losses + i, rows - i, rows - i, 0);
      weight_part += sb_load(row_weights + i, rows - i, rows - i, 0);
    }
    loss_total += loss_part;
    weight_total += weight_part;
  }
  const real divisor = is_mean ? sb_sum(weight_total) : 1;
  loss[0] = sb_sum(loss_total) / divisor;
  denominator[0] = divisor;
}

// dlogits [rows, C] = dy / denominator * (p * sum(q) - q); it may lie over logits. dy is [1] (dy_stride 0) or [rows]
// (dy_stride 1); denominator [1] or null.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cross_entropy_bwd(
    ARRAY_INPLACE(const stored, logits), ARRAY(const int, labels_i32), ARRAY(const uchar, labels_u8),
    ARRAY(const real, probabilities), ARRAY(const real, class_weight), ARRAY(const real, statistics),
    ARRAY(const real, dy), ARRAY(const real, denominator), ARRAY_INPLACE(stored, dlogits), const long rows, const long classes,
    const int rows_per_group, const int dy_stride, const int has_ignored, const int ignored, const real smoothing) {
  START(logits);
  START(labels_i32);
  START(labels_u8);
  START(probabilities);
  START(class_weight);
  START(statistics);
  START(dy);
  START(denominator);
  START(dlogits);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  const real smooth = smoothing / classes;
  real spread = smoothing;  // the sum of w[c] * s / C
  if (class_weight && smoothing > 0) {
    vreal total = 0;
    for (long i = 0; i < classes; i += VW) total += sb_load(class_weight + i, classes - i, classes - i, 0);
    spread = smooth * sb_sum(total);
  }
  for (long row = first; row < end; ++row) {
    const __global stored* x = logits + row * classes;
    const __global real* t = probabilities + row * classes;
    __global stored* d = dlogits + row * classes;
    const long readable = (end - row) * classes;  // other work-items may already write behind it
    const real largest = statistics[2 * row], inverse = 1 / statistics[2 * row + 1];
    const real g = denominator ? dy[row * dy_stride] / denominator[0] : dy[row * dy_stride];
    int label = 0;
    real at_label = 0, q_sum = spread;
    bool is_ignored = false;
    if (probabilities) {
      vreal total = 0;
      for (long i = 0; i < classes; i += VW) {
        vreal v = sb_load(t + i, classes - i, readable - i, 0);
        if (class_weight) v *= sb_load(class_weight + i, classes - i, classes - i, 0);
        total += v;
      }
      q_sum = FMA(1 - smoothing, sb_sum(total), spread);
    } else {
      label = cross_entropy_label(labels_i32, labels_u8, row);
      is_ignored = has_ignored && label == ignored;
      const bool inside = label >= 0 && label < (int)classes;
      at_label = inside ? (1 - smoothing) * (class_weight ? class_weight[label] : 1) : NAN;
      q_sum += at_label;
      if (!inside) label = 0;
    }
    for (long i = 0; i < classes; i += VW) {
      const long left = classes - i;
      vreal result = 0;
      if (!is_ignored) {
        vreal q = smooth;
        if (probabilities) q = FMA((vreal)(1 - smoothing), sb_load(t + i, left, readable - i, 0), q);
        if (class_weight) q *= sb_load(class_weight + i, left, left, 0);
        const vreal p = exp(sb_load(x + i, left, readable - i, largest) - largest) * inverse;
        result = g * FMA(p, (vreal)(q_sum), -q);
        if (!probabilities && label >= i && label < i + VW)
          result -= select((vreal)(0), (vreal)(g * at_label), SB_LANES == (vmask)((real_int)(label - i)));
      }
      sb_store(result, d + i, left);
    }
  }
}
