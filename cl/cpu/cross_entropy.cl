// Cross-entropy of soft-max. Letters: rows, C classes; logits [rows, C]. The target of a row is a label (labels_i32 or
// labels_u8 [rows]) or C probabilities; the other two are null. class_weight [C] or null. With w the class weights (1
// where null), s the smoothing and t the target's distribution (1 at the label), a row's weights are q[c] = w[c] * ((1
// - s) * t[c] + s / C), its loss sum(q[c] * (log(sum) - (x[c] - max))) and its gradient p[c] * sum(q) - q[c], p the
// soft-max. A row whose label is `ignored` (where has_ignored) counts nothing; a label outside [0, C) gives NaN. A
// work-group takes rows_per_group rows.
// Over 400 lines because rows of a vector, rows of many and the gradient of both share what a row's target is.
// Program: core
#define CROSS_ENTROPY_SHORT 1024  // rows up to here are taken VW at a time, so that one log does for all of them

// Whether the exponentials may wait in dlogits for their sum: not where it rounds what it holds.
#ifdef SAMEBYTES_STORE_16
#define CROSS_ENTROPY_KEEPS_EXP 0
#else
#define CROSS_ENTROPY_KEEPS_EXP 1
#endif

static inline int cross_entropy_label(const __global int* labels_i32, const __global uchar* labels_u8, const long row) {
  return labels_i32 ? labels_i32[row] : labels_u8[row];
}

// The part of a row's loss that every class has: where there are probabilities or smoothing.
static inline real cross_entropy_spread_loss(const __global stored* x, const __global real* t,
                                             const __global real* class_weight, const long classes, const long readable,
                                             const real largest, const real log_sum, const real smoothing) {
  const real smooth = smoothing / classes;
  vreal total = 0;
  for (long i = 0; i < classes;) {
    const long block_end = min(classes, i + SB_SUM_BLOCK * VW);
    vreal part = 0;
    for (; i < block_end; i += VW) {
      const long left = classes - i;
      vreal q = smooth;
      if (t) q = FMA((vreal)(1 - smoothing), sb_load(t + i, left, readable - i, 0), q);
      if (class_weight) q *= sb_load(class_weight + i, left, left, 0);
      const vreal term = q * (log_sum - (sb_load(x + i, left, readable - i, largest) - largest));
      part += left >= VW ? term : select((vreal)(0), term, SB_LANES < (vmask)((real_int)left));
    }
    total += part;
  }
  return sb_sum(total);
}

// d [C] = g * (p * sum(q) - q) of a row, which may lie over x; largest and sum are the row's statistics.
static inline void cross_entropy_row_gradient(const __global stored* x, const __global real* t,
                                              const __global real* class_weight, __global stored* d, const long classes,
                                              const long readable, const real largest, const real sum, const real g,
                                              const int label, const bool is_ignored, const real spread,
                                              const real smoothing) {
  const real smooth = smoothing / classes, inverse = 1 / sum;
  real at_label = 0, q_sum = spread;
  const bool inside = label >= 0 && label < (int)classes;
  if (t) {
    vreal total = 0;
    for (long i = 0; i < classes; i += VW) {
      vreal v = sb_load(t + i, classes - i, readable - i, 0);
      if (class_weight) v *= sb_load(class_weight + i, classes - i, classes - i, 0);
      total += v;
    }
    q_sum = FMA(1 - smoothing, sb_sum(total), spread);
  } else {
    at_label = inside ? (1 - smoothing) * (class_weight ? class_weight[label] : 1) : NAN;
    q_sum += at_label;
  }
  for (long i = 0; i < classes; i += VW) {
    const long left = classes - i;
    vreal result = 0;
    if (!is_ignored) {
      vreal q = smooth;
      if (t) q = FMA((vreal)(1 - smoothing), sb_load(t + i, left, readable - i, 0), q);
      if (class_weight) q *= sb_load(class_weight + i, left, left, 0);
      const vreal p = sb_exp_down(sb_load(x + i, left, readable - i, largest) - largest) * inverse;
      result = g * FMA(p, (vreal)(q_sum), -q);
      const int lane = inside ? (int)(label - i) : -(int)i;
      if (!t) result -= select((vreal)(0), (vreal)(g * at_label), SB_LANES == (vmask)((real_int)lane));
    }
    sb_store(result, d + i, left);
  }
}

// The sum of exp(x - largest), whose terms stay in d [C], which may lie over x; in the order of sb_row_sum_exp.
static inline real cross_entropy_keep_exp(const __global stored* x, __global stored* d, const long classes,
                                          const long readable, const real largest) {
  const long whole = classes / VW * VW;
  vreal total = 0;
  for (long i = 0; i < whole;) {
    const long end = min(whole, i + SB_SUM_BLOCK * VW);
    vreal sum = 0;
    for (; i < end; i += VW) {
      const vreal e = sb_exp_down(VLOAD(x + i) - largest);
      SB_FETCH(x + classes + i);  // the next row
      VSTORE(e, d + i);
      sum += e;
    }
    total += sum;
  }
  if (whole < classes) {
    const vreal e = sb_exp_down(sb_load_tail(x + whole, (int)(classes - whole), readable - whole, -INFINITY) - largest);
    sb_store(e, d + whole, classes - whole);
    total += e;
  }
  return sb_sum(total);
}

static inline void cross_entropy_scale(__global stored* d, const long classes, const real inverse, const real q_sum,
                                       const real g) {
  const long whole = classes / VW * VW;
  for (long i = 0; i < whole; i += VW) VSTORE(g * (VLOAD(d + i) * inverse * q_sum), d + i);
  for (long i = whole; i < classes; ++i) STORE(g * (LOAD(d + i) * inverse * q_sum), d + i);
}

// The sum of w[c] * s / C over the classes.
static inline real cross_entropy_spread(const __global real* class_weight, const long classes, const real smoothing) {
  if (!class_weight || !(smoothing > 0)) return smoothing;
  vreal total = 0;
  for (long i = 0; i < classes; i += VW) total += sb_load(class_weight + i, classes - i, classes - i, 0);
  return smoothing / classes * sb_sum(total);
}

// VW rows of up to VW classes, with labels and without smoothing, turned so that a lane is a row. Of each row: the
// label, or -1 where it is outside; the weight of the label, NaN outside and 0 where it is ignored; g. Gives the losses
// and the statistics, and where d is not null the gradient, which may lie over x. Reads and writes up to a vector
// behind the rows.
static void cross_entropy_short_rows(const __global stored* x, __global stored* d, const long classes,
                                     const int* labels, const real* weights, const real* g, real* losses,
                                     real* largest_out, real* sum_out) {
  vreal r[VW];
  real tile[VW * VW];
#pragma unroll
  for (int i = 0; i < VW; ++i) r[i] = VLOAD(x + i * classes);
  sb_transpose(r);
#pragma unroll
  for (int c = 0; c < VW; ++c) VSTORE(r[c], tile + c * VW);
  real at_label[VW], label_values[VW];
  for (int i = 0; i < VW; ++i) at_label[i] = tile[max(labels[i], 0) * VW + i];
  for (int i = 0; i < VW; ++i) label_values[i] = labels[i];
  vreal largest = VLOAD(tile), sum = 0;
  for (long c = 1; c < classes; ++c) {
    const vreal v = VLOAD(tile + c * VW);
    largest = select(largest, v, v > largest);
  }
  for (long c = 0; c < classes; ++c) {
    const vreal e = sb_exp_down(VLOAD(tile + c * VW) - largest);
    VSTORE(e, tile + c * VW);
    sum += e;
  }
  const vreal weight = VLOAD(weights);
  const vmask counts = weight != (vreal)(0);  // not ignored; of a class that weighs nothing both are 0 anyway
  VSTORE(largest, largest_out);
  VSTORE(sum, sum_out);
  VSTORE(select((vreal)(0), weight * (log(sum) - (VLOAD(at_label) - largest)), counts), losses);
  if (!d) return;
  // In the order of cross_entropy_row_gradient, so that one launch gives the bytes of two.
  const vreal scale = VLOAD(g), inverse = 1 / sum, at_target = scale * weight, label = VLOAD(label_values);
  for (long c = 0; c < classes; ++c) {
    const vreal p = VLOAD(tile + c * VW) * inverse;
    const vreal v = scale * (p * weight) - select((vreal)(0), at_target, label == (vreal)((real)c));
    VSTORE(select((vreal)(0), v, counts), tile + c * VW);
  }
#pragma unroll
  for (int c = 0; c < VW; ++c) r[c] = VLOAD(tile + c * VW);
  sb_transpose(r);
  const vreal behind = VLOAD(x + VW * classes);  // of rows that were not looked at yet
#pragma unroll
  for (int i = 0; i < VW; ++i) VSTORE(r[i], d + i * classes);
  VSTORE(behind, d + VW * classes);
}

// Rows `first` to `end`, whose elements nobody else writes: losses, row_weights and statistics, and where dlogits is
// not null the gradient, which may lie over the logits; g is dy / denominator, or dy / divisor where that is null.
static inline void cross_entropy_rows(const __global stored* logits, const __global int* labels_i32,
                                      const __global uchar* labels_u8, const __global real* probabilities,
                                      const __global real* class_weight, __global real* losses,
                                      __global real* row_weights, __global real* statistics, const __global real* dy,
                                      const __global real* denominator, __global stored* dlogits, const long first,
                                      const long end, const long classes, const int dy_stride, const real divisor,
                                      const int has_ignored, const int ignored, const real smoothing) {
  const real spread = dlogits ? cross_entropy_spread(class_weight, classes, smoothing) : 0;
  const real share = denominator ? denominator[0] : divisor;
  const bool is_plain = !probabilities && !(smoothing > 0);
  const bool is_at_once = is_plain && (CROSS_ENTROPY_KEEPS_EXP || classes <= VW);  // its gradient
  const int step = classes <= CROSS_ENTROPY_SHORT ? VW : 1;
  vreal next = 0;  // a row of at most VW classes is read before the gradient of the row in front of it is stored
  for (long begin = first; begin < end; begin += step) {
    const int count = (int)min((long)step, end - begin);
    real largest[VW], sums[VW], distances[VW], scales[VW];
    VSTORE((vreal)(1), sums);
    VSTORE((vreal)(0), distances);
    VSTORE((vreal)(0), scales);
    if (classes <= VW && is_plain && (end - begin) * classes >= VW * classes + VW) {
      int inside_labels[VW];
      real g[VW];
      for (int r = 0; r < VW; ++r) {
        const long row = begin + r;
        const int label = cross_entropy_label(labels_i32, labels_u8, row);
        const bool is_ignored = has_ignored && label == ignored, inside = label >= 0 && label < (int)classes;
        const real weight = is_ignored ? 0 : class_weight && inside ? class_weight[label] : 1;
        inside_labels[r] = inside ? label : -1;
        scales[r] = inside || is_ignored ? weight : NAN;
        g[r] = dlogits ? dy[row * dy_stride] : 0;
        row_weights[row] = weight;
      }
      VSTORE(VLOAD(g) / share, g);
      cross_entropy_short_rows(logits + begin * classes, dlogits ? dlogits + begin * classes : 0, classes,
                               inside_labels, scales, g, distances, largest, sums);
      VSTORE(VLOAD(distances), losses + begin);
      for (int r = 0; r < VW; ++r) {
        statistics[2 * (begin + r)] = largest[r];
        statistics[2 * (begin + r) + 1] = sums[r];
      }
      continue;
    }
    if (classes <= VW) next = sb_load(logits + begin * classes, (end - begin) * classes, (end - begin) * classes, 0);
    for (int r = 0; r < count; ++r) {
      const long row = begin + r, readable = (end - row) * classes;
      const __global stored* x = logits + row * classes;
      const int label = probabilities ? 0 : cross_entropy_label(labels_i32, labels_u8, row);
      const bool is_ignored = !probabilities && has_ignored && label == ignored;
      const bool inside = label >= 0 && label < (int)classes;
      const real weight = is_ignored ? 0 : !probabilities && class_weight && inside ? class_weight[label] : 1;
      const real at_label = inside ? (1 - smoothing) * weight : NAN;
      const real g = dlogits ? dy[row * dy_stride] / share : 0;
      const real x_label = inside ? LOAD(x + label) : 0;
      real row_largest, row_sum;
      if (classes <= VW) {
        const vreal v = next;
        const vmask is_class = SB_LANES < (vmask)((real_int)classes);
        row_largest = sb_max(select((vreal)(-INFINITY), v, is_class));
        const vreal e = select((vreal)(0), sb_exp_down(v - row_largest), is_class);
        row_sum = sb_sum(e);
        if (row + 1 < end) next = sb_load(x + classes, readable - classes, readable - classes, 0);
        if (dlogits && is_at_once) {
          const vreal p =
              g * (e * (1 / row_sum) * (spread + at_label)) -
              select((vreal)(0), (vreal)(g * at_label), SB_LANES == (vmask)((real_int)(inside ? label : 0)));
          const vreal result = is_ignored ? (vreal)(0) : p;
          // What lies behind the row is written as it was: the row after it, which may not have been read.
          sb_store(select(v, result, is_class), dlogits + row * classes, readable >= VW ? VW : classes);
        }
      } else {
        row_largest = sb_row_max(x, classes, readable);
        if (dlogits && is_at_once) {
          __global stored* d = dlogits + row * classes;
          row_sum = cross_entropy_keep_exp(x, d, classes, readable, row_largest);
          if (is_ignored)
            for (long i = 0; i < classes; i += VW) sb_store((vreal)(0), d + i, classes - i);
          else
            cross_entropy_scale(d, classes, 1 / row_sum, spread + at_label, g);
          d += inside ? label : 0;
          if (!is_ignored) STORE(LOAD(d) - g * at_label, d);
        } else {
          row_sum = sb_row_sum_exp(x, classes, readable, row_largest);
        }
      }
      largest[r] = row_largest;
      row_weights[row] = weight;
      statistics[2 * row] = row_largest;
      statistics[2 * row + 1] = row_sum;
      sums[r] = is_ignored ? 1 : row_sum;
      if (probabilities || is_ignored) continue;
      distances[r] = x_label - row_largest;
      scales[r] = at_label;
    }
    real logs[VW], row_losses[VW];
    const vreal log_sum = log(VLOAD(sums));
    VSTORE(log_sum, logs);
    VSTORE(VLOAD(scales) * (log_sum - VLOAD(distances)), row_losses);
    for (int r = 0; r < count; ++r) {
      const long row = begin + r, readable = (end - row) * classes;
      const __global stored* x = logits + row * classes;
      const __global real* t = probabilities ? probabilities + row * classes : 0;
      real loss = row_losses[r];
      if (!is_plain || (dlogits && !is_at_once)) {
        const int label = probabilities ? 0 : cross_entropy_label(labels_i32, labels_u8, row);
        const bool is_ignored = !probabilities && has_ignored && label == ignored;
        if (probabilities)
          loss = cross_entropy_spread_loss(x, t, class_weight, classes, readable, largest[r], logs[r], smoothing);
        else if (!is_plain && !is_ignored && label >= 0 && label < (int)classes)
          loss += cross_entropy_spread_loss(x, t, class_weight, classes, readable, largest[r], logs[r], smoothing);
        if (dlogits)
          cross_entropy_row_gradient(x, t, class_weight, dlogits + row * classes, classes, readable, largest[r],
                                     sums[r], dy[row * dy_stride] / share, label, is_ignored, spread, smoothing);
      }
      losses[row] = loss;
    }
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
  cross_entropy_rows(logits, labels_i32, labels_u8, probabilities, class_weight, losses, row_weights, statistics, dy,
                     denominator, dlogits, first, min(rows, first + rows_per_group), classes, dy_stride, divisor,
                     has_ignored, ignored, smoothing);
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
