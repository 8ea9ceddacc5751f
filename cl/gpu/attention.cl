// Scaled dot-product attention without a stored T x S matrix (Dao et al. 2022): the scores of a block of rows against a
// block of columns live in registers and local memory, the soft-max runs along with them, and the backward kernels
// recompute the probabilities from the log-sum-exp of each row. Letters: N batch, T queries, S keys, H heads of q, G
// heads of k and v (H a multiple of G: head h reads k and v of head h / (H / G)), D values of a head. q, y [N, T, H,
// D], k, v [N, S, G, D], lse, delta [N, H, T]; y, lse and delta are dense, the others have strides and D neighbours.
// Query i sees the keys j < lengths[n] (flag 2, else S) and, where causal (flag 1), j <= first + i. A mask (flag 4) is
// added to the scores; -infinity hides a key. A query that sees no key gives 0, its lse is +infinity and its gradients
// are 0.
//
//   for a block of columns that the rows see, ascending:
//     s [4][4] of each work-item = rows * columns'             attention_scores: both sides in local memory
//     p = what the scores become, in local memory              soft-max, or its gradient
//     acc [4][8] of each work-item += p * columns              attention_accumulate
//
// A group of 8 x 8 work-items takes ATTENTION_ROWS rows (queries, or keys in attention_bwd_kv) of one head and
// ATTENTION_SLICE values of D of the result, and walks over the columns in ascending order, ATTENTION_COLS at a time. A
// work-item holds rows ly + 8 r and columns lx + 8 c. For heads longer than a slice every slice computes the scores
// again, so that results stay in registers. Every work-item takes part in every load and barrier; what lies outside is
// zero. Each result is written by one group.
// Program: transformer
#include "shared/attention.h"

#define ATTENTION_ROWS 32
#define ATTENTION_COLS 32
#define ATTENTION_STEP 32   // values of D in local memory at a time, for scores
#define ATTENTION_PITCH 33  // odd, so that a column's values lie in different banks
#define ATTENTION_SLICE 64
#define ATTENTION_SLICE_PITCH 65
#define ATTENTION_ITEMS 64
#define ATTENTION_TILE \
  1056  // ATTENTION_ROWS x ATTENTION_PITCH; two of them hold ATTENTION_COLS x ATTENTION_SLICE_PITCH

static inline int attention_item(void) { return (int)get_local_id(1) * 8 + (int)get_local_id(0); }

// out[i][p] = src[i * stride + p] * scale, zero outside rows and depth; 32 x width values with rows of `pitch`.
static inline void attention_load(__global const stored* src, const long stride, const int rows, const int depth,
                                  const real scale, __local real* out, const int width, const int pitch) {
  for (int e = attention_item(); e < ATTENTION_COLS * width; e += ATTENTION_ITEMS) {
    const int i = e / width, p = e - i * width;
    out[i * pitch + p] = i < rows && p < depth ? LOAD(src + i * stride + p) * scale : 0;
  }
}

// s = (scale a) b' of rows of a and rows of b over all of D. Leaves with a barrier behind it.
static inline void attention_scores(__global const stored* a, const long a_stride, const int a_rows, const real scale,
                                    __global const stored* b, const long b_stride, const int b_rows, const int depth,
                                    const real b_scale, __local real* work, real s[4][4]) {
  const int lx = get_local_id(0), ly = get_local_id(1);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) s[r][c] = 0;
  }
  for (int p0 = 0; p0 < depth; p0 += ATTENTION_STEP) {
    attention_load(a + p0, a_stride, a_rows, depth - p0, scale, work, ATTENTION_STEP, ATTENTION_PITCH);
    attention_load(b + p0, b_stride, b_rows, depth - p0, b_scale, work + ATTENTION_TILE, ATTENTION_STEP,
                   ATTENTION_PITCH);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int p = 0; p < ATTENTION_STEP; ++p) {
      real av[4], bv[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) av[r] = work[(ly + 8 * r) * ATTENTION_PITCH + p];
#pragma unroll
      for (int c = 0; c < 4; ++c) bv[c] = work[ATTENTION_TILE + (lx + 8 * c) * ATTENTION_PITCH + p];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int c = 0; c < 4; ++c) s[r][c] = FMA(av[r], bv[c], s[r][c]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// Adds the values of a mask, if there is one, to the scores; from a row and from a column to the next are so many
// values.
static inline void attention_add_mask(const int flags, real s[4][4], __global const real* mask, const long row_stride,
                                      const long column_stride, const int rows, const int cols) {
  const int lx = get_local_id(0), ly = get_local_id(1);
  if ((flags & ATTENTION_MASK) == 0) return;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c)
      if (ly + 8 * r < rows && lx + 8 * c < cols)
        s[r][c] += mask[(ly + 8 * r) * row_stride + (lx + 8 * c) * column_stride];
  }
}

// acc += p [rows, cols] * tile [cols, slice], both in local memory.
static inline void attention_accumulate(__local const real* p, __local const real* tile, real acc[4][8]) {
  const int lx = get_local_id(0), ly = get_local_id(1);
  for (int c = 0; c < ATTENTION_COLS; ++c) {
    real pv[4], tv[8];
#pragma unroll
    for (int r = 0; r < 4; ++r) pv[r] = p[(ly + 8 * r) * ATTENTION_PITCH + c];
#pragma unroll
    for (int e = 0; e < 8; ++e) tv[e] = tile[c * ATTENTION_SLICE_PITCH + lx + 8 * e];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int e = 0; e < 8; ++e) acc[r][e] = FMA(pv[r], tv[e], acc[r][e]);
    }
  }
}

static inline void attention_put(real s[4][4], __local real* p) {
  const int lx = get_local_id(0), ly = get_local_id(1);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) p[(ly + 8 * r) * ATTENTION_PITCH + lx + 8 * c] = s[r][c];
  }
}

static inline void attention_clear(real acc[4][8]) {
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int e = 0; e < 8; ++e) acc[r][e] = 0;
  }
}

// Divides each row by its sum, which is 0 where the row sees nothing.
static inline void attention_divide(real acc[4][8], __local const real* sum) {
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const real total = sum[(int)get_local_id(1) + 8 * r], inverse = total == 0 ? (real)0 : 1 / total;
#pragma unroll
    for (int e = 0; e < 8; ++e) acc[r][e] *= inverse;
  }
}

// dst[row * stride + p] = acc * scale for the rows and values of D that there are.
static inline void attention_store(real acc[4][8], const int rows, const int depth, const real scale,
                                   __global stored* dst, const long stride) {
  const int lx = get_local_id(0), ly = get_local_id(1);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (ly + 8 * r < rows && lx + 8 * e < depth) STORE(acc[r][e] * scale, dst + (ly + 8 * r) * stride + lx + 8 * e);
  }
}

// y and lse. Groups: x = ceil(T / ATTENTION_ROWS) * ceil(D / ATTENTION_SLICE), slice fastest; y = H, z = N.
__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void attention_fwd(
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
  __local real work[2 * ATTENTION_TILE];
  __local real p[ATTENTION_TILE];
  __local real largest[ATTENTION_ROWS], sum[ATTENTION_ROWS], factor[ATTENTION_ROWS];
  const int lx = get_local_id(0), ly = get_local_id(1), item = attention_item();
  const int slices = (depth + ATTENTION_SLICE - 1) / ATTENTION_SLICE, block = (int)get_group_id(0) / slices;
  const int p0 = ((int)get_group_id(0) - block * slices) * ATTENTION_SLICE, width = min(ATTENTION_SLICE, depth - p0);
  const int row0 = block * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, queries - row0);
  const int head = get_group_id(1), kv_head = head / (heads / sizes.kv_heads);
  const long n = get_group_id(2);
  ATTENTION_MOVE(q, row0, head);
  ATTENTION_MOVE(k, 0, kv_head);
  ATTENTION_MOVE(v, 0, kv_head);
  y += ((n * queries + row0) * heads + head) * depth;
  lse += (n * heads + head) * queries + row0;
  const int visible = attention_visible(sizes, lengths, n);
  const int reach = attention_reach(flags, visible, first + row0 + rows);

  real s[4][4], acc[4][8];
  attention_clear(acc);
  if (item < ATTENTION_ROWS) {
    largest[item] = -INFINITY;
    sum[item] = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int col0 = 0; col0 < reach; col0 += ATTENTION_COLS) {
    const int cols = min(ATTENTION_COLS, reach - col0);
    attention_scores(q, q_view.t, rows, scale, k + col0 * k_view.t, k_view.t, cols, depth, 1, work, s);
    attention_add_mask(flags, s, ATTENTION_MASK_AT(row0, col0, head), mask_view.t, mask_view.s, rows, cols);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const long end = (flags & ATTENTION_CAUSAL) ? first + row0 + ly + 8 * r + 1 - col0 : (long)cols;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (lx + 8 * c >= cols || lx + 8 * c >= end) s[r][c] = -INFINITY;
        p[(ly + 8 * r) * ATTENTION_PITCH + lx + 8 * c] = s[r][c];
      }
    }
    attention_load(v + col0 * v_view.t + p0, v_view.t, cols, width, 1, work, ATTENTION_SLICE, ATTENTION_SLICE_PITCH);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < ATTENTION_ROWS) {
      real top = largest[item];
      for (int c = 0; c < ATTENTION_COLS; ++c) top = sb_max2(top, p[item * ATTENTION_PITCH + c]);
      factor[item] = top == -INFINITY ? (real)1 : exp(largest[item] - top);
      largest[item] = top;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const real top = largest[ly + 8 * r], f = factor[ly + 8 * r];
#pragma unroll
      for (int c = 0; c < 4; ++c)
        p[(ly + 8 * r) * ATTENTION_PITCH + lx + 8 * c] = top == -INFINITY ? (real)0 : exp(s[r][c] - top);
#pragma unroll
      for (int e = 0; e < 8; ++e) acc[r][e] *= f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < ATTENTION_ROWS) {
      real total = 0;
      for (int c = 0; c < ATTENTION_COLS; ++c) total += p[item * ATTENTION_PITCH + c];
      sum[item] = FMA(sum[item], factor[item], total);
    }
    attention_accumulate(p, work, acc);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  attention_divide(acc, sum);
  attention_store(acc, rows, width, 1, y + p0, (long)heads * depth);
  if (p0 == 0 && item < rows) lse[item] = sum[item] == 0 ? (real)INFINITY : largest[item] + log(sum[item]);
}

// dq from dy, and delta = sum over D of dy * y, which attention_bwd_kv reads. With p = exp(score - lse) and
// ds = p * (dy v' - delta): dq = scale * ds k. Groups as attention_fwd.
__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void attention_bwd_q(
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
  __local real work[2 * ATTENTION_TILE];
  __local real p[ATTENTION_TILE];
  __local real shift[ATTENTION_ROWS], mean[ATTENTION_ROWS];
  const int lx = get_local_id(0), ly = get_local_id(1), item = attention_item();
  const int slices = (depth + ATTENTION_SLICE - 1) / ATTENTION_SLICE, block = (int)get_group_id(0) / slices;
  const int p0 = ((int)get_group_id(0) - block * slices) * ATTENTION_SLICE, width = min(ATTENTION_SLICE, depth - p0);
  const int row0 = block * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, queries - row0);
  const int head = get_group_id(1), kv_head = head / (heads / sizes.kv_heads);
  const long n = get_group_id(2), y_t = (long)heads * depth;
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

#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = ly + 8 * r;
    real total = 0;
    for (int d = lx; d < depth && row < rows; d += 8)
      total = FMA(LOAD(y + row * y_t + d), LOAD(dy + row * dy_view.t + d), total);
    p[row * ATTENTION_PITCH + lx] = total;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < ATTENTION_ROWS) {
    real total = 0;
    for (int d = 0; d < 8; ++d) total += p[item * ATTENTION_PITCH + d];
    mean[item] = total;
    shift[item] = item < rows ? lse[item] : (real)INFINITY;
    if (p0 == 0 && item < rows) delta[item] = total;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  real s[4][4], g[4][4], acc[4][8];
  attention_clear(acc);
  for (int col0 = 0; col0 < reach; col0 += ATTENTION_COLS) {
    const int cols = min(ATTENTION_COLS, reach - col0);
    attention_scores(q, q_view.t, rows, scale, k + col0 * k_view.t, k_view.t, cols, depth, 1, work, s);
    attention_add_mask(flags, s, ATTENTION_MASK_AT(row0, col0, head), mask_view.t, mask_view.s, rows, cols);
    attention_scores(dy, dy_view.t, rows, 1, v + col0 * v_view.t, v_view.t, cols, depth, 1, work, g);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const long end = (flags & ATTENTION_CAUSAL) ? first + row0 + ly + 8 * r + 1 - col0 : (long)cols;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int col = lx + 8 * c;
        p[(ly + 8 * r) * ATTENTION_PITCH + col] =
            col < cols && col < end ? exp(s[r][c] - shift[ly + 8 * r]) * (g[r][c] - mean[ly + 8 * r]) : 0;
      }
    }
    attention_load(k + col0 * k_view.t + p0, k_view.t, cols, width, 1, work, ATTENTION_SLICE, ATTENTION_SLICE_PITCH);
    barrier(CLK_LOCAL_MEM_FENCE);
    attention_accumulate(p, work, acc);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  attention_store(acc, rows, width, scale, dq + p0, dq_view.t);
}

// dk and dv, summed over the heads of q that share them in ascending order: rows are keys, columns queries.
// dv = p' dy, dk = ds' (scale q). Groups: x = ceil(S / ATTENTION_ROWS) * ceil(D / ATTENTION_SLICE), slice fastest; y =
// G, z = N.
__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void attention_bwd_kv(
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
  __local real work[2 * ATTENTION_TILE];
  __local real p[ATTENTION_TILE];
  __local real shift[ATTENTION_COLS], mean[ATTENTION_COLS];
  const int lx = get_local_id(0), ly = get_local_id(1), item = attention_item();
  const int slices = (depth + ATTENTION_SLICE - 1) / ATTENTION_SLICE, block = (int)get_group_id(0) / slices;
  const int p0 = ((int)get_group_id(0) - block * slices) * ATTENTION_SLICE, width = min(ATTENTION_SLICE, depth - p0);
  const int row0 = block * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, sizes.keys - row0);
  const int kv_head = get_group_id(1), share = heads / sizes.kv_heads;
  const long n = get_group_id(2);
  ATTENTION_MOVE(k, row0, kv_head);
  ATTENTION_MOVE(v, row0, kv_head);
  ATTENTION_MOVE(dk, row0, kv_head);
  ATTENTION_MOVE(dv, row0, kv_head);
  ATTENTION_MOVE(q, 0, 0);
  ATTENTION_MOVE(dy, 0, 0);
  const int visible = attention_visible(sizes, lengths, n);
  // The first block of queries with one that sees the first key; none where the keys are padding.
  int begin = (flags & ATTENTION_CAUSAL) ? (int)clamp(row0 - first, 0L, (long)queries) : 0;
  begin = row0 < visible ? begin / ATTENTION_COLS * ATTENTION_COLS : queries;

  real s[4][4], g[4][4], acc_k[4][8], acc_v[4][8];
  attention_clear(acc_k);
  attention_clear(acc_v);
  for (int head = kv_head * share; head < (kv_head + 1) * share; ++head) {
    __global const real *lse_h = lse + (n * heads + head) * queries, *delta_h = delta + (n * heads + head) * queries;
    for (int col0 = begin; col0 < queries; col0 += ATTENTION_COLS) {
      const int cols = min(ATTENTION_COLS, queries - col0);
      __global const stored *q_at = q + col0 * q_view.t + head * q_view.h,
                            *dy_at = dy + col0 * dy_view.t + head * dy_view.h;
      if (item < ATTENTION_COLS) {
        shift[item] = item < cols ? lse_h[col0 + item] : (real)INFINITY;
        mean[item] = item < cols ? delta_h[col0 + item] : (real)0;
      }
      attention_scores(k, k_view.t, rows, 1, q_at, q_view.t, cols, depth, scale, work, s);
      attention_add_mask(flags, s, ATTENTION_MASK_AT(col0, row0, head), mask_view.s, mask_view.t, rows, cols);
      attention_scores(v, v_view.t, rows, 1, dy_at, dy_view.t, cols, depth, 1, work, g);
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = row0 + ly + 8 * r;
        const long from = (flags & ATTENTION_CAUSAL) ? row - first - col0 : 0;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int col = lx + 8 * c;
          s[r][c] = row < visible && col < cols && col >= from ? exp(s[r][c] - shift[col]) : 0;
          g[r][c] = s[r][c] == 0 ? 0 : s[r][c] * (g[r][c] - mean[col]);
          p[(ly + 8 * r) * ATTENTION_PITCH + col] = s[r][c];
        }
      }
      attention_load(dy_at + p0, dy_view.t, cols, width, 1, work, ATTENTION_SLICE, ATTENTION_SLICE_PITCH);
      barrier(CLK_LOCAL_MEM_FENCE);
      attention_accumulate(p, work, acc_v);
      barrier(CLK_LOCAL_MEM_FENCE);
      attention_put(g, p);
      attention_load(q_at + p0, q_view.t, cols, width, scale, work, ATTENTION_SLICE, ATTENTION_SLICE_PITCH);
      barrier(CLK_LOCAL_MEM_FENCE);
      attention_accumulate(p, work, acc_k);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  attention_store(acc_k, rows, width, 1, dk + p0, dk_view.t);
  attention_store(acc_v, rows, width, 1, dv + p0, dv_view.t);
}
