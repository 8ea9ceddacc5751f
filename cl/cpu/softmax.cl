// Soft-max and its logarithm over the last axis. All arrays are dense [rows, columns]; a work-group takes
// rows_per_group rows. The largest element is taken off first, so nothing overflows; sums are added up in blocks of
// SB_SUM_BLOCK vectors.
// Program: core

// A row of one vector; room is how many elements from y on this work-item writes, now or later.
static inline void softmax_short_row(const __global stored* x, __global stored* y, const long columns,
                                     const long readable, const long room, const int is_log) {
  const vreal v = sb_load(x, columns, readable, -INFINITY);
  const vreal shifted = v - sb_max(v), e = sb_exp_down(shifted);
  const real sum = sb_sum(e);
  sb_store(is_log ? shifted - sb_log_of(sum) : e * (1 / sum), y, room >= VW ? VW : columns);
}

// The same for VW rows at a time, turned so that a lane is a row: nothing is added up over lanes, and no lane of an
// exponential is in vain. Reads and writes up to a vector behind the rows.
static void softmax_short_rows(const __global stored* x, __global stored* y, const long columns, const int is_log) {
  vreal r[VW];
  real tile[VW * VW];
#pragma unroll
  for (int i = 0; i < VW; ++i) r[i] = VLOAD(x + i * columns);
  sb_transpose(r);
#pragma unroll
  for (int c = 0; c < VW; ++c) VSTORE(r[c], tile + c * VW);
  vreal largest = VLOAD(tile), sum = 0;
  for (long c = 1; c < columns; ++c) {
    const vreal v = VLOAD(tile + c * VW);
    largest = select(largest, v, v > largest);
  }
  for (long c = 0; c < columns; ++c) {
    const vreal shifted = VLOAD(tile + c * VW) - largest, e = sb_exp_down(shifted);
    VSTORE(is_log ? shifted : e, tile + c * VW);
    sum += e;
  }
  if (is_log) {
    const vreal log_sum = sb_log(sum);
    for (long c = 0; c < columns; ++c) VSTORE(VLOAD(tile + c * VW) - log_sum, tile + c * VW);
  } else {
    const vreal scale = 1 / sum;
    for (long c = 0; c < columns; ++c) VSTORE(VLOAD(tile + c * VW) * scale, tile + c * VW);
  }
#pragma unroll
  for (int c = 0; c < VW; ++c) r[c] = VLOAD(tile + c * VW);
  sb_transpose(r);
#pragma unroll
  for (int i = 0; i < VW; ++i) VSTORE(r[i], y + i * columns);
}

// softmax_bwd for VW rows at a time; their sums are taken together. Reads and writes up to a vector behind the rows.
static void softmax_short_gradients(const __global stored* y, const __global stored* g, __global stored* d,
                                    const long columns, const int is_log) {
  const vmask is_column = SB_LANES < (vmask)((real_int)columns);
  vreal r[VW];
  real sums[VW];
#pragma unroll
  for (int i = 0; i < VW; ++i) {
    const vreal term = is_log ? VLOAD(g + i * columns) : VLOAD(g + i * columns) * VLOAD(y + i * columns);
    r[i] = select((vreal)(0), term, is_column);
  }
  sb_transpose(r);
#pragma unroll
  for (int step = VW / 2; step > 0; step /= 2) {
#pragma unroll
    for (int c = 0; c < step; ++c) r[c] += r[c + step];
  }
  VSTORE(r[0], sums);
  for (int i = 0; i < VW; ++i, y += columns, g += columns, d += columns)
    VSTORE(is_log ? FMA(-sb_exp(VLOAD(y)), (vreal)(sums[i]), VLOAD(g)) : VLOAD(y) * (VLOAD(g) - sums[i]), d);
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
    if (columns <= VW && (end - row) * columns >= VW * columns + VW) {
      softmax_short_rows(x, y, columns, is_log);
      row += VW - 1;
      continue;
    }
    if (columns <= VW) {
      softmax_short_row(x, y, columns, readable, (end - row) * columns, is_log);
      continue;
    }
    const real largest = sb_row_max(x, columns, readable);
    if (is_log) {
      const real log_sum = sb_log_of(sb_row_sum_exp(x, columns, readable, largest));
      for (long i = 0; i < whole; i += VW) VSTORE(VLOAD(x + i) - largest - log_sum, y + i);
      if (whole < columns)
        sb_store(sb_load(x + whole, columns - whole, readable - whole, 0) - largest - log_sum, y + whole,
                 columns - whole);
    } else {
#ifdef SAMEBYTES_STORE_16  // what lies in dst is rounded already
      const real scale = 1 / sb_row_sum_exp(x, columns, readable, largest);
      for (long i = 0; i < whole; i += VW) VSTORE(sb_exp(VLOAD(x + i) - largest) * scale, y + i);
      if (whole < columns)
        sb_store(sb_exp(sb_load(x + whole, columns - whole, readable - whole, 0) - largest) * scale, y + whole,
                 columns - whole);
#else
      vreal total = 0;
      for (long i = 0; i < whole;) {
        const long block_end = min(whole, i + SB_SUM_BLOCK * VW);
        vreal sum = 0;
        for (; i < block_end; i += VW) {
          const vreal e = sb_exp_down(VLOAD(x + i) - largest);
          SB_FETCH(x + columns + i);  // the next row
          VSTORE(e, y + i);
          sum += e;
        }
        total += sum;
      }
      const long left = columns - whole;
      vreal tail = 0;
      if (left > 0) tail = sb_exp_down(sb_load(x + whole, left, readable - whole, -INFINITY) - largest);
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
    if (columns <= VW && (end - row) * columns >= VW * columns + VW) {
      softmax_short_gradients(y, g, d, columns, is_log);
      row += VW - 1;
      continue;
    }
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
      for (long i = 0; i < whole; i += VW) VSTORE(FMA(-sb_exp(VLOAD(y + i)), all, VLOAD(g + i)), d + i);
    } else {
      for (long i = 0; i < whole; i += VW) VSTORE(VLOAD(y + i) * (VLOAD(g + i) - all), d + i);
    }
    if (left > 0)
      sb_store(is_log ? FMA(-sb_exp(y_tail), all, g_tail) : y_tail * (g_tail - all), d + whole,
               (end - row) * columns - whole >= VW ? VW : left);
  }
}
