// Soft-max and its logarithm over the last axis. All arrays are dense [rows, columns]; a work-group takes
// rows_per_group rows. The largest element is taken off first, so nothing overflows; sums are added up in blocks of
// SB_SUM_BLOCK vectors.

// A row of one vector; room is how many elements from y on this work-item writes, now or later.
static inline void softmax_short_row(const __global stored* x, __global stored* y, const long columns,
                                     const long readable, const long room, const int is_log) {
  const vreal v = sb_load(x, columns, readable, -INFINITY);
  const vreal shifted = v - sb_max(v), e = exp(shifted);
  const real sum = sb_sum(e);
  sb_store(is_log ? shifted - log(sum) : e * (1 / sum), y, room >= VW ? VW : columns);
}

// dst = exp(src - max) / sum(exp(src - max)), or where is_log: src - max - log(sum(exp(src - max))).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void softmax_fwd(ARRAY(const stored, src), ARRAY(stored, dst),
                                                                         const long rows, const long columns,
                                                                         const int rows_per_group, const int is_log) {
  START(src);
  START(dst);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  for (long row = first; row < end; ++row) {
    const __global stored* x = src + row * columns;
    __global stored* y = dst + row * columns;
    const long readable = (rows - row) * columns, whole = columns / VW * VW;
    if (columns <= VW) {
      softmax_short_row(x, y, columns, readable, (end - row) * columns, is_log);
      continue;
    }
    const real largest = sb_row_max(x, columns, readable);
    if (is_log) {
      const real log_sum = log(sb_row_sum_exp(x, columns, readable, largest));
      for (long i = 0; i < whole; i += VW) VSTORE(VLOAD(x + i) - largest - log_sum, y + i);
      if (whole < columns)
        sb_store(sb_load(x + whole, columns - whole, readable - whole, 0) - largest - log_sum, y + whole,
                 columns - whole);
    } else {
#ifdef SAMEBYTES_STORE_16  // what lies in dst is rounded already
      const real scale = 1 / sb_row_sum_exp(x, columns, readable, largest);
      for (long i = 0; i < whole; i += VW) VSTORE(exp(VLOAD(x + i) - largest) * scale, y + i);
      if (whole < columns)
        sb_store(exp(sb_load(x + whole, columns - whole, readable - whole, 0) - largest) * scale, y + whole,
                 columns - whole);
#else
      vreal total = 0;
      for (long i = 0; i < whole;) {
        const long block_end = min(whole, i + SB_SUM_BLOCK * VW);
        vreal sum = 0;
        for (; i < block_end; i += VW) {
          const vreal e = exp(VLOAD(x + i) - largest);
          VSTORE(e, y + i);
          sum += e;
        }
        total += sum;
      }
      const long left = columns - whole;
      vreal tail = 0;
      if (left > 0) tail = exp(sb_load(x + whole, left, readable - whole, -INFINITY) - largest);
      const real scale = 1 / sb_sum(total + tail);
      for (long i = 0; i < whole; i += VW) VSTORE(VLOAD(y + i) * scale, y + i);
      if (left > 0) sb_store(tail * scale, y + whole, left);
#endif
    }
  }
}

// The gradient of src from dst and the gradient dy of dst: dst * (dy - sum(dy * dst)), or where is_log: dy - exp(dst) *
// sum(dy).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void softmax_bwd(ARRAY(const stored, dst),
                                                                         ARRAY(const stored, dy), ARRAY(stored, dx),
                                                                         const long rows, const long columns,
                                                                         const int rows_per_group, const int is_log) {
  START(dst);
  START(dy);
  START(dx);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  for (long row = first; row < end; ++row) {
    const __global stored *y = dst + row * columns, *g = dy + row * columns;
    __global stored* d = dx + row * columns;
    const long readable = (rows - row) * columns, whole = columns / VW * VW, left = columns - whole;
    vreal total = 0, g_tail = 0, y_tail = 0;
    for (long i = 0; i < whole;) {
      const long block_end = min(whole, i + SB_SUM_BLOCK * VW);
      vreal sum = 0;
      if (is_log) {
        for (; i < block_end; i += VW) sum += VLOAD(g + i);
      } else {
        for (; i < block_end; i += VW) sum = FMA(VLOAD(g + i), VLOAD(y + i), sum);
      }
      total += sum;
    }
    if (left > 0) {
      g_tail = sb_load(g + whole, left, readable - whole, 0);
      y_tail = sb_load(y + whole, left, readable - whole, 0);
      total += is_log ? g_tail : g_tail * y_tail;
    }
    const vreal all = sb_sum(total);
    if (is_log) {
      for (long i = 0; i < whole; i += VW) VSTORE(FMA(-exp(VLOAD(y + i)), all, VLOAD(g + i)), d + i);
    } else {
      for (long i = 0; i < whole; i += VW) VSTORE(VLOAD(y + i) * (VLOAD(g + i) - all), d + i);
    }
    if (left > 0)
      sb_store(is_log ? FMA(-exp(y_tail), all, g_tail) : y_tail * (g_tail - all), d + whole,
               (end - row) * columns - whole >= VW ? VW : left);
  }
}
