// Cross-entropy of soft-max. Letters: rows, C classes; logits [rows, C]. The target of a row is a label (labels_i32 or
// labels_u8 [rows]) or C probabilities; the other two are null. class_weight [C] or null. With w the class weights (1
// where null), s the smoothing and t the target's distribution (1 at the label), a row's weights are q[c] = w[c] * ((1
// - s) * t[c] + s / C), its loss sum(q[c] * (log(sum) - (x[c] - max))) and its gradient p[c] * sum(q) - q[c], p the
// soft-max. A row whose label is `ignored` (where has_ignored) counts nothing; a label outside [0, C) gives NaN. A
// work-group takes rows_per_group rows (a power of two), its items shared equally among them.

#define CROSS_ENTROPY_MOST_ITEMS 256

static inline real cross_entropy_q(const __global real* t, const __global real* class_weight, const long c,
                                   const int label, const real smoothing, const real smooth) {
  const real target = t ? t[c] : c == label ? (real)1 : (real)0;
  const real q = FMA(1 - smoothing, target, smooth);
  return class_weight ? q * class_weight[c] : q;
}

// losses [rows]; row_weights [rows] are what a row counts in the weighted mean: w[label], 0 where ignored, 1 for
// probabilities; statistics [rows, 2] are max and sum(exp(x - max)) for the backward kernel.
__kernel void cross_entropy_fwd(ARRAY(const stored, logits), ARRAY(const int, labels_i32), ARRAY(const uchar, labels_u8),
                                ARRAY(const real, probabilities), ARRAY(const real, class_weight), ARRAY(real, losses),
                                ARRAY(real, row_weights), ARRAY(real, statistics), const long rows, const long classes,
                                const int rows_per_group, const int has_ignored, const int ignored,
                                const real smoothing) {
  START(logits);
  START(labels_i32);
  START(labels_u8);
  START(probabilities);
  START(class_weight);
  START(losses);
  START(row_weights);
  START(statistics);
  __local real scratch[CROSS_ENTROPY_MOST_ITEMS];
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long group_row = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  const bool is_row = group_row < rows;
  const long row = is_row ? group_row : 0, n = is_row ? classes : 0;
  const __global stored* x = logits + row * classes;
  const __global real* t = probabilities ? probabilities + row * classes : 0;
  const real smooth = smoothing / classes;
  real largest = -INFINITY;
  for (long i = lane; i < n; i += lanes) largest = sb_max2(largest, LOAD(x + i));
  largest = sb_lanes_max(largest, scratch, lanes);
  real sum = 0;
  for (long i = lane; i < n; i += lanes) sum += exp(LOAD(x + i) - largest);
  sum = sb_lanes_sum(sum, scratch, lanes);
  const real log_sum = log(sum);
  const int label = probabilities ? 0 : labels_i32 ? labels_i32[row] : labels_u8[row];
  const bool is_ignored = !probabilities && has_ignored && label == ignored;
  const bool is_inside = label >= 0 && label < (int)classes;
  real loss = 0;
  if (probabilities || (smoothing > 0 && !is_ignored)) {
    for (long i = lane; i < n; i += lanes)
      loss += cross_entropy_q(t, class_weight, i, label, smoothing, smooth) * (log_sum - (LOAD(x + i) - largest));
  } else if (lane == 0 && !is_ignored && is_inside) {
    loss = (class_weight ? class_weight[label] : 1) * (log_sum - (LOAD(x + label) - largest));
  }
  loss = sb_lanes_sum(loss, scratch, lanes);
  if (is_row && lane == 0) {
    losses[row] = is_ignored || is_inside ? loss : NAN;
    row_weights[row] = is_ignored ? 0 : !probabilities && class_weight && is_inside ? class_weight[label] : 1;
    statistics[2 * row] = largest;
    statistics[2 * row + 1] = sum;
  }
}

// One work-group: loss [1] = sum(losses) / denominator [1], which is sum(row_weights) where is_mean and 1 else.
__kernel void cross_entropy_total(ARRAY(const real, losses), ARRAY(const real, row_weights), ARRAY(real, loss),
                                  ARRAY(real, denominator), const long rows, const int is_mean) {
  START(losses);
  START(row_weights);
  START(loss);
  START(denominator);
  __local real scratch[CROSS_ENTROPY_MOST_ITEMS];
  const int items = (int)get_local_size(0);
  real loss_part = 0, weight_part = 0;
  for (long i = (long)get_local_id(0); i < rows; i += items) {
    loss_part += losses[i];
    weight_part += row_weights[i];
  }
  loss_part = sb_lanes_sum(loss_part, scratch, items);
  weight_part = sb_lanes_sum(weight_part, scratch, items);
  if (get_local_id(0) == 0) {
    const real divisor = is_mean ? weight_part : 1;
    loss[0] = loss_part / divisor;
    denominator[0] = divisor;
  }
}

// dlogits [rows, C] = dy / denominator * (p * sum(q) - q); it may lie over logits. dy is [1] (dy_stride 0) or [rows]
// (dy_stride 1); denominator [1] or null.
__kernel void cross_entropy_bwd(ARRAY_INPLACE(const stored, logits), ARRAY(const int, labels_i32),
                                ARRAY(const uchar, labels_u8), ARRAY(const real, probabilities),
                                ARRAY(const real, class_weight), ARRAY(const real, statistics), ARRAY(const real, dy),
                                ARRAY(const real, denominator), ARRAY_INPLACE(stored, dlogits), const long rows,
                                const long classes, const int rows_per_group, const int dy_stride,
                                const int has_ignored, const int ignored, const real smoothing) {
  START(logits);
  START(labels_i32);
  START(labels_u8);
  START(probabilities);
  START(class_weight);
  START(statistics);
  START(dy);
  START(denominator);
  START(dlogits);
  __local real scratch[CROSS_ENTROPY_MOST_ITEMS];
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long group_row = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  const bool is_row = group_row < rows;
  const long row = is_row ? group_row : 0, n = is_row ? classes : 0;
  const __global stored* x = logits + row * classes;
  const __global real* t = probabilities ? probabilities + row * classes : 0;
  const real smooth = smoothing / classes;
  const int label = probabilities ? 0 : labels_i32 ? labels_i32[row] : labels_u8[row];
  const bool is_ignored = !probabilities && has_ignored && label == ignored;
  const bool is_inside = label >= 0 && label < (int)classes;
  real q_sum = 0;
  for (long i = lane; i < n; i += lanes) q_sum += cross_entropy_q(t, class_weight, i, label, smoothing, smooth);
  q_sum = sb_lanes_sum(q_sum, scratch, lanes);
  if (!is_inside) q_sum = NAN;
  const real largest = statistics[2 * row], inverse = 1 / statistics[2 * row + 1];
  const real g = denominator ? dy[row * dy_stride] / denominator[0] : dy[row * dy_stride];
  for (long i = lane; i < n; i += lanes) {
    const real q = cross_entropy_q(t, class_weight, i, label, smoothing, smooth);
    const real p = exp(LOAD(x + i) - largest) * inverse;
    STORE(is_ignored ? (real)0 : g * FMA(p, q_sum, -q), dlogits + row * classes + i);
  }
}
