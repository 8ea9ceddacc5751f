// Scaled dot-product attention without a stored T x S matrix (Dao et al. 2022): the scores of a block of rows against a
// block of columns live in private memory, the soft-max runs along with them, and the backward kernels recompute the
// probabilities from the log-sum-exp of each row. Letters: N batch, T queries, S keys, H heads of q, G heads of k and v
// (H a multiple of G: head h reads k and v of head h / (H / G)), D values of a head.
// q, y [N, T, H, D], k, v [N, S, G, D], lse, delta [N, H, T]; y, lse and delta are dense, the others have strides and
// D neighbours. Query i sees the keys j < lengths[n] (flag 2, else S) and, where causal (flag 1), j <= first + i. A
// mask (flag 4) is added to the scores; -infinity hides a key. A query that sees no key gives 0, its lse is +infinity
// and its gradients are 0.
//
//   for a head that reads the group's:                         (one, but in attention_bwd_kv)
//     for a block of columns that the rows see, ascending:
//       for a part of D:  scores += rows * columns'            attention_scores
//       scores -> probabilities, or what they give on          attention_softmax, attention_*_slopes
//       for a part of D:  result += scores * columns           attention_product
//
// Why it is fast. A group takes ATTENTION_ROWS rows (queries, or keys in attention_bwd_kv) of one head and walks over
// the columns in ascending order, ATTENTION_COLS at a time. All products are C += A * B of private tiles with rows of
// ATTENTION_DEPTH values: A is read row by row as broadcasts, B as vectors, in register tiles of ATTENTION_MR rows x
// two vectors. A longer head is walked in parts of ATTENTION_DEPTH; its result then lies in its array between the
// blocks of columns, which therefore is no 16-bit array. Each result is written by one group, sums do not depend on the
// number of threads.
// Program: transformer
#include "cpu/attention_tile.clh"

// y and lse. Groups: x = ceil(T / ATTENTION_ROWS), y = H, z = N.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_fwd(
    ARRAY(const stored, q), ARRAY(const stored, k), ARRAY(const stored, v), ARRAY(const real, mask),
    ARRAY(const int, lengths), ARRAY(stored, y), ARRAY(real, lse), const attention_view q_view,
    const attention_view k_view, const attention_view v_view, const attention_mask_view mask_view,
    const attention_sizes sizes, const real scale, const long first) {
  START(q);
  START(k);
  START(v);
  START(lengths);
  START(y);
  START(lse);
  const int queries = sizes.queries, heads = sizes.heads, depth = sizes.depth, flags = sizes.flags;
  const int row0 = (int)get_group_id(0) * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, queries - row0);
  const int head = get_group_id(1), kv_head = head / (heads / sizes.kv_heads);
  const long n = get_group_id(2);
  ATTENTION_MOVE(q, row0, head);
  ATTENTION_MOVE(k, 0, kv_head);
  ATTENTION_MOVE(v, 0, kv_head);
  const long y_t = (long)heads * depth;
  y += (n * queries + row0) * y_t + (long)head * depth;
  lse += (n * heads + head) * queries + row0;
  const int visible = attention_visible(sizes, lengths, n);
  const int reach = attention_reach(flags, visible, first + row0 + rows);
  const int parts = (depth + ATTENTION_DEPTH - 1) / ATTENTION_DEPTH;

  real a[ATTENTION_TILE], b[ATTENTION_TILE], s[ATTENTION_TILE], acc[ATTENTION_TILE];
  real largest[ATTENTION_ROWS], sum[ATTENTION_ROWS], factor[ATTENTION_ROWS];
  attention_clear(acc, 0, rows, min(depth, ATTENTION_DEPTH));
  attention_clear(s, rows, rows, ATTENTION_COLS);
  for (int i = 0; i < ATTENTION_ROWS; ++i) {
    largest[i] = -INFINITY;
    sum[i] = 0;
  }
  if (parts == 1) attention_rows(q, q_view.t, rows, depth, ATTENTION_EARLY(scale), a);
  for (int col0 = 0; col0 < reach; col0 += ATTENTION_COLS) {
    const int cols = min(ATTENTION_COLS, reach - col0);
    const int high = (flags & ATTENTION_CAUSAL) ? (int)min(first + row0 - col0, (long)ATTENTION_ANY) : ATTENTION_ANY;
    for (int part = 0; part < parts; ++part) {
      const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
      if (parts > 1) attention_rows(q + p0, q_view.t, rows, width, ATTENTION_EARLY(scale), a);
      attention_columns(k + col0 * k_view.t + p0, k_view.t, cols, width, 1, b);
      attention_scores(a, b, s, rows, cols, width, part > 0, -ATTENTION_ANY, high, ATTENTION_LATE(scale));
    }
    attention_add_mask(flags, s, ATTENTION_MASK_AT(row0, col0, head), mask_view.t, mask_view.s, rows, cols);
    attention_softmax(s, rows, cols, high, largest, sum, factor);
    attention_narrow(s, rows, cols);
    for (int part = 0; part < parts; ++part) {
      const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
      attention_lines(v + col0 * v_view.t + p0, v_view.t, cols, width, 1, b);
      if (parts > 1) attention_resume(col0 == 0, y + p0, y_t, rows, width, acc);
      for (int i = 0; i < rows && col0 > 0; ++i) {
        if (factor[i] == 1) continue;
        for (int p = 0; p < width; p += VW)
          VSTORE(VLOAD(acc + i * ATTENTION_DEPTH + p) * factor[i], acc + i * ATTENTION_DEPTH + p);
      }
      attention_product(s, b, acc, rows, width, cols, -ATTENTION_ANY, high);
      if (parts > 1) attention_store(acc, rows, width, 1, y + p0, y_t);
    }
  }
  for (int i = 0; i < rows; i += VW) {
    const vreal total = VLOAD(sum + i);
    const vmask is_empty = total == (vreal)(0);
    sb_store(select(VLOAD(largest + i) + log(total), (vreal)(INFINITY), is_empty), lse + i, rows - i);
    VSTORE(select(1 / total, (vreal)(0), is_empty), factor + i);
  }
  for (int part = 0; part < parts; ++part) {
    const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
    if (parts > 1 && reach > 0) attention_fetch(y + p0, y_t, rows, width, acc);
    for (int i = 0; i < rows; ++i)
      attention_store(acc + i * ATTENTION_DEPTH, 1, width, factor[i], y + i * y_t + p0, y_t);
  }
}

// dq from dy, and delta = sum over D of dy * y, which attention_bwd_kv reads. With p = exp(score - lse) and
// ds = p * (dy v' - delta): dq = scale * ds k. Groups: x = ceil(T / ATTENTION_ROWS), y = H, z = N.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_bwd_q(
    ARRAY(const stored, q), ARRAY(const stored, k), ARRAY(const stored, v), ARRAY(const real, mask),
    ARRAY(const int, lengths), ARRAY(const stored, y), ARRAY(const stored, dy), ARRAY(const real, lse),
    ARRAY(real, delta), ARRAY(stored, dq), const attention_view q_view, const attention_view k_view,
    const attention_view v_view, const attention_view dy_view, const attention_view dq_view,
    const attention_mask_view mask_view, const attention_sizes sizes, const real scale, const long first) {
  START(q);
  START(k);
  START(v);
  START(lengths);
  START(y);
  START(dy);
  START(lse);
  START(delta);
  START(dq);
  const int queries = sizes.queries, heads = sizes.heads, depth = sizes.depth, flags = sizes.flags;
  const int row0 = (int)get_group_id(0) * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, queries - row0);
  const int head = get_group_id(1), kv_head = head / (heads / sizes.kv_heads);
  const long n = get_group_id(2);
  ATTENTION_MOVE(q, row0, head);
  ATTENTION_MOVE(k, 0, kv_head);
  ATTENTION_MOVE(v, 0, kv_head);
  ATTENTION_MOVE(dy, row0, head);
  ATTENTION_MOVE(dq, row0, head);
  y += ((n * queries + row0) * heads + head) * depth;
  lse += (n * heads + head) * queries + row0;
  delta += (n * heads + head) * queries + row0;
  const int visible = attention_visible(sizes, lengths, n);
  const int reach = attention_reach(flags, visible, first + row0 + rows);
  const int parts = (depth + ATTENTION_DEPTH - 1) / ATTENTION_DEPTH;

  real a[ATTENTION_TILE], g[ATTENTION_TILE], b[ATTENTION_TILE], s[ATTENTION_TILE], ds[ATTENTION_TILE],
      acc[ATTENTION_TILE];
  real shift[ATTENTION_ROWS];
  attention_delta(y, (long)heads * depth, dy, dy_view.t, rows, depth, shift, delta);
  attention_clear(acc, 0, rows, min(depth, ATTENTION_DEPTH));
  attention_clear(s, rows, rows, ATTENTION_COLS);
  attention_clear(ds, rows, rows, ATTENTION_COLS);
  const attention_pair side = {q, dy, q_view.t, dy_view.t, scale};
  if (parts == 1) attention_pair_rows(&side, rows, 0, depth, a, g);
  for (int col0 = 0; col0 < reach; col0 += ATTENTION_COLS) {
    const int cols = min(ATTENTION_COLS, reach - col0);
    const int high = (flags & ATTENTION_CAUSAL) ? (int)min(first + row0 - col0, (long)ATTENTION_ANY) : ATTENTION_ANY;
    const attention_pair columns = {k + col0 * k_view.t, v + col0 * v_view.t, k_view.t, v_view.t, 1};
    attention_score_both(&side, &columns, rows, cols, depth, -ATTENTION_ANY, high, a, g, b, s, ds);
    attention_add_mask(flags, s, ATTENTION_MASK_AT(row0, col0, head), mask_view.t, mask_view.s, rows, cols);
    attention_query_slopes(s, ds, rows, cols, high, lse, shift);
    attention_narrow(ds, rows, cols);
    for (int part = 0; part < parts; ++part) {
      const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
      attention_lines(k + col0 * k_view.t + p0, k_view.t, cols, width, 1, b);
      if (parts > 1) attention_resume(col0 == 0, dq + p0, dq_view.t, rows, width, acc);
      attention_product(ds, b, acc, rows, width, cols, -ATTENTION_ANY, high);
      if (parts > 1) attention_store(acc, rows, width, 1, dq + p0, dq_view.t);
    }
  }
  for (int part = 0; part < parts; ++part) {
    const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
    if (parts > 1 && reach > 0) attention_fetch(dq + p0, dq_view.t, rows, width, acc);
    attention_store(acc, rows, width, scale, dq + p0, dq_view.t);
  }
}

// dk and dv, summed over the heads of q that share them in ascending order: rows are keys, columns queries.
// dv = p' dy, dk = ds' (scale q). Groups: x = ceil(S / ATTENTION_ROWS), y = G, z = N.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_bwd_kv(
    ARRAY(const stored, q), ARRAY(const stored, k), ARRAY(const stored, v), ARRAY(const real, mask),
    ARRAY(const int, lengths), ARRAY(const stored, dy), ARRAY(const real, lse), ARRAY(const real, delta),
    ARRAY(stored, dk), ARRAY(stored, dv), const attention_view q_view, const attention_view k_view,
    const attention_view v_view, const attention_view dy_view, const attention_view dk_view,
    const attention_view dv_view, const attention_mask_view mask_view, const attention_sizes sizes, const real scale,
    const long first) {
  START(q);
  START(k);
  START(v);
  START(lengths);
  START(dy);
  START(lse);
  START(delta);
  START(dk);
  START(dv);
  const int queries = sizes.queries, heads = sizes.heads, depth = sizes.depth, flags = sizes.flags;
  const int row0 = (int)get_group_id(0) * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, sizes.keys - row0);
  const int kv_head = get_group_id(1), share = heads / sizes.kv_heads;
  const long n = get_group_id(2);
  ATTENTION_MOVE(k, row0, kv_head);
  ATTENTION_MOVE(v, row0, kv_head);
  ATTENTION_MOVE(dk, row0, kv_head);
  ATTENTION_MOVE(dv, row0, kv_head);
  ATTENTION_MOVE(q, 0, 0);
  ATTENTION_MOVE(dy, 0, 0);
  const int visible = attention_visible(sizes, lengths, n);
  const int parts = (depth + ATTENTION_DEPTH - 1) / ATTENTION_DEPTH;
  // The first block of queries with one that sees the first key; none where the keys are padding.
  int begin = (flags & ATTENTION_CAUSAL) ? (int)clamp(row0 - first, 0L, (long)queries) : 0;
  begin = row0 < visible ? begin / ATTENTION_COLS * ATTENTION_COLS : queries;

  real a[ATTENTION_TILE], g[ATTENTION_TILE], b[ATTENTION_TILE], s[ATTENTION_TILE], ds[ATTENTION_TILE],
      acc_k[ATTENTION_TILE], acc_v[ATTENTION_TILE];
  real shift[ATTENTION_COLS], mean[ATTENTION_COLS];
  attention_clear(acc_k, 0, rows, min(depth, ATTENTION_DEPTH));
  attention_clear(acc_v, 0, rows, min(depth, ATTENTION_DEPTH));
  attention_clear(s, rows, rows, ATTENTION_COLS);
  attention_clear(ds, rows, rows, ATTENTION_COLS);
  const attention_pair side = {k, v, k_view.t, v_view.t, 1};
  if (parts == 1) attention_pair_rows(&side, rows, 0, depth, a, g);
  int is_fresh = 1;  // nothing was written to dk and dv yet
  for (int head = kv_head * share; head < (kv_head + 1) * share; ++head) {
    __global const real *lse_h = lse + (n * heads + head) * queries, *delta_h = delta + (n * heads + head) * queries;
    for (int col0 = begin; col0 < queries; col0 += ATTENTION_COLS) {
      const int cols = min(ATTENTION_COLS, queries - col0);
      const int low = (flags & ATTENTION_CAUSAL) ? (int)max(row0 - first - col0, (long)-ATTENTION_ANY) : -ATTENTION_ANY;
      __global const stored *q_at = q + col0 * q_view.t + head * q_view.h,
                            *dy_at = dy + col0 * dy_view.t + head * dy_view.h;
      attention_column_terms(lse_h + col0, delta_h + col0, cols, shift, mean);
      const attention_pair columns = {q_at, dy_at, q_view.t, dy_view.t, scale};
      attention_score_both(&side, &columns, rows, cols, depth, low, ATTENTION_ANY, a, g, b, s, ds);
      attention_add_mask(flags, s, ATTENTION_MASK_AT(col0, row0, head), mask_view.s, mask_view.t, rows, cols);
      attention_key_slopes(s, ds, rows, cols, low, visible - row0, shift, mean);
      attention_narrow(s, rows, cols);
      attention_narrow(ds, rows, cols);
      for (int part = 0; part < parts; ++part) {
        const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
        if (parts > 1) {
          attention_resume(is_fresh, dk + p0, dk_view.t, rows, width, acc_k);
          attention_resume(is_fresh, dv + p0, dv_view.t, rows, width, acc_v);
        }
        attention_lines(dy_at + p0, dy_view.t, cols, width, 1, b);
        attention_product(s, b, acc_v, rows, width, cols, low, ATTENTION_ANY);
        attention_lines(q_at + p0, q_view.t, cols, width, ATTENTION_EARLY(scale), b);
        attention_product(ds, b, acc_k, rows, width, cols, low, ATTENTION_ANY);
        if (parts > 1) {
          attention_store(acc_k, rows, width, 1, dk + p0, dk_view.t);
          attention_store(acc_v, rows, width, 1, dv + p0, dv_view.t);
        }
      }
      is_fresh = 0;
    }
  }
  for (int part = 0; part < parts && (parts == 1 || is_fresh); ++part) {
    const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
    attention_store(acc_k, rows, width, ATTENTION_LATE(scale), dk + p0, dk_view.t);
    attention_store(acc_v, rows, width, 1, dv + p0, dv_view.t);
  }
}
