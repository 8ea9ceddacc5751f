// Soft-max and its logarithm over the last axis. All arrays are dense [rows, columns]; a work-group takes
// rows_per_group rows. The largest element is taken off first, so nothing overflows; sums are added up in blocks of
// SB_SUM_BLOCK vectors.

// dst = exp(src - max) / sum(exp(src - max)), or where is_log: src - max - log(sum(exp(src - max))).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void softmax_fwd(ARRAY(const real, src), ARRAY(real, dst),
                                                                         const long rows, const long columns,
                                                                         const int rows_per_group, const int is_log) {
  START(src);
  START(dst);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  for (long row = first; row < end; ++row) {
    const __global real* x = src + row * columns;
    __global real* y = dst + row * columns;
    const long readable = (rows - row) * columns;
    const real largest = sb_row_max(x, columns, readable);
    if (is_log) {
      const real log_sum = log(sb_row_sum_exp(x, columns, readable, largest));
      for (long i = 0; i < columns; i += VW)
        sb_store(sb_load(x + i, columns - i, readable - i, 0) - largest - log_sum, y + i, columns - i);
    } else {
      vreal total = 0;
      for (long i = 0; i < columns;) {
        const long block_end = min(columns, i + SB_SUM_BLOCK * VW);
        vreal sum = 0;
        for (; i < block_end; i += VW) {
          const vreal e = exp(sb_load(x + i, columns - i, readable - i, -INFINITY) - largest);
          sb_store(e, y + i, columns - i);
          sum += e;
        }
        total += sum;
      }
      const real scale = 1 / sb_sum(total);
      for (long i = 0; i < columns; i += VW)
        sb_store(sb_load(y + i, columns - i, columns - i, 0) * scale, y + i, columns - i);
    }
  }
}

// The gradient of src from dst and the gradient dy of dst: dst * (dy - sum(dy * dst)), or where is_log: dy - exp(dst) *
// sum(dy).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void softmax_bwd(ARRAY(const real, dst), ARRAY(const real, dy),
                                                                         ARRAY(real, dx), const long rows,
                                                                         const long columns, const int rows_per_group,
                                                                         const int is_log) {
  START(dst);
  START(dy);
  START(dx);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  for (long row = first; row < end; ++row) {
    const __global real *y = dst + row * columns, *g = dy + row * columns;
    __global real* d = dx + row * columns;
    const long readable = (rows - row) * columns;
    vreal total = 0;
    for (long i = 0; i < columns;) {
      const long block_end = min(columns, i + SB_SUM_BLOCK * VW);
      vreal sum = 0;
      for (; i < block_end; i += VW) {
        const vreal v = sb_load(g + i, columns - i, readable - i, 0);
        sum = is_log ? sum + v : FMA(v, sb_load(y + i, columns - i, readable - i, 0), sum);
      }
      total += sum;
    }
    const vreal all = sb_sum(total);
    for (long i = 0; i < columns; i += VW) {
      const vreal v = sb_load(g + i, columns - i, readable - i, 0), p = sb_load(y + i, columns - i, readable - i, 0);
      sb_store(is_log ? FMA(-exp(p), all, v) : p * (v - all), d + i, columns - i);
    }
  }
}
