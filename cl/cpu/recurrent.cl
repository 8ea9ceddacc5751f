// LSTM and GRU over sequences, one launch for all steps. Letters: N batch, T steps, H hidden units, G gates (4 or 3);
// arrays are dense and batch first. A work-group owns rows_per_group sequences, which do not depend on each other, and
// walks their steps; per step it multiplies their states with the recurrent weights, which lie in panels and come from
// the second-level cache, a panel serving all its sequences before the next one is read.
// A sequence has lengths[n] steps (T where lengths is null); step s of a reversed one is at length - 1 - s. Steps
// beyond the length keep the state and give zeros; a length outside [0, T] counts as 0 and gives NaN. Sums run over the
// units in ascending order, whatever N is. Over 400 lines because both cells share tiles and the walk over the steps.

#define RECURRENT_ROWS 4    // sequences of the register tile
#define RECURRENT_BLOCK 64  // values of k of one group of recurrent_pack

// Recurrent weights in panels of `width` units: dst [panels, depth, gates, width] = src[g * gate_stride + unit *
// unit_stride + k * k_stride], zeros beyond `units`. Geometry: over_rows(panels * blocks of k).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void recurrent_pack(
    ARRAY(const real, src), ARRAY(real, dst), const int units, const int width, const int depth, const int gates,
    const long gate_stride, const long unit_stride, const long k_stride) {
  START(src);
  START(dst);
  const int blocks = (depth + RECURRENT_BLOCK - 1) / RECURRENT_BLOCK;
  const int p = (int)get_group_id(0) / blocks, first = ((int)get_group_id(0) - p * blocks) * RECURRENT_BLOCK;
  const int end = min(depth, first + RECURRENT_BLOCK), there = min(width, units - p * width);
  for (int k = first; k < end; ++k)
    for (int g = 0; g < gates; ++g) {
      const __global real* from = src + g * gate_stride + (long)p * width * unit_stride + k * k_stride;
      __global real* to = dst + (((long)p * depth + k) * gates + g) * width;
      for (int i = 0; i < there; ++i) to[i] = from[i * unit_stride];
      for (int i = there; i < width; ++i) to[i] = 0;
    }
}

// acc [R][V] = sum over k < depth of a[r][k] * panel[k][V].
#define RECURRENT_TILE(R, V)                                                                                           \
  static void SB_JOIN(SB_JOIN(recurrent_tile_, R), SB_JOIN(x, V))(const __global real** a, const __global real* panel, \
                                                                  const int depth, vreal* acc) {                       \
    vreal sum[R * V];                                                                                                  \
    _Pragma("unroll") for (int i = 0; i < R * V; ++i) sum[i] = 0;                                                      \
    for (int k = 0; k < depth; ++k) {                                                                                  \
      vreal w[V];                                                                                                      \
      _Pragma("unroll") for (int v = 0; v < V; ++v) w[v] = VLOAD(panel + ((long)k * V + v) * VW);                      \
      _Pragma("unroll") for (int r = 0; r < R; ++r) {                                                                  \
        const vreal x = a[r][k];                                                                                       \
        _Pragma("unroll") for (int v = 0; v < V; ++v) sum[r * V + v] = FMA(x, w[v], sum[r * V + v]);                   \
      }                                                                                                                \
    }                                                                                                                  \
    _Pragma("unroll") for (int i = 0; i < R * V; ++i) acc[i] = sum[i];                                                 \
  }
RECURRENT_TILE(1, 3)
RECURRENT_TILE(1, 4)
RECURRENT_TILE(4, 3)
RECURRENT_TILE(4, 4)

static inline vreal recurrent_sigmoid(const vreal x) { return 1 / (1 + exp(-x)); }

static inline int recurrent_length(const __global int* lengths, const int n, const int steps) {
  const int length = lengths ? lengths[n] : steps;
  return length < 0 || length > steps ? 0 : length;
}
// What stands beyond the length.
static inline real recurrent_fill(const __global int* lengths, const int n, const int steps) {
  return lengths && (lengths[n] < 0 || lengths[n] > steps) ? NAN : 0;
}

static inline void recurrent_copy(const __global real* from, __global real* to, const int n) {
  for (int i = 0; i < n; i += VW) sb_store(sb_load(from + i, n - i, n - i, 0), to + i, n - i);
}
static inline void recurrent_set(const real value, __global real* to, const int n) {
  for (int i = 0; i < n; i += VW) sb_store((vreal)(value), to + i, n - i);
}

// dst [H] = the last state of sequence n in `states` [N, T, H], or `start` where it has no step.
static inline void recurrent_last(const __global real* states, const __global real* start, __global real* dst,
                                  const __global int* lengths, const int n, const int steps, const int hidden,
                                  const int reversed) {
  const int length = recurrent_length(lengths, n, steps);
  const long at = (long)n * steps + (reversed ? 0 : length - 1);
  if (recurrent_fill(lengths, n, steps) != 0) {
    recurrent_set(NAN, dst + (long)n * hidden, hidden);
  } else {
    recurrent_copy(length == 0 ? start + (long)n * hidden : states + at * hidden, dst + (long)n * hidden, hidden);
  }
}

// The states before step `step` of the sequences n .. n + rows - 1, the last one repeated to fill the tile.
static inline void recurrent_states(const __global real** a, const __global real* y, const __global real* h0,
                                    const __global int* lengths, const int n, const int rows, const int step,
                                    const int steps, const int hidden, const int reversed) {
#pragma unroll
  for (int r = 0; r < RECURRENT_ROWS; ++r) {
    const int row = n + min(r, rows - 1), length = recurrent_length(lengths, row, steps);
    const int before = reversed ? length - step : step - 1;
    a[r] = step == 0 || step >= length ? h0 + (long)row * hidden : y + ((long)row * steps + before) * hidden;
  }
}

// S. Hochreiter and J. Schmidhuber, 1997, in PyTorch's form. With (i, f, g, o) = src + h W^T, src [N, T, 4, H] of
// inputs and biases: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). panels: of W [4, H, H] with width
// VW. h0, c0 [N, H] -> y [N, T, H], h_n, c_n [N, H] and, for the gradient, gates [N, T, 4, H] and cells [N, T, H].
SB_APART void recurrent_lstm_fwd_group(SB_AT(const real, src), SB_AT(const real, panels), SB_AT(const real, h0),
                                       SB_AT(const real, c0), SB_AT(const int, lengths), SB_AT_INPLACE(real, y),
                                       SB_AT(real, h_n), SB_AT(real, c_n), SB_AT(real, gates),
                                       SB_AT_INPLACE(real, cells), const int batch, const int steps, const int hidden,
                                       const int rows_per_group, const int reversed, const int group) {
  const int first = group * rows_per_group, last = min(batch, first + rows_per_group);
  for (int step = 0; step < steps; ++step)
    for (int u = 0; u < hidden; u += VW) {
      const __global real* panel = panels + (long)u * hidden * 4;
      const int left = hidden - u;
      for (int n = first; n < last; n += RECURRENT_ROWS) {
        const int rows = min(RECURRENT_ROWS, last - n);
        const __global real* a[RECURRENT_ROWS];
        recurrent_states(a, y, h0, lengths, n, rows, step, steps, hidden, reversed);
        vreal acc[RECURRENT_ROWS * 4];
        if (rows == 1) {
          recurrent_tile_1x4(a, panel, hidden, acc);
        } else {
          recurrent_tile_4x4(a, panel, hidden, acc);
        }
        for (int r = 0; r < rows; ++r) {
          const int row = n + r, length = recurrent_length(lengths, row, steps);
          const bool is_on = step < length;
          const long place = (long)row * steps + (is_on && reversed ? length - 1 - step : step);
          const __global real* x = src + place * 4 * hidden + u;
          __global real* kept = gates + place * 4 * hidden + u;
          if (!is_on) {
            sb_store((vreal)(recurrent_fill(lengths, row, steps)), y + place * hidden + u, left);
            sb_store((vreal)(0), cells + place * hidden + u, left);
            for (int g = 0; g < 4; ++g) sb_store((vreal)(0), kept + g * hidden, left);
            continue;
          }
          const vreal i = recurrent_sigmoid(sb_load(x, left, left, 0) + acc[4 * r]);
          const vreal f = recurrent_sigmoid(sb_load(x + hidden, left, left, 0) + acc[4 * r + 1]);
          const vreal g = tanh(sb_load(x + 2 * hidden, left, left, 0) + acc[4 * r + 2]);
          const vreal o = recurrent_sigmoid(sb_load(x + 3 * hidden, left, left, 0) + acc[4 * r + 3]);
          const __global real* before =
              (step == 0 ? c0 + (long)row * hidden : cells + (place + (reversed ? 1 : -1)) * hidden) + u;
          const vreal c = FMA(f, sb_load(before, left, left, 0), i * g);
          sb_store(i, kept, left);
          sb_store(f, kept + hidden, left);
          sb_store(g, kept + 2 * hidden, left);
          sb_store(o, kept + 3 * hidden, left);
          sb_store(c, cells + place * hidden + u, left);
          sb_store(o * tanh(c), y + place * hidden + u, left);
        }
      }
    }
  for (int n = first; n < last; ++n) {
    recurrent_last(y, h0, h_n, lengths, n, steps, hidden, reversed);
    recurrent_last(cells, c0, c_n, lengths, n, steps, hidden, reversed);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void recurrent_lstm_fwd(
    ARRAY(const real, src), ARRAY(const real, panels), ARRAY(const real, h0), ARRAY(const real, c0),
    ARRAY(const int, lengths), ARRAY_INPLACE(real, y), ARRAY(real, h_n), ARRAY(real, c_n), ARRAY(real, gates),
    ARRAY_INPLACE(real, cells), const int batch, const int steps, const int hidden, const int rows_per_group,
    const int reversed) {
  START(src);
  START(panels);
  START(h0);
  START(c0);
  START(lengths);
  START(y);
  START(h_n);
  START(c_n);
  START(gates);
  START(cells);
  recurrent_lstm_fwd_group(src, panels, h0, c0, lengths, y, h_n, c_n, gates, cells, batch, steps, hidden,
                           rows_per_group, reversed, get_group_id(0));
}

// K. Cho et al., 2014, in PyTorch's form. With src [N, T, 3, H] of inputs and their biases and q = h W^T + bias [3, H]
// (null: none): r = sigmoid(src_r + q_r), z = sigmoid(src_z + q_z), n = tanh(src_n + r q_n), h = (1 - z) n + z h.
// panels: of W [3, H, H] with width VW. h0 [N, H] -> y [N, T, H], h_n [N, H] and, for the gradient, gates r, z, n
// [N, T, 3, H] and inner = q_n [N, T, H].
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void recurrent_gru_fwd(
    ARRAY(const real, src), ARRAY(const real, panels), ARRAY(const real, bias), ARRAY(const real, h0),
    ARRAY(const int, lengths), ARRAY_INPLACE(real, y), ARRAY(real, h_n), ARRAY(real, gates), ARRAY(real, inner),
    const int batch, const int steps, const int hidden, const int rows_per_group, const int reversed) {
  START(src);
  START(panels);
  START(bias);
  START(h0);
  START(lengths);
  START(y);
  START(h_n);
  START(gates);
  START(inner);
  const int first = (int)get_group_id(0) * rows_per_group, last = min(batch, first + rows_per_group);
  for (int step = 0; step < steps; ++step)
    for (int u = 0; u < hidden; u += VW) {
      const __global real* panel = panels + (long)u * hidden * 3;
      const int left = hidden - u;
      vreal b[3];
      for (int g = 0; g < 3; ++g) b[g] = bias ? sb_load(bias + g * hidden + u, left, left, 0) : (vreal)(0);
      for (int n = first; n < last; n += RECURRENT_ROWS) {
        const int rows = min(RECURRENT_ROWS, last - n);
        const __global real* a[RECURRENT_ROWS];
        recurrent_states(a, y, h0, lengths, n, rows, step, steps, hidden, reversed);
        vreal acc[RECURRENT_ROWS * 3];
        if (rows == 1) {
          recurrent_tile_1x3(a, panel, hidden, acc);
        } else {
          recurrent_tile_4x3(a, panel, hidden, acc);
        }
        for (int r = 0; r < rows; ++r) {
          const int row = n + r, length = recurrent_length(lengths, row, steps);
          const bool is_on = step < length;
          const long place = (long)row * steps + (is_on && reversed ? length - 1 - step : step);
          const __global real* x = src + place * 3 * hidden + u;
          __global real* kept = gates + place * 3 * hidden + u;
          if (!is_on) {
            sb_store((vreal)(recurrent_fill(lengths, row, steps)), y + place * hidden + u, left);
            sb_store((vreal)(0), inner + place * hidden + u, left);
            for (int g = 0; g < 3; ++g) sb_store((vreal)(0), kept + g * hidden, left);
            continue;
          }
          const vreal q = acc[3 * r + 2] + b[2];
          const vreal reset = recurrent_sigmoid(sb_load(x, left, left, 0) + (acc[3 * r] + b[0]));
          const vreal z = recurrent_sigmoid(sb_load(x + hidden, left, left, 0) + (acc[3 * r + 1] + b[1]));
          const vreal fresh = tanh(FMA(reset, q, sb_load(x + 2 * hidden, left, left, 0)));
          sb_store(reset, kept, left);
          sb_store(z, kept + hidden, left);
          sb_store(fresh, kept + 2 * hidden, left);
          sb_store(q, inner + place * hidden + u, left);
          sb_store(FMA(z, sb_load(a[r] + u, left, left, 0) - fresh, fresh), y + place * hidden + u, left);
        }
      }
    }
  for (int n = first; n < last; ++n) recurrent_last(y, h0, h_n, lengths, n, steps, hidden, reversed);
}

// dh [N, H] of the states before a step from the gradients `d` [N, T, depth] of that step: d W, on top of what dh holds
// where `adds`. panels: of W [depth, H] with width 4 VW.
SB_APART void recurrent_back(const __global real* d, const __global real* panels, __global real* dh,
                             const __global int* lengths, const int first, const int last, const int step,
                             const int steps, const int hidden, const int depth, const int reversed, const int adds) {
  for (int u = 0; u < hidden; u += 4 * VW) {
    const __global real* panel = panels + (long)u * depth;
    for (int n = first; n < last; n += RECURRENT_ROWS) {
      const int rows = min(RECURRENT_ROWS, last - n);
      const __global real* a[RECURRENT_ROWS];
#pragma unroll
      for (int r = 0; r < RECURRENT_ROWS; ++r) {
        const int row = n + min(r, rows - 1), length = recurrent_length(lengths, row, steps);
        a[r] = d + ((long)row * steps + (step < length && reversed ? length - 1 - step : step)) * depth;
      }
      vreal acc[RECURRENT_ROWS * 4];
      if (rows == 1) {
        recurrent_tile_1x4(a, panel, depth, acc);
      } else {
        recurrent_tile_4x4(a, panel, depth, acc);
      }
      for (int r = 0; r < rows; ++r) {
        if (step >= recurrent_length(lengths, n + r, steps)) continue;
        __global real* to = dh + (long)(n + r) * hidden + u;
        for (int v = 0; v < 4 && u + v * VW < hidden; ++v) {
          const int left = hidden - u - v * VW;
          vreal sum = acc[4 * r + v];
          if (adds) sum += sb_load(to + v * VW, left, left, 0);
          sb_store(sum, to + v * VW, left);
        }
      }
    }
  }
}

// dst [H] of sequence n = src, or zeros where src is null: the gradient of a last state, where the walk back starts.
static inline void recurrent_begin(const __global real* src, __global real* dst, const int n, const int hidden) {
  if (src) {
    recurrent_copy(src + (long)n * hidden, dst + (long)n * hidden, hidden);
  } else {
    recurrent_set(0, dst + (long)n * hidden, hidden);
  }
}

// The gradient of recurrent_lstm_fwd: dy [N, T, H], dh_n, dc_n [N, H] (each may be null) -> dsrc [N, T, 4, H],
// dh0, dc0 [N, H] and h_before [N, T, H], the state before each step, which the gradient of W needs (zeros beyond the
// length). panels: of W [4 H, H] with width 4 VW. dh0 and dc0 carry the gradients from step to step.
SB_APART void recurrent_lstm_bwd_group(SB_AT(const real, gates), SB_AT(const real, cells), SB_AT(const real, y),
                                       SB_AT(const real, h0), SB_AT(const real, c0), SB_AT(const real, panels),
                                       SB_AT(const int, lengths), SB_AT(const real, dy), SB_AT(const real, dh_n),
                                       SB_AT(const real, dc_n), SB_AT_INPLACE(real, dsrc), SB_AT(real, h_before),
                                       SB_AT_INPLACE(real, dh0), SB_AT_INPLACE(real, dc0), const int batch,
                                       const int steps, const int hidden, const int rows_per_group, const int reversed,
                                       const int group) {
  const int first = group * rows_per_group, last = min(batch, first + rows_per_group);
  for (int n = first; n < last; ++n) {
    recurrent_begin(dh_n, dh0, n, hidden);
    recurrent_begin(dc_n, dc0, n, hidden);
  }
  for (int step = steps - 1; step >= 0; --step) {
    for (int n = first; n < last; ++n) {
      const int length = recurrent_length(lengths, n, steps);
      const bool is_on = step < length;
      const long place = (long)n * steps + (is_on && reversed ? length - 1 - step : step);
      if (!is_on) {
        recurrent_set(0, dsrc + place * 4 * hidden, 4 * hidden);
        recurrent_set(0, h_before + place * hidden, hidden);
        continue;
      }
      const long before = place + (reversed ? 1 : -1);
      recurrent_copy(step == 0 ? h0 + (long)n * hidden : y + before * hidden, h_before + place * hidden, hidden);
      for (int u = 0; u < hidden; u += VW) {
        const int left = hidden - u;
        const __global real* kept = gates + place * 4 * hidden + u;
        __global real *d = dsrc + place * 4 * hidden + u, *dc = dc0 + (long)n * hidden + u;
        const vreal i = sb_load(kept, left, left, 0), f = sb_load(kept + hidden, left, left, 0);
        const vreal g = sb_load(kept + 2 * hidden, left, left, 0), o = sb_load(kept + 3 * hidden, left, left, 0);
        const vreal tanh_c = tanh(sb_load(cells + place * hidden + u, left, left, 0));
        vreal dh = sb_load(dh0 + (long)n * hidden + u, left, left, 0);
        if (dy) dh += sb_load(dy + place * hidden + u, left, left, 0);
        const vreal dcell = FMA(dh * o, 1 - tanh_c * tanh_c, sb_load(dc, left, left, 0));
        const __global real* c = (step == 0 ? c0 + (long)n * hidden : cells + before * hidden) + u;
        sb_store(dcell * g * i * (1 - i), d, left);
        sb_store(dcell * sb_load(c, left, left, 0) * f * (1 - f), d + hidden, left);
        sb_store(dcell * i * (1 - g * g), d + 2 * hidden, left);
        sb_store(dh * tanh_c * o * (1 - o), d + 3 * hidden, left);
        sb_store(dcell * f, dc, left);
      }
    }
    recurrent_back(dsrc, panels, dh0, lengths, first, last, step, steps, hidden, 4 * hidden, reversed, 0);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void recurrent_lstm_bwd(
    ARRAY(const real, gates), ARRAY(const real, cells), ARRAY(const real, y), ARRAY(const real, h0),
    ARRAY(const real, c0), ARRAY(const real, panels), ARRAY(const int, lengths), ARRAY(const real, dy),
    ARRAY(const real, dh_n), ARRAY(const real, dc_n), ARRAY_INPLACE(real, dsrc), ARRAY(real, h_before),
    ARRAY_INPLACE(real, dh0), ARRAY_INPLACE(real, dc0), const int batch, const int steps, const int hidden,
    const int rows_per_group, const int reversed) {
  START(gates);
  START(cells);
  START(y);
  START(h0);
  START(c0);
  START(panels);
  START(lengths);
  START(dy);
  START(dh_n);
  START(dc_n);
  START(dsrc);
  START(h_before);
  START(dh0);
  START(dc0);
  recurrent_lstm_bwd_group(gates, cells, y, h0, c0, panels, lengths, dy, dh_n, dc_n, dsrc, h_before, dh0, dc0, batch,
                           steps, hidden, rows_per_group, reversed, get_group_id(0));
}

// The gradient of recurrent_gru_fwd: dy [N, T, H], dh_n [N, H] (each may be null) -> dsrc [N, T, 3, H], dinner
// [N, T, 3, H] of q, dh0 [N, H] and h_before [N, T, H] as in recurrent_lstm_bwd. panels: of W [3 H, H] with width 4 VW.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void recurrent_gru_bwd(
    ARRAY(const real, gates), ARRAY(const real, inner), ARRAY(const real, y), ARRAY(const real, h0),
    ARRAY(const real, panels), ARRAY(const int, lengths), ARRAY(const real, dy), ARRAY(const real, dh_n),
    ARRAY(real, dsrc), ARRAY_INPLACE(real, dinner), ARRAY(real, h_before), ARRAY_INPLACE(real, dh0), const int batch,
    const int steps, const int hidden, const int rows_per_group, const int reversed) {
  START(gates);
  START(inner);
  START(y);
  START(h0);
  START(panels);
  START(lengths);
  START(dy);
  START(dh_n);
  START(dsrc);
  START(dinner);
  START(h_before);
  START(dh0);
  const int first = (int)get_group_id(0) * rows_per_group, last = min(batch, first + rows_per_group);
  for (int n = first; n < last; ++n) recurrent_begin(dh_n, dh0, n, hidden);
  for (int step = steps - 1; step >= 0; --step) {
    for (int n = first; n < last; ++n) {
      const int length = recurrent_length(lengths, n, steps);
      const bool is_on = step < length;
      const long place = (long)n * steps + (is_on && reversed ? length - 1 - step : step);
      if (!is_on) {
        recurrent_set(0, dsrc + place * 3 * hidden, 3 * hidden);
        recurrent_set(0, dinner + place * 3 * hidden, 3 * hidden);
        recurrent_set(0, h_before + place * hidden, hidden);
        continue;
      }
      const __global real* h = step == 0 ? h0 + (long)n * hidden : y + (place + (reversed ? 1 : -1)) * hidden;
      recurrent_copy(h, h_before + place * hidden, hidden);
      for (int u = 0; u < hidden; u += VW) {
        const int left = hidden - u;
        const __global real* kept = gates + place * 3 * hidden + u;
        __global real *d = dsrc + place * 3 * hidden + u, *e = dinner + place * 3 * hidden + u;
        __global real* carried = dh0 + (long)n * hidden + u;
        const vreal r = sb_load(kept, left, left, 0), z = sb_load(kept + hidden, left, left, 0);
        const vreal fresh = sb_load(kept + 2 * hidden, left, left, 0);
        vreal dh = sb_load(carried, left, left, 0);
        if (dy) dh += sb_load(dy + place * hidden + u, left, left, 0);
        const vreal dn = dh * (1 - z) * (1 - fresh * fresh);
        const vreal dz = dh * (sb_load(h + u, left, left, 0) - fresh) * z * (1 - z);
        const vreal dr = dn * sb_load(inner + place * hidden + u, left, left, 0) * r * (1 - r);
        sb_store(dr, d, left);
        sb_store(dr, e, left);
        sb_store(dz, d + hidden, left);
        sb_store(dz, e + hidden, left);
        sb_store(dn, d + 2 * hidden, left);
        sb_store(dn * r, e + 2 * hidden, left);
        sb_store(dh * z, carried, left);
      }
    }
    recurrent_back(dinner, panels, dh0, lengths, first, last, step, steps, hidden, 3 * hidden, reversed, 1);
  }
}

#undef RECURRENT_TILE
