// Scaled dot-product attention without a stored T x S matrix (Dao et al. 2022): the scores of a block of rows against a
// block of columns live in private memory, the soft-max runs along with them, and the backward kernels recompute the
// probabilities from the log-sum-exp of each row. Letters: N batch, T queries, S keys, H heads of q, G heads of k and v
// (H a multiple of G: head h reads k and v of head h / (H / G)), D values of a head.
// q, y [N, T, H, D], k, v [N, S, G, D], lse, delta [N, H, T]; y, lse and delta are dense, the others have strides and
// D neighbours. Query i sees the keys j < lengths[n] (flag 2, else S) and, where causal (flag 1), j <= first + i. A
// query that sees no key gives 0, its lse is +infinity and its gradients are 0.
//
// A group takes ATTENTION_ROWS rows (queries, or keys in attention_bwd_kv) of one head and walks over the columns in
// ascending order, ATTENTION_COLS at a time. All products are C += A * B of private tiles with rows of
// ATTENTION_DEPTH values: A is read row by row as broadcasts, B as vectors, in register tiles of ATTENTION_MR rows x
// two vectors. A longer head is walked in parts of ATTENTION_DEPTH; its result then lies in its array between the
// blocks of columns, which therefore is no 16-bit array. Each result is written by one group, sums do not depend on the
// number of threads.
// Over 400 lines because forward and backward share their tiles.
// Program: transformer
#include "shared/attention.h"

#define ATTENTION_MR_VW16 8
#define ATTENTION_MR_VW8 4
#define ATTENTION_MR_VW4 4
#define ATTENTION_MR_VW2 4
#define ATTENTION_MR SB_JOIN(ATTENTION_MR_VW, VW)
#define ATTENTION_NR (2 * VW)
#define ATTENTION_ROWS 64
#define ATTENTION_COLS 64
#define ATTENTION_DEPTH 64
#define ATTENTION_TILE 4096         // values of a tile: rows of 64
#define ATTENTION_SLICE 1073741824  // columns of the result of a group: all

#define ATTENTION_ANY 1048576  // a diagonal that leaves nothing out

#define ATTENTION_STRIDES(x) const long x##_start, const long x##_n, const long x##_t, const long x##_h

static inline int attention_up(const int n, const int unit) { return (n + unit - 1) / unit * unit; }

// c (+)= a * b for a register tile of ROWS x 2 vectors, over k values.
#define ATTENTION_MICRO(name, ROWS)                                                              \
  static void name(const real* a, const real* b, real* c, const int k, const int accumulate) {   \
    vreal acc[ROWS][2];                                                                          \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                           \
      acc[i][0] = accumulate ? VLOAD(c + i * ATTENTION_DEPTH) : (vreal)(0);                      \
      acc[i][1] = accumulate ? VLOAD(c + i * ATTENTION_DEPTH + VW) : (vreal)(0);                 \
    }                                                                                            \
    for (int p = 0; p < k; ++p) {                                                                \
      const vreal b0 = VLOAD(b + p * ATTENTION_DEPTH), b1 = VLOAD(b + p * ATTENTION_DEPTH + VW); \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                         \
        const vreal value = (vreal)(a[i * ATTENTION_DEPTH + p]);                                 \
        acc[i][0] = FMA(value, b0, acc[i][0]);                                                   \
        acc[i][1] = FMA(value, b1, acc[i][1]);                                                   \
      }                                                                                          \
    }                                                                                            \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                           \
      VSTORE(acc[i][0], c + i * ATTENTION_DEPTH);                                                \
      VSTORE(acc[i][1], c + i * ATTENTION_DEPTH + VW);                                           \
    }                                                                                            \
  }
ATTENTION_MICRO(attention_micro, ATTENTION_MR)
ATTENTION_MICRO(attention_micro_row, 1)

// c (+)= a [rows, k] * b [k, cols]; a has zeros up to the next multiple of ATTENTION_MR rows, columns of b and c are
// there up to the next multiple of ATTENTION_NR. Where attention is causal, row i needs only the columns from low + i
// (attention_bwd_kv) or up to high + i: register tiles outside keep what they had, and nobody reads it. One query at a
// time, as in generation, does not pay for a full tile.
static void attention_scores(const real* a, const real* b, real* c, const int rows, const int cols, const int k,
                             const int accumulate, const int low, const int high) {
  for (int j = 0; j < cols; j += ATTENTION_NR) {
    int i = 0;
    for (; rows - i > 2; i += ATTENTION_MR) {
      if (j + ATTENTION_NR > low + i && j < high + i + ATTENTION_MR)
        attention_micro(a + i * ATTENTION_DEPTH, b + j, c + i * ATTENTION_DEPTH + j, k, accumulate);
    }
    for (; i < rows; ++i) {
      if (j + ATTENTION_NR > low + i && j <= high + i)
        attention_micro_row(a + i * ATTENTION_DEPTH, b + j, c + i * ATTENTION_DEPTH + j, k, accumulate);
    }
  }
}

// c += p [rows, k] * b [k, cols] for probabilities p, or their gradients, of the same rows and columns.
static void attention_product(const real* p, const real* b, real* c, const int rows, const int cols, const int k,
                              const int low, const int high) {
  for (int j = 0; j < cols; j += ATTENTION_NR) {
    for (int i = 0; i < rows;) {
      const int count = rows - i > 2 ? ATTENTION_MR : 1;
      const int begin = max(0, low + i), end = min(k, high + i + count);
      const real *pi = p + i * ATTENTION_DEPTH + begin, *bj = b + begin * ATTENTION_DEPTH + j;
      if (begin < end && count > 1)
        attention_micro(pi, bj, c + i * ATTENTION_DEPTH + j, end - begin, 1);
      else if (begin < end)
        attention_micro_row(pi, bj, c + i * ATTENTION_DEPTH + j, end - begin, 1);
      i += count;
    }
  }
}

// out[i][0 .. depth) = src[i * stride + ..] * scale for i < rows, zeros up to whole register tiles.
static void attention_rows(__global const stored* src, const long stride, const int rows, const int depth,
                           const real scale, real* out) {
  const int whole = depth / VW * VW, end = attention_up(depth, ATTENTION_NR);
  for (int i = 0; i < rows; ++i) {
    __global const stored* from = src + i * stride;
    real* to = out + i * ATTENTION_DEPTH;
    int p = 0;
    for (; p < whole; p += VW) VSTORE(VLOAD(from + p) * scale, to + p);
    for (; p < depth; ++p) to[p] = LOAD(from + p) * scale;
    for (; p < end; ++p) to[p] = 0;
  }
  for (int i = rows; i < attention_up(rows, ATTENTION_MR); ++i) {
    for (int p = 0; p < end; p += VW) VSTORE((vreal)(0), out + i * ATTENTION_DEPTH + p);
  }
}

// out[p][j] = src[j * stride + p] * scale for p < depth and j < cols; columns up to whole register tiles repeat the
// last one.
static void attention_columns(__global const stored* src, const long stride, const int cols, const int depth,
                              const real scale, real* out) {
  const int end = attention_up(cols, ATTENTION_NR);
  int p = 0;
  for (; p + VW <= depth; p += VW) {
    for (int j = 0; j < end; j += VW) {
      vreal r[VW];
#pragma unroll
      for (int i = 0; i < VW; ++i) r[i] = VLOAD(src + min(j + i, cols - 1) * stride + p) * scale;
      sb_transpose(r);
#pragma unroll
      for (int i = 0; i < VW; ++i) VSTORE(r[i], out + (p + i) * ATTENTION_DEPTH + j);
    }
  }
  for (; p < depth; ++p) {
    for (int j = 0; j < end; ++j) out[p * ATTENTION_DEPTH + j] = LOAD(src + min(j, cols - 1) * stride + p) * scale;
  }
}

// The part of a result [rows, depth] that stands in its array between blocks of columns.
static void attention_fetch(__global const stored* src, const long stride, const int rows, const int depth, real* out) {
  for (int i = 0; i < rows; ++i) {
    for (int p = 0; p < depth; ++p) out[i * ATTENTION_DEPTH + p] = LOAD(src + i * stride + p);
  }
}
static void attention_store(const real* src, const int rows, const int depth, const real scale, __global stored* dst,
                            const long stride) {
  const int whole = depth / VW * VW;
  for (int i = 0; i < rows; ++i) {
    const real* from = src + i * ATTENTION_DEPTH;
    __global stored* to = dst + i * stride;
    for (int p = 0; p < whole; p += VW) VSTORE(VLOAD(from + p) * scale, to + p);
    for (int p = whole; p < depth; ++p) STORE(from[p] * scale, to + p);
  }
}
// Zeros in `width` columns of the rows from `first` to whole register tiles of `rows`.
static void attention_clear(real* tile, const int first, const int rows, const int width) {
  for (int i = first; i < attention_up(rows, ATTENTION_MR); ++i) {
    for (int p = 0; p < attention_up(width, ATTENTION_NR); p += VW) VSTORE((vreal)(0), tile + i * ATTENTION_DEPTH + p);
  }
}

// Lanes of the columns j .. j + VW - 1 that lie in [begin, end).
static inline vmask attention_lanes(const int j, const int begin, const int end) {
  const vmask lane = SB_LANES + (vmask)((real_int)j);
  return (lane >= (vmask)((real_int)begin)) & (lane < (vmask)((real_int)end));
}

// One vector of what VW rows of VW values have together: their largest values, their sums.
static vreal attention_largest(const real* rows) {
  vreal r[VW];
#pragma unroll
  for (int i = 0; i < VW; ++i) r[i] = VLOAD(rows + i * VW);
  sb_transpose(r);
#pragma unroll
  for (int step = VW / 2; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) r[i] = sb_max2(r[i], r[i + step]);
  }
  return r[0];
}
static vreal attention_sums(const real* rows) {
  vreal r[VW];
#pragma unroll
  for (int i = 0; i < VW; ++i) r[i] = VLOAD(rows + i * VW);
  sb_transpose(r);
#pragma unroll
  for (int step = VW / 2; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) r[i] += r[i + step];
  }
  return r[0];
}

// Scores become exp(score - largest so far of the row), 0 beyond column high + i of row i; factor is what was summed
// before is multiplied with. Rows are looked at VW at a time, so that what is done once for a row is done for a vector
// of them. largest, sum and factor have whole vectors.
static void attention_softmax(real* s, const int rows, const int cols, const int high, real* largest, real* sum,
                              real* factor) {
  real partial[VW * VW];
  for (int i0 = 0; i0 < rows; i0 += VW) {
    const int count = min(VW, rows - i0);
    for (int i = 0; i < count; ++i) {
      real* row = s + (i0 + i) * ATTENTION_COLS;
      const int end = clamp(high + i0 + i + 1, 0, cols);
      vreal top = -INFINITY;
      int j = 0;
      for (; j + VW <= end; j += VW) top = sb_max2(top, VLOAD(row + j));
      if (j < end) {
        const vreal v = select((vreal)(-INFINITY), VLOAD(row + j), attention_lanes(j, 0, end));
        VSTORE(v, row + j);
        top = sb_max2(top, v);
      }
      VSTORE(top, partial + i * VW);
    }
    for (int i = count; i < VW; ++i) VSTORE((vreal)(0), partial + i * VW);
    const vreal before = VLOAD(largest + i0), now = sb_max2(before, attention_largest(partial));
    const vmask is_empty = now == (vreal)(-INFINITY);
    const vreal rescale = select(exp(before - now), (vreal)(1), is_empty);
    real shift[VW];
    VSTORE(select(now, (vreal)(0), is_empty), shift);
    VSTORE(now, largest + i0);
    VSTORE(rescale, factor + i0);
    for (int i = 0; i < count; ++i) {
      real* row = s + (i0 + i) * ATTENTION_COLS;
      const int end = clamp(high + i0 + i + 1, 0, cols);
      vreal total = 0;
      int j = 0;
      for (; j < end; j += VW) {
        const vreal e = exp(VLOAD(row + j) - shift[i]);
        VSTORE(e, row + j);
        total += e;
      }
      for (; j < cols; j += VW) VSTORE((vreal)(0), row + j);
      VSTORE(total, partial + i * VW);
    }
    VSTORE(FMA(VLOAD(sum + i0), rescale, attention_sums(partial)), sum + i0);
  }
}

// y and lse. Groups: x = ceil(T / ATTENTION_ROWS), y = H, z = N.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_fwd(
    ARRAY(const stored, q), ARRAY(const stored, k), ARRAY(const stored, v), ARRAY(const int, lengths), ARRAY(stored, y),
    ARRAY(real, lse), ATTENTION_STRIDES(q), ATTENTION_STRIDES(k), ATTENTION_STRIDES(v), const int queries,
    const int keys, const int heads, const int kv_heads, const int depth, const real scale, const int flags,
    const long first) {
  START(q);
  START(k);
  START(v);
  START(lengths);
  START(y);
  START(lse);
  const int row0 = (int)get_group_id(0) * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, queries - row0);
  const int head = get_group_id(1), kv_head = head / (heads / kv_heads);
  const long n = get_group_id(2);
  q += q_start + n * q_n + row0 * q_t + head * q_h;
  k += k_start + n * k_n + kv_head * k_h;
  v += v_start + n * v_n + kv_head * v_h;
  const long y_t = (long)heads * depth;
  y += (n * queries + row0) * y_t + (long)head * depth;
  lse += (n * heads + head) * queries + row0;
  const int visible = (flags & ATTENTION_LENGTHS) ? clamp(lengths[n], 0, keys) : keys;
  const int reach = (flags & ATTENTION_CAUSAL) ? (int)clamp(first + row0 + rows, 0L, (long)visible) : visible;
  const int parts = (depth + ATTENTION_DEPTH - 1) / ATTENTION_DEPTH;

  real a[ATTENTION_TILE], b[ATTENTION_TILE], s[ATTENTION_TILE], acc[ATTENTION_TILE];
  real largest[ATTENTION_ROWS], sum[ATTENTION_ROWS], factor[ATTENTION_ROWS];
  attention_clear(acc, 0, rows, min(depth, ATTENTION_DEPTH));
  attention_clear(s, rows, rows, ATTENTION_COLS);
  for (int i = 0; i < ATTENTION_ROWS; ++i) {
    largest[i] = -INFINITY;
    sum[i] = 0;
  }
  if (parts == 1) attention_rows(q, q_t, rows, depth, scale, a);
  for (int col0 = 0; col0 < reach; col0 += ATTENTION_COLS) {
    const int cols = min(ATTENTION_COLS, reach - col0);
    const int high = (flags & ATTENTION_CAUSAL) ? (int)min(first + row0 - col0, (long)ATTENTION_ANY) : ATTENTION_ANY;
    for (int part = 0; part < parts; ++part) {
      const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
      if (parts > 1) attention_rows(q + p0, q_t, rows, width, scale, a);
      attention_columns(k + col0 * k_t + p0, k_t, cols, width, 1, b);
      attention_scores(a, b, s, rows, cols, width, part > 0, -ATTENTION_ANY, high);
    }
    attention_softmax(s, rows, cols, high, largest, sum, factor);
    for (int part = 0; part < parts; ++part) {
      const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
      attention_rows(v + col0 * v_t + p0, v_t, cols, width, 1, b);
      if (parts > 1 && col0 > 0)
        attention_fetch(y + p0, y_t, rows, width, acc);
      else if (parts > 1)
        attention_clear(acc, 0, rows, width);
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
    ARRAY(const stored, q), ARRAY(const stored, k), ARRAY(const stored, v), ARRAY(const int, lengths),
    ARRAY(const stored, y), ARRAY(const stored, dy), ARRAY(const real, lse), ARRAY(real, delta), ARRAY(stored, dq),
    ATTENTION_STRIDES(q), ATTENTION_STRIDES(k), ATTENTION_STRIDES(v), ATTENTION_STRIDES(dy), ATTENTION_STRIDES(dq),
    const int queries, const int keys, const int heads, const int kv_heads, const int depth, const real scale,
    const int flags, const long first) {
  START(q);
  START(k);
  START(v);
  START(lengths);
  START(y);
  START(dy);
  START(lse);
  START(delta);
  START(dq);
  const int row0 = (int)get_group_id(0) * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, queries - row0);
  const int head = get_group_id(1), kv_head = head / (heads / kv_heads);
  const long n = get_group_id(2);
  q += q_start + n * q_n + row0 * q_t + head * q_h;
  k += k_start + n * k_n + kv_head * k_h;
  v += v_start + n * v_n + kv_head * v_h;
  dy += dy_start + n * dy_n + row0 * dy_t + head * dy_h;
  dq += dq_start + n * dq_n + row0 * dq_t + head * dq_h;
  y += ((n * queries + row0) * heads + head) * depth;
  lse += (n * heads + head) * queries + row0;
  delta += (n * heads + head) * queries + row0;
  const int visible = (flags & ATTENTION_LENGTHS) ? clamp(lengths[n], 0, keys) : keys;
  const int reach = (flags & ATTENTION_CAUSAL) ? (int)clamp(first + row0 + rows, 0L, (long)visible) : visible;
  const int parts = (depth + ATTENTION_DEPTH - 1) / ATTENTION_DEPTH;

  real a[ATTENTION_TILE], g[ATTENTION_TILE], b[ATTENTION_TILE], s[ATTENTION_TILE], ds[ATTENTION_TILE],
      acc[ATTENTION_TILE];
  real shift[ATTENTION_ROWS];
  for (int i = 0; i < rows; ++i) {
    __global const stored *yi = y + (long)i * heads * depth, *dyi = dy + i * dy_t;
    vreal total = 0;
    int p = 0;
    for (; p + VW <= depth; p += VW) total = FMA(VLOAD(yi + p), VLOAD(dyi + p), total);
    real rest = sb_sum(total);
    for (; p < depth; ++p) rest = FMA(LOAD(yi + p), LOAD(dyi + p), rest);
    shift[i] = rest;
    delta[i] = rest;
  }
  attention_clear(acc, 0, rows, min(depth, ATTENTION_DEPTH));
  attention_clear(s, rows, rows, ATTENTION_COLS);
  attention_clear(ds, rows, rows, ATTENTION_COLS);
  if (parts == 1) {
    attention_rows(q, q_t, rows, depth, scale, a);
    attention_rows(dy, dy_t, rows, depth, 1, g);
  }
  for (int col0 = 0; col0 < reach; col0 += ATTENTION_COLS) {
    const int cols = min(ATTENTION_COLS, reach - col0);
    const int high = (flags & ATTENTION_CAUSAL) ? (int)min(first + row0 - col0, (long)ATTENTION_ANY) : ATTENTION_ANY;
    for (int part = 0; part < parts; ++part) {
      const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
      if (parts > 1) {
        attention_rows(q + p0, q_t, rows, width, scale, a);
        attention_rows(dy + p0, dy_t, rows, width, 1, g);
      }
      attention_columns(k + col0 * k_t + p0, k_t, cols, width, 1, b);
      attention_scores(a, b, s, rows, cols, width, part > 0, -ATTENTION_ANY, high);
      attention_columns(v + col0 * v_t + p0, v_t, cols, width, 1, b);
      attention_scores(g, b, ds, rows, cols, width, part > 0, -ATTENTION_ANY, high);
    }
    for (int i = 0; i < rows; ++i) {
      const int end = clamp(high + i + 1, 0, cols);
      const real *si = s + i * ATTENTION_COLS, lse_i = lse[i], shift_i = shift[i];
      real* di = ds + i * ATTENTION_COLS;
      int j = 0;
      for (; j + VW <= end; j += VW) VSTORE(exp(VLOAD(si + j) - lse_i) * (VLOAD(di + j) - shift_i), di + j);
      if (j < end) {
        const vreal d = exp(VLOAD(si + j) - lse_i) * (VLOAD(di + j) - shift_i);
        VSTORE(select((vreal)(0), d, attention_lanes(j, 0, end)), di + j);
        j += VW;
      }
      for (; j < cols; j += VW) VSTORE((vreal)(0), di + j);
    }
    for (int part = 0; part < parts; ++part) {
      const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
      attention_rows(k + col0 * k_t + p0, k_t, cols, width, 1, b);
      if (parts > 1 && col0 > 0)
        attention_fetch(dq + p0, dq_t, rows, width, acc);
      else if (parts > 1)
        attention_clear(acc, 0, rows, width);
      attention_product(ds, b, acc, rows, width, cols, -ATTENTION_ANY, high);
      if (parts > 1) attention_store(acc, rows, width, 1, dq + p0, dq_t);
    }
  }
  for (int part = 0; part < parts; ++part) {
    const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
    if (parts > 1 && reach > 0) attention_fetch(dq + p0, dq_t, rows, width, acc);
    attention_store(acc, rows, width, scale, dq + p0, dq_t);
  }
}

// dk and dv, summed over the heads of q that share them in ascending order: rows are keys, columns queries.
// dv = p' dy, dk = ds' (scale q). Groups: x = ceil(S / ATTENTION_ROWS), y = G, z = N.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_bwd_kv(
    ARRAY(const stored, q), ARRAY(const stored, k), ARRAY(const stored, v), ARRAY(const int, lengths),
    ARRAY(const stored, dy), ARRAY(const real, lse), ARRAY(const real, delta), ARRAY(stored, dk), ARRAY(stored, dv),
    ATTENTION_STRIDES(q), ATTENTION_STRIDES(k), ATTENTION_STRIDES(v), ATTENTION_STRIDES(dy), ATTENTION_STRIDES(dk),
    ATTENTION_STRIDES(dv), const int queries, const int keys, const int heads, const int kv_heads, const int depth,
    const real scale, const int flags, const long first) {
  START(q);
  START(k);
  START(v);
  START(lengths);
  START(dy);
  START(lse);
  START(delta);
  START(dk);
  START(dv);
  const int row0 = (int)get_group_id(0) * ATTENTION_ROWS, rows = min(ATTENTION_ROWS, keys - row0);
  const int kv_head = get_group_id(1), share = heads / kv_heads;
  const long n = get_group_id(2);
  k += k_start + n * k_n + row0 * k_t + kv_head * k_h;
  v += v_start + n * v_n + row0 * v_t + kv_head * v_h;
  dk += dk_start + n * dk_n + row0 * dk_t + kv_head * dk_h;
  dv += dv_start + n * dv_n + row0 * dv_t + kv_head * dv_h;
  q += q_start + n * q_n;
  dy += dy_start + n * dy_n;
  const int visible = (flags & ATTENTION_LENGTHS) ? clamp(lengths[n], 0, keys) : keys;
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
  if (parts == 1) {
    attention_rows(k, k_t, rows, depth, 1, a);
    attention_rows(v, v_t, rows, depth, 1, g);
  }
  int is_fresh = 1;  // nothing was written to dk and dv yet
  for (int head = kv_head * share; head < (kv_head + 1) * share; ++head) {
    __global const real *lse_h = lse + (n * heads + head) * queries, *delta_h = delta + (n * heads + head) * queries;
    for (int col0 = begin; col0 < queries; col0 += ATTENTION_COLS) {
      const int cols = min(ATTENTION_COLS, queries - col0);
      const int low = (flags & ATTENTION_CAUSAL) ? (int)max(row0 - first - col0, (long)-ATTENTION_ANY) : -ATTENTION_ANY;
      __global const stored *q_at = q + col0 * q_t + head * q_h, *dy_at = dy + col0 * dy_t + head * dy_h;
      for (int j = 0; j < ATTENTION_COLS; ++j) {
        shift[j] = j < cols ? lse_h[col0 + j] : (real)INFINITY;
        mean[j] = j < cols ? delta_h[col0 + j] : (real)0;
      }
      for (int part = 0; part < parts; ++part) {
        const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
        if (parts > 1) {
          attention_rows(k + p0, k_t, rows, width, 1, a);
          attention_rows(v + p0, v_t, rows, width, 1, g);
        }
        attention_columns(q_at + p0, q_t, cols, width, scale, b);
        attention_scores(a, b, s, rows, cols, width, part > 0, low, ATTENTION_ANY);
        attention_columns(dy_at + p0, dy_t, cols, width, 1, b);
        attention_scores(g, b, ds, rows, cols, width, part > 0, low, ATTENTION_ANY);
      }
      for (int i = 0; i < rows; ++i) {
        const int from = max(low + i, 0);
        const int end = row0 + i < visible ? cols : 0;
        int j = 0;
        for (; j + VW <= min(from, cols) || (j < cols && end == 0); j += VW) {
          VSTORE((vreal)(0), s + i * ATTENTION_COLS + j);
          VSTORE((vreal)(0), ds + i * ATTENTION_COLS + j);
        }
        for (; j < cols; j += VW) {
          const int at = i * ATTENTION_COLS + j;
          const vmask sees = attention_lanes(j, from, end);
          const vreal p = select((vreal)(0), exp(VLOAD(s + at) - VLOAD(shift + j)), sees);
          VSTORE(p, s + at);
          VSTORE(select((vreal)(0), p * (VLOAD(ds + at) - VLOAD(mean + j)), sees), ds + at);
        }
      }
      for (int part = 0; part < parts; ++part) {
        const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
        if (parts > 1 && is_fresh) {
          attention_clear(acc_k, 0, rows, width);
          attention_clear(acc_v, 0, rows, width);
        } else if (parts > 1) {
          attention_fetch(dk + p0, dk_t, rows, width, acc_k);
          attention_fetch(dv + p0, dv_t, rows, width, acc_v);
        }
        attention_rows(dy_at + p0, dy_t, cols, width, 1, b);
        attention_product(s, b, acc_v, rows, width, cols, low, ATTENTION_ANY);
        attention_rows(q_at + p0, q_t, cols, width, scale, b);
        attention_product(ds, b, acc_k, rows, width, cols, low, ATTENTION_ANY);
        if (parts > 1) {
          attention_store(acc_k, rows, width, 1, dk + p0, dk_t);
          attention_store(acc_v, rows, width, 1, dv + p0, dv_t);
        }
      }
      is_fresh = 0;
    }
  }
  for (int part = 0; part < parts && (parts == 1 || is_fresh); ++part) {
    const int p0 = part * ATTENTION_DEPTH, width = min(ATTENTION_DEPTH, depth - p0);
    attention_store(acc_k, rows, width, 1, dk + p0, dk_t);
    attention_store(acc_v, rows, width, 1, dv + p0, dv_t);
  }
}
