// Cross-entropy of soft-max. Letters: rows, C classes; logits [rows, C]. The target of a row is a label (labels_i32 or
// labels_u8 [rows]) or C probabilities; the other two are null. class_weight [C] or null. With w the class weights (1
// where null), s the smoothing and t the target's distribution (1 at the label), a row's weights are q[c] = w[c] * ((1
// - s) * t[c] + s / C), its loss sum(q[c] * (log(sum) - (x[c] - max))) and its gradient p[c] * sum(q) - q[c], p the
// soft-max. A row whose label is `ignored` (where has_ignored) counts nothing; a label outside [0, C) gives NaN. A
// work-group takes rows_per_group rows (a power of two), its items shared equally among them.
// Program: core

#define CROSS_ENTROPY_MOST_ITEMS 256

static inline real cross_entropy_q(const __global real* t, const __global real* class_weight, const long c,
                                   const int label, const real smoothing, const real smooth) {
  const real target = t ? t[c] : c == label ? (real)1 : (real)0;
  const real q = FMA(1 - smoothing, target, smooth);
  return class_weight ? q * class_weight[c] : q;
}

// loss [1] = sum(losses) / denominator [1], which is sum(row_weights) where is_mean and 1 else; denominator may be
// null. Without loss nothing is written.
static inline void cross_entropy_add_up(const __global real* losses, const __global real* row_weights,
                                        __global real* loss, __global real* denominator, const long rows,
                                        const int is_mean, __local real* scratch) {
  const int items = (int)get_local_size(0);
  real loss_part = 0, weight_part = 0;
  for (long i = (long)get_local_id(0); i < rows; i += items) {
    loss_part += losses[i];
    weight_part += row_weights[i];
  }
  loss_part = sb_lanes_sum(loss_part, scratch, items);
  weight_part = sb_lanes_sum(weight_part, scratch, items);
  if (loss && get_local_id(0) == 0) {
    const real divisor = is_mean ? weight_part : 1;
    loss[0] = loss_part / divisor;
    if (denominator) denominator[0] = divisor;
  }
}

// losses [rows]; row_weights [rows] are what a row counts in the weighted mean: w[label], 0 where ignored, 1 for
// probabilities; statistics [rows, 2] are max and sum(exp(x - max)) for cross_entropy_bwd. loss [1] and total_weight
// [1] are what cross_entropy_total gives, where one work-group has all rows; null else. dlogits [rows, C], where it is
// not null, as cross_entropy_bwd has it, with a row read once; it may lie over logits, and dy is divided by denominator
// [1] or, where that is null, by divisor.
__kernel void cross_entropy_fwd(ARRAY_INPLACE(const stored, logits), ARRAY(const int, labels_i32),
                                ARRAY(const uchar, labels_u8), ARRAY(const real, probabilities),
                                ARRAY(const real, class_weight), ARRAY(real, losses), ARRAY(real, row_weights),
                                ARRAY(real, statistics), ARRAY(real, loss), ARRAY(real, total_weight),
                                ARRAY(const real, dy), ARRAY(const real, denominator), ARRAY_INPLACE(stored, dlogits),
                                const long rows, const long classes, const int rows_per_group, const int is_mean,
                                const int dy_stride, const real divisor, const int has_ignored, const int ignored,
                                const real smoothing) {
  START(logits);
  START(labels_i32);
  START(labels_u8);
  START(probabilities);
  START(class_weight);
  START(losses);
  START(row_weights);
  START(statistics);
  START(loss);
  START(total_weight);
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
  real largest = -INFINITY;
  for (long i = lane; i < n; i += lanes) largest = sb_max2(largest, LOAD(x + i));
  largest = sb_lanes_max(largest, scratch, lanes);
  real sum = 0;
  for (long i = lane; i < n; i += lanes) sum += exp(LOAD(x + i) - largest);
  sum = sb_lanes_sum(sum, scratch, lanes);
  const real log_sum = log(sum), inverse = 1 / sum;
  const int label = probabilities ? 0 : labels_i32 ? labels_i32[row] : labels_u8[row];
  const bool is_ignored = !probabilities && has_ignored && label == ignored;
  const bool is_inside = label >= 0 && label < (int)classes;
  real own = 0, q_sum = 0;
  const bool is_spread = probabilities || (smoothing > 0 && !is_ignored);
  for (long i = lane; i < n && (is_spread || dlogits); i += lanes) {
    const real q = cross_entropy_q(t, class_weight, i, label, smoothing, smooth);
    q_sum += q;
    if (is_spread) own += q * (log_sum - (LOAD(x + i) - largest));
  }
  // Each work-item reads what it writes later, and no other's: dlogits may lie over logits.
  if (is_row && !is_spread && !is_ignored && is_inside && lane == (label & (lanes - 1)))
    own = (class_weight ? class_weight[label] : 1) * (log_sum - (LOAD(x + label) - largest));
  q_sum = sb_lanes_sum(q_sum, scratch, lanes);
  own = sb_lanes_sum(own, scratch, lanes);
  if (!is_inside) q_sum = NAN;
  const real g = dlogits ? dy[row * dy_stride] / (denominator ? denominator[0] : divisor) : 0;
  for (long i = lane; i < n && dlogits; i += lanes) {
    const real q = cross_entropy_q(t, class_weight, i, label, smoothing, smooth);
    const real p = exp(LOAD(x + i) - largest) * inverse;
    STORE(is_ignored ? 0 : g * FMA(p, q_sum, -q), dlogits + row * classes + i);
  }
  if (is_row && lane == 0) {
    losses[row] = is_ignored || is_inside ? own : NAN;
    row_weights[row] = is_ignored ? 0 : !probabilities && class_weight && is_inside ? class_weight[label] : 1;
    statistics[2 * row] = largest;
    statistics[2 * row + 1] = sum;
  }
  barrier(CLK_GLOBAL_MEM_FENCE);  // for all: PoCL 3.1 does not get on with a barrier that a condition decides
  cross_entropy_add_up(losses, row_weights, loss, total_weight, loss ? rows : 0, is_mean, scratch);
}

// One work-group: denominator [1] = the sum of what the rows count (row_weights of cross_entropy_fwd), before they are
// looked at.
__kernel void cross_entropy_denominator(ARRAY(const int, labels_i32), ARRAY(const uchar, labels_u8),
                                        ARRAY(const real, class_weight), ARRAY(real, denominator), const long rows,
                                        const long classes, const int has_ignored, const int ignored) {
  START(labels_i32);
  START(labels_u8);
  START(class_weight);
  START(denominator);
  __local real scratch[CROSS_ENTROPY_MOST_ITEMS];
  const int items = (int)get_local_size(0);
  const bool has_labels = labels_i32 || labels_u8;
  real part = 0;
  for (long i = (long)get_local_id(0); i < rows; i += items) {
    const int label = !has_labels ? -1 : labels_i32 ? labels_i32[i] : labels_u8[i];
    const bool is_inside = label >= 0 && label < (int)classes;
    if (!(has_labels && has_ignored && label == ignored))
      part += class_weight && is_inside ? class_weight[label] : (real)1;
  }
  part = sb_lanes_sum(part, scratch, items);
  if (get_local_id(0) == 0) denominator[0] = part;
}

// The loss of all rows. One work-group.
__kernel void cross_entropy_total(ARRAY(const real, losses), ARRAY(const real, row_weights), ARRAY(real, loss),
                                  ARRAY(real, denominator), const long rows, const int is_mean) {
  START(losses);
  START(row_weights);
  START(loss);
  START(denominator);
  __local real scratch[CROSS_ENTROPY_MOST_ITEMS];
  cross_entropy_add_up(losses, row_weights, loss, denominator, rows, is_mean, scratch);
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
    STORE(is_ignored ? 0 : g * FMA(p, q_sum, -q), dlogits + row * classes + i);
  }
}
