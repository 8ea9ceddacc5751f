// Cross-entropy of soft-max. Letters: rows, C classes; logits [rows, C]. The target of a row is a label (labels_i32 or
// labels_u8 [rows]) or C probabilities; the other two are null. class_weight [C] or null. With w the class weights (1
// where null), s the smoothing and t the target's distribution (1 at the label), a row's weights are q[c] = w[c] * ((1
// - s) * t[c] + s / C), its loss sum(q[c] * (log(sum) - (x[c] - max))) and its gradient p[c] * sum(q) - q[c], p the
// soft-max. A row whose label is `ignored` (where has_ignored) counts nothing; a label outside [0, C) gives NaN. A
// work-group takes rows_per_group rows.
//
//   for VW rows of the group, or one long row:                                    cross_entropy_rows
//     few classes and plain labels: everything at once, a lane a row              cross_entropy_vector_of_rows
//     else for each row: largest and sum, and its gradient where it can be now    cross_entropy_row
//          for all of them: one log, their losses, the other gradients            cross_entropy_losses
//
// Why it is fast. A row is read while it is in the cache: its exponentials wait in the gradient for their sum, so that
// the loss and the gradient together read and write each value once or twice; and the log, which costs most for short
// rows, is taken for VW rows at a time.
// Program: core
#include "cpu/cross_entropy_row.clh"

#define CROSS_ENTROPY_SHORT 1024  // rows up to here are taken VW at a time, so that one log does for all of them

// ---- a group's rows

// What the rows of a group have in common: arrays from row 0 on, of which dlogits may lie over the logits or be null;
// how a target counts; and what a gradient is divided by.
typedef struct {
  const __global stored* logits;
  const __global int* labels_i32;
  const __global uchar* labels_u8;
  const __global real *probabilities, *class_weight, *dy;
  __global real *losses, *row_weights, *statistics;
  __global stored* dlogits;
  long end, classes;  // the row behind the group's
  int dy_stride, has_ignored, ignored;
  real smoothing, spread, share;
  bool is_plain;    // labels without smoothing
  bool is_at_once;  // a row's gradient is made while its exponentials are there
} cross_entropy_group;

// What up to VW neighbouring rows leave for their losses: largest, sum of exponentials, and the loss in parts: a scale
// and a distance of the label's logit from the largest. Gradients of such rows are not made at once.
typedef struct {
  real largest[VW], sums[VW], distances[VW], scales[VW];
} cross_entropy_block;

// The label of a row, and what it is to the loss.
typedef struct {
  int label;
  bool is_ignored, inside;
  real weight, at_label;  // what the row counts, and the label in its gradient
} cross_entropy_target;

SB_INLINE void cross_entropy_look_up(cross_entropy_target* t, const cross_entropy_group* w, const long row) {
  t->label = w->probabilities ? 0 : cross_entropy_label(w->labels_i32, w->labels_u8, row);
  t->is_ignored = !w->probabilities && w->has_ignored && t->label == w->ignored;
  t->inside = t->label >= 0 && t->label < (int)w->classes;
  t->weight = t->is_ignored ? 0 : !w->probabilities && w->class_weight && t->inside ? w->class_weight[t->label] : 1;
  t->at_label = t->inside ? (1 - w->smoothing) * t->weight : NAN;
}

// VW rows of at most VW classes at once; as many values again must be readable behind them.
SB_INLINE void cross_entropy_vector_of_rows(const cross_entropy_group* w, const long begin) {
  const long classes = w->classes;
  real largest[VW], sums[VW], distances[VW], scales[VW], g[VW];
  int inside_labels[VW];
  for (int r = 0; r < VW; ++r) {
    const long row = begin + r;
    const int label = cross_entropy_label(w->labels_i32, w->labels_u8, row);
    const bool is_ignored = w->has_ignored && label == w->ignored, inside = label >= 0 && label < (int)classes;
    const real weight = is_ignored ? 0 : w->class_weight && inside ? w->class_weight[label] : 1;
    inside_labels[r] = inside ? label : -1;
    scales[r] = inside || is_ignored ? weight : NAN;
    g[r] = w->dlogits ? w->dy[row * w->dy_stride] : 0;
    w->row_weights[row] = weight;
  }
  VSTORE(VLOAD(g) / w->share, g);
  cross_entropy_short_rows(w->logits + begin * classes, w->dlogits ? w->dlogits + begin * classes : 0, classes,
                           inside_labels, scales, g, distances, largest, sums);
  VSTORE(VLOAD(distances), w->losses + begin);
  for (int r = 0; r < VW; ++r) {
    w->statistics[2 * (begin + r)] = largest[r];
    w->statistics[2 * (begin + r) + 1] = sums[r];
  }
}

// The statistics of a row of at most VW classes, which is *next, and its gradient where it is made at once. Reads the
// row behind it before.
SB_INLINE void cross_entropy_short_row(const cross_entropy_group* w, const cross_entropy_target* t, const long row,
                                       const real g, vreal* next, real* largest, real* sum) {
  const long classes = w->classes, readable = (w->end - row) * classes;
  const vreal v = *next;
  const vmask is_class = SB_LANES < (vmask)((real_int)classes);
  *largest = sb_max(select((vreal)(-INFINITY), v, is_class));
  const vreal e = select((vreal)(0), sb_exp_down(v - *largest), is_class);
  *sum = sb_sum(e);
  if (row + 1 < w->end) *next = sb_load(w->logits + row * classes + classes, readable - classes, readable - classes, 0);
  if (w->dlogits && w->is_at_once) {
    const vreal p =
        g * (e * (1 / *sum) * (w->spread + t->at_label)) -
        select((vreal)(0), (vreal)(g * t->at_label), SB_LANES == (vmask)((real_int)(t->inside ? t->label : 0)));
    const vreal result = t->is_ignored ? (vreal)(0) : p;
    // What lies behind the row is written as it was: the row after it, which may not have been read.
    sb_store(select(v, result, is_class), w->dlogits + row * classes, readable >= VW ? VW : classes);
  }
}

// The same of a longer row.
SB_INLINE void cross_entropy_long_row(const cross_entropy_group* w, const cross_entropy_target* t, const long row,
                                      const real g, real* largest, real* sum) {
  const long classes = w->classes, readable = (w->end - row) * classes;
  const __global stored* x = w->logits + row * classes;
  *largest = sb_row_max(x, classes, readable);
  if (!w->dlogits || !w->is_at_once) {
    *sum = sb_row_sum_exp(x, classes, readable, *largest);
    return;
  }
  __global stored* d = w->dlogits + row * classes;
  *sum = cross_entropy_keep_exp(x, d, classes, readable, *largest);
  if (t->is_ignored)
    for (long i = 0; i < classes; i += VW) sb_store((vreal)(0), d + i, classes - i);
  else
    cross_entropy_scale(d, classes, 1 / *sum, w->spread + t->at_label, g);
  d += t->inside ? t->label : 0;
  if (!t->is_ignored) STORE(LOAD(d) - g * t->at_label, d);
}

// The statistics of row `begin` + r, and its gradient where it is made at once.
SB_INLINE void cross_entropy_row(const cross_entropy_group* w, const long begin, const int r, vreal* next,
                                 cross_entropy_block* block) {
  const long row = begin + r;
  cross_entropy_target t;
  cross_entropy_look_up(&t, w, row);
  const real g = w->dlogits ? w->dy[row * w->dy_stride] / w->share : 0;
  const real x_label = t.inside ? LOAD(w->logits + row * w->classes + t.label) : 0;
  real largest, sum;
  if (w->classes <= VW)
    cross_entropy_short_row(w, &t, row, g, next, &largest, &sum);
  else
    cross_entropy_long_row(w, &t, row, g, &largest, &sum);
  block->largest[r] = largest;
  w->row_weights[row] = t.weight;
  w->statistics[2 * row] = largest;
  w->statistics[2 * row + 1] = sum;
  block->sums[r] = t.is_ignored ? 1 : sum;
  if (w->probabilities || t.is_ignored) return;
  block->distances[r] = x_label - largest;
  block->scales[r] = t.at_label;
}

// The losses of `count` rows, and their gradients where these were not made at once. One log does for all of them.
SB_INLINE void cross_entropy_losses(const cross_entropy_group* w, const long begin, const int count,
                                    const cross_entropy_block* block) {
  const long classes = w->classes;
  real logs[VW], row_losses[VW];
  const vreal log_sum = sb_log(VLOAD(block->sums));
  VSTORE(log_sum, logs);
  VSTORE(VLOAD(block->scales) * (log_sum - VLOAD(block->distances)), row_losses);
  for (int r = 0; r < count; ++r) {
    const long row = begin + r, readable = (w->end - row) * classes;
    const __global stored* x = w->logits + row * classes;
    const __global real* probabilities = w->probabilities ? w->probabilities + row * classes : 0;
    real loss = row_losses[r];
    if (!w->is_plain || (w->dlogits && !w->is_at_once)) {
      const int label = probabilities ? 0 : cross_entropy_label(w->labels_i32, w->labels_u8, row);
      const bool is_ignored = !probabilities && w->has_ignored && label == w->ignored;
      const bool is_spread = !w->is_plain && !is_ignored && label >= 0 && label < (int)classes;
      if (probabilities || is_spread) {
        const real spread = cross_entropy_spread_loss(x, probabilities, w->class_weight, classes, readable,
                                                      block->largest[r], logs[r], w->smoothing);
        loss = probabilities ? spread : loss + spread;
      }
      if (w->dlogits)
        cross_entropy_row_gradient(x, probabilities, w->class_weight, w->dlogits + row * classes, classes, readable,
                                   block->largest[r], block->sums[r], w->dy[row * w->dy_stride] / w->share, label,
                                   is_ignored, w->spread, w->smoothing);
    }
    w->losses[row] = loss;
  }
}

// Rows `first` to w->end - 1, whose elements nobody else writes.
SB_APART void cross_entropy_rows(const cross_entropy_group* w, const long first) {
  const long classes = w->classes, end = w->end;
  const int step = classes <= CROSS_ENTROPY_SHORT ? VW : 1;
  vreal next = 0;  // a row of at most VW classes is read before the gradient of the row in front of it is stored
  for (long begin = first; begin < end; begin += step) {
    if (classes <= VW && w->is_plain && (end - begin) * classes >= VW * classes + VW) {
      cross_entropy_vector_of_rows(w, begin);
      continue;
    }
    const int count = (int)min((long)step, end - begin);
    cross_entropy_block block;
    VSTORE((vreal)(1), block.sums);
    VSTORE((vreal)(0), block.distances);
    VSTORE((vreal)(0), block.scales);
    if (classes <= VW) next = sb_load(w->logits + begin * classes, (end - begin) * classes, (end - begin) * classes, 0);
    for (int r = 0; r < count; ++r) cross_entropy_row(w, begin, r, &next, &block);
    cross_entropy_losses(w, begin, count, &block);
  }
}

// loss [1] = sum(losses) / denominator [1], which is sum(row_weights) where is_mean and 1 else; denominator may be
// null.
static inline void cross_entropy_add_up(const __global real* losses, const __global real* row_weights,
                                        __global real* loss, __global real* denominator, const long rows,
                                        const int is_mean) {
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
  if (denominator) denominator[0] = divisor;
}

// losses [rows]; row_weights [rows] are what a row counts in the weighted mean: w[label], 0 where ignored, 1 for
// probabilities; statistics [rows, 2] are max and sum(exp(x - max)) for cross_entropy_bwd. loss [1] and total_weight
// [1] are what cross_entropy_total gives, where one work-group has all rows; null else. dlogits [rows, C], where it is
// not null, as cross_entropy_bwd has it, with a row read once; it may lie over logits, and dy is divided by denominator
// [1] or, where that is null, by divisor.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cross_entropy_fwd(
    ARRAY_INPLACE(const stored, logits), ARRAY(const int, labels_i32), ARRAY(const uchar, labels_u8),
    ARRAY(const real, probabilities), ARRAY(const real, class_weight), ARRAY(real, losses), ARRAY(real, row_weights),
    ARRAY(real, statistics), ARRAY(real, loss), ARRAY(real, total_weight), ARRAY(const real, dy),
    ARRAY(const real, denominator), ARRAY_INPLACE(stored, dlogits), const long rows, const long classes,
    const int rows_per_group, const int is_mean, const int dy_stride, const real divisor, const int has_ignored,
    const int ignored, const real smoothing) {
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
  const long first = (long)get_group_id(0) * rows_per_group;
  const bool is_plain = !probabilities && !(smoothing > 0);
  const cross_entropy_group w = {logits,
                                 labels_i32,
                                 labels_u8,
                                 probabilities,
                                 class_weight,
                                 dy,
                                 losses,
                                 row_weights,
                                 statistics,
                                 dlogits,
                                 min(rows, first + rows_per_group),
                                 classes,
                                 dy_stride,
                                 has_ignored,
                                 ignored,
                                 smoothing,
                                 dlogits ? cross_entropy_spread(class_weight, classes, smoothing) : 0,
                                 denominator ? denominator[0] : divisor,
                                 is_plain,
                                 is_plain && (CROSS_ENTROPY_KEEPS_EXP || classes <= VW)};
  cross_entropy_rows(&w, first);
  if (loss) cross_entropy_add_up(losses, row_weights, loss, total_weight, rows, is_mean);
}

// One work-group: denominator [1] = the sum of what the rows count (row_weights of cross_entropy_fwd), before they are
// looked at.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cross_entropy_denominator(
    ARRAY(const int, labels_i32), ARRAY(const uchar, labels_u8), ARRAY(const real, class_weight),
    ARRAY(real, denominator), const long rows, const long classes, const int has_ignored, const int ignored) {
  START(labels_i32);
  START(labels_u8);
  START(class_weight);
  START(denominator);
  const bool has_labels = labels_i32 || labels_u8;
  vreal total = 0;
  for (long i = 0; i < rows;) {  // in the order of cross_entropy_total
    const long block_end = min(rows, i + SB_SUM_BLOCK * VW);
    vreal part = 0;
    for (; i < block_end; i += VW) {
      real weights[VW];
      for (int lane = 0; lane < VW; ++lane) {
        const int label = has_labels && i + lane < rows ? cross_entropy_label(labels_i32, labels_u8, i + lane) : -1;
        const bool inside = label >= 0 && label < (int)classes;
        weights[lane] = i + lane >= rows || (has_labels && has_ignored && label == ignored) ? 0
                        : class_weight && inside                                            ? class_weight[label]
                                                                                            : 1;
      }
      part += VLOAD(weights);
    }
    total += part;
  }
  denominator[0] = sb_sum(total);
}

// The loss of all rows. One work-group.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cross_entropy_total(ARRAY(const real, losses),
                                                                                 ARRAY(const real, row_weights),
                                                                                 ARRAY(real, loss),
                                                                                 ARRAY(real, denominator),
                                                                                 const long rows, const int is_mean) {
  START(losses);
  START(row_weights);
  START(loss);
  START(denominator);
  cross_entropy_add_up(losses, row_weights, loss, denominator, rows, is_mean);
}

// dlogits [rows, C] = dy / denominator * (p * sum(q) - q); it may lie over logits. dy is [1] (dy_stride 0) or [rows]
// (dy_stride 1); denominator [1] or null.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void cross_entropy_bwd(
    ARRAY_INPLACE(const stored, logits), ARRAY(const int, labels_i32), ARRAY(const uchar, labels_u8),
    ARRAY(const real, probabilities), ARRAY(const real, class_weight), ARRAY(const real, statistics),
    ARRAY(const real, dy), ARRAY(const real, denominator), ARRAY_INPLACE(stored, dlogits), const long rows,
    const long classes, const int rows_per_group, const int dy_stride, const int has_ignored, const int ignored,
    const real smoothing) {
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
  const real spread = cross_entropy_spread(class_weight, classes, smoothing);
  for (long row = first; row < end; ++row) {
    const __global real* t = probabilities ? probabilities + row * classes : 0;
    const int label = probabilities ? 0 : cross_entropy_label(labels_i32, labels_u8, row);
    const real g = denominator ? dy[row * dy_stride] / denominator[0] : dy[row * dy_stride];
    // Other work-items may already write behind `end`.
    cross_entropy_row_gradient(logits + row * classes, t, class_weight, dlogits + row * classes, classes,
                               (end - row) * classes, statistics[2 * row], statistics[2 * row + 1], g, label,
                               !probabilities && has_ignored && label == ignored, spread, smoothing);
  }
}
