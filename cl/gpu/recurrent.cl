// LSTM and GRU over sequences, one launch for all steps. Letters: N batch, T steps, H hidden units, G gates (4 or 3);
// arrays are dense and batch first. A work-group owns rows_per_group sequences, at most RECURRENT_ROWS, which do not
// depend on each other, and walks their steps; its items share the units and meet at a barrier after each step.
// A sequence has lengths[n] steps (T where lengths is null); step s of a reversed one is at length - 1 - s. Steps
// beyond the length keep the state and give zeros; a length outside [0, T] counts as 0 and gives NaN. Sums run over the
// units in ascending order, whatever N is.

#define RECURRENT_ROWS 2    // sequences of a work-group
#define RECURRENT_BLOCK 64  // values of k of one group of recurrent_pack

// Recurrent weights in panels of `width` units: dst [panels, depth, gates, width] = src[g * gate_stride + unit *
// unit_stride + k * k_stride], zeros beyond `units`. Geometry: over_rows(panels * blocks of k), items share a block.
__kernel void recurrent_pack(ARRAY(const real, src), ARRAY(real, dst), const int units, const int width,
                             const int depth, const int gates, const long gate_stride, const long unit_stride,
                             const long k_stride) {
  START(src);
  START(dst);
  const int blocks = (depth + RECURRENT_BLOCK - 1) / RECURRENT_BLOCK;
  const int p = (int)get_group_id(0) / blocks, first = ((int)get_group_id(0) - p * blocks) * RECURRENT_BLOCK;
  const int end = min(depth, first + RECURRENT_BLOCK), there = min(width, units - p * width);
  for (int k = first; k < end; ++k)
    for (int g = 0; g < gates; ++g) {
      const __global real* from = src + g * gate_stride + (long)p * width * unit_stride + k * k_stride;
      __global real* to = dst + (((long)p * depth + k) * gates + g) * width;
      for (int i = (int)get_local_id(0); i < width; i += (int)get_local_size(0))
        to[i] = i < there ? from[i * unit_stride] : 0;
    }
}

static inline real recurrent_sigmoid(const real x) { return 1 / (1 + exp(-x)); }

static inline int recurrent_length(const __global int* lengths, const int n, const int steps) {
  const int length = lengths ? lengths[n] : steps;
  return length < 0 || length > steps ? 0 : length;
}
// What stands beyond the length.
static inline real recurrent_fill(const __global int* lengths, const int n, const int steps) {
  return lengths && (lengths[n] < 0 || lengths[n] > steps) ? NAN : 0;
}

// dst [H] = the last state of sequence n in `states` [N, T, H], or `start` where it has no step.
static inline void recurrent_last(const __global real* states, const __global real* start, __global real* dst,
                                  const __global int* lengths, const int n, const int steps, const int hidden,
                                  const int reversed) {
  const int length = recurrent_length(lengths, n, steps);
  const real fill = recurrent_fill(lengths, n, steps);
  const long at = (long)n * steps + (reversed ? 0 : length - 1);
  const __global real* from = length == 0 ? start + (long)n * hidden : states + at * hidden;
  for (int u = (int)get_local_id(0); u < hidden; u += (int)get_local_size(0))
    dst[(long)n * hidden + u] = fill != 0 ? fill : from[u];
}

// The states before step `step` of the sequences n .. n + rows - 1, the last one repeated to fill the tile.
static inline void recurrent_states(const __global real** a, const __global real* y, const __global real* h0,
                                    const __global int* lengths, const int n, const int rows, const int step,
                                    const int steps, const int hidden, const int reversed) {
  for (int r = 0; r < RECURRENT_ROWS; ++r) {
    const int row = n + min(r, rows - 1), length = recurrent_length(lengths, row, steps);
    const int before = reversed ? length - step : step - 1;
    a[r] = step == 0 || step >= length ? h0 + (long)row * hidden : y + ((long)row * steps + before) * hidden;
  }
}

// S. Hochreiter and J. Schmidhuber, 1997, in PyTorch's form. With (i, f, g, o) = src + h W^T, src [N, T, 4, H] of
// inputs and biases: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). panels: of W [4, H, H] with width
// H. h0, c0 [N, H] -> y [N, T, H], h_n, c_n [N, H] and, for the gradient, gates [N, T, 4, H] and cells [N, T, H].
__kernel void recurrent_lstm_fwd(ARRAY(const real, src), ARRAY(const real, panels), ARRAY(const real, h0),
                                 ARRAY(const real, c0), ARRAY(const int, lengths), ARRAY_INPLACE(real, y),
                                 ARRAY(real, h_n), ARRAY(real, c_n), ARRAY(real, gates), ARRAY_INPLACE(real, cells),
                                 const int batch, const int steps, const int hidden, const int rows_per_group,
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
  const int first = (int)get_group_id(0) * rows_per_group, rows = min(batch - first, rows_per_group);
  for (int step = 0; step < steps; ++step) {
    const __global real* a[RECURRENT_ROWS];
    recurrent_states(a, y, h0, lengths, first, rows, step, steps, hidden, reversed);
    for (int u = (int)get_local_id(0); u < hidden; u += (int)get_local_size(0)) {
      real acc[RECURRENT_ROWS * 4];
      for (int i = 0; i < RECURRENT_ROWS * 4; ++i) acc[i] = 0;
      for (int k = 0; k < hidden; ++k) {
        const __global real* w = panels + (long)k * 4 * hidden + u;
        for (int r = 0; r < RECURRENT_ROWS; ++r)
          for (int g = 0; g < 4; ++g) acc[4 * r + g] = FMA(a[r][k], w[g * hidden], acc[4 * r + g]);
      }
      for (int r = 0; r < RECURRENT_ROWS; ++r) {
        if (r >= rows) continue;
        const int row = first + r, length = recurrent_length(lengths, row, steps);
        const bool is_on = step < length;
        const long place = (long)row * steps + (is_on && reversed ? length - 1 - step : step);
        const __global real* x = src + place * 4 * hidden + u;
        __global real* kept = gates + place * 4 * hidden + u;
        real i = 0, f = 0, g = 0, o = 0, c = 0, h = recurrent_fill(lengths, row, steps);
        if (is_on) {
          const __global real* before =
              step == 0 ? c0 + (long)row * hidden : cells + (place + (reversed ? 1 : -1)) * hidden;
          i = recurrent_sigmoid(x[0] + acc[4 * r]);
          f = recurrent_sigmoid(x[hidden] + acc[4 * r + 1]);
          g = tanh(x[2 * hidden] + acc[4 * r + 2]);
          o = recurrent_sigmoid(x[3 * hidden] + acc[4 * r + 3]);
          c = FMA(f, before[u], i * g);
          h = o * tanh(c);
        }
        kept[0] = i;
        kept[hidden] = f;
        kept[2 * hidden] = g;
        kept[3 * hidden] = o;
        cells[place * hidden + u] = c;
        y[place * hidden + u] = h;
      }
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  for (int n = first; n < first + rows; ++n) {
    recurrent_last(y, h0, h_n, lengths, n, steps, hidden, reversed);
    recurrent_last(cells, c0, c_n, lengths, n, steps, hidden, reversed);
  }
}

// K. Cho et al., 2014, in PyTorch's form. With src [N, T, 3, H] of inputs and their biases and q = h W^T + bias [3, H]
// (null: none): r = sigmoid(src_r + q_r), z = sigmoid(src_z + q_z), n = tanh(src_n + r q_n), h = (1 - z) n + z h.
// panels: of W [3, H, H] with width H. h0 [N, H] -> y [N, T, H], h_n [N, H] and, for the gradient, gates r, z, n
// [N, T, 3, H] and inner = q_n [N, T, H].
__kernel void recurrent_gru_fwd(ARRAY(const real, src), ARRAY(const real, panels), ARRAY(const real, bias),
                                ARRAY(const real, h0), ARRAY(const int, lengths), ARRAY_INPLACE(real, y),
                                ARRAY(real, h_n), ARRAY(real, gates), ARRAY(real, inner), const int batch,
                                const int steps, const int hidden, const int rows_per_group, const int reversed) {
  START(src);
  START(panels);
  START(bias);
  START(h0);
  START(lengths);
  START(y);
  START(h_n);
  START(gates);
  START(inner);
  const int first = (int)get_group_id(0) * rows_per_group, rows = min(batch - first, rows_per_group);
  for (int step = 0; step < steps; ++step) {
    const __global real* a[RECURRENT_ROWS];
    recurrent_states(a, y, h0, lengths, first, rows, step, steps, hidden, reversed);
    for (int u = (int)get_local_id(0); u < hidden; u += (int)get_local_size(0)) {
      real acc[RECURRENT_ROWS * 3];
      for (int i = 0; i < RECURRENT_ROWS * 3; ++i) acc[i] = 0;
      for (int k = 0; k < hidden; ++k) {
        const __global real* w = panels + (long)k * 3 * hidden + u;
        for (int r = 0; r < RECURRENT_ROWS; ++r)
          for (int g = 0; g < 3; ++g) acc[3 * r + g] = FMA(a[r][k], w[g * hidden], acc[3 * r + g]);
      }
      real b[3];
      for (int g = 0; g < 3; ++g) b[g] = bias ? bias[g * hidden + u] : 0;
      for (int r = 0; r < RECURRENT_ROWS; ++r) {
        if (r >= rows) continue;
        const int row = first + r, length = recurrent_length(lengths, row, steps);
        const bool is_on = step < length;
        const long place = (long)row * steps + (is_on && reversed ? length - 1 - step : step);
        const __global real* x = src + place * 3 * hidden + u;
        __global real* kept = gates + place * 3 * hidden + u;
        real reset = 0, z = 0, fresh = 0, q = 0, h = recurrent_fill(lengths, row, steps);
        if (is_on) {
          q = acc[3 * r + 2] + b[2];
          reset = recurrent_sigmoid(x[0] + (acc[3 * r] + b[0]));
          z = recurrent_sigmoid(x[hidden] + (acc[3 * r + 1] + b[1]));
          fresh = tanh(FMA(reset, q, x[2 * hidden]));
          h = FMA(z, a[r][u] - fresh, fresh);
        }
        kept[0] = reset;
        kept[hidden] = z;
        kept[2 * hidden] = fresh;
        inner[place * hidden + u] = q;
        y[place * hidden + u] = h;
      }
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  for (int n = first; n < first + rows; ++n) recurrent_last(y, h0, h_n, lengths, n, steps, hidden, reversed);
}

// dh [N, H] of the states before a step from the gradients `d` [N, T, depth] of that step: d W, on top of what dh holds
// where `adds`. panels: W [depth, H].
static void recurrent_back(const __global real* d, const __global real* panels, __global real* dh,
                           const __global int* lengths, const int first, const int rows, const int step,
                           const int steps, const int hidden, const int depth, const int reversed, const int adds) {
  const __global real* a[RECURRENT_ROWS];
  for (int r = 0; r < RECURRENT_ROWS; ++r) {
    const int row = first + min(r, rows - 1), length = recurrent_length(lengths, row, steps);
    a[r] = d + ((long)row * steps + (step < length && reversed ? length - 1 - step : step)) * depth;
  }
  for (int u = (int)get_local_id(0); u < hidden; u += (int)get_local_size(0)) {
    real acc[RECURRENT_ROWS];
    for (int r = 0; r < RECURRENT_ROWS; ++r) acc[r] = 0;
    for (int k = 0; k < depth; ++k) {
      const real w = panels[(long)k * hidden + u];
      for (int r = 0; r < RECURRENT_ROWS; ++r) acc[r] = FMA(a[r][k], w, acc[r]);
    }
    for (int r = 0; r < RECURRENT_ROWS; ++r) {
      if (r >= rows || step >= recurrent_length(lengths, first + r, steps)) continue;
      __global real* to = dh + (long)(first + r) * hidden + u;
      *to = adds ? acc[r] + *to : acc[r];
    }
  }
}

// The gradient of recurrent_lstm_fwd: dy [N, T, H], dh_n, dc_n [N, H] (each may be null) -> dsrc [N, T, 4, H],
// dh0, dc0 [N, H] and h_before [N, T, H], the state before each step, which the gradient of W needs (zeros beyond the
// length). panels: W [4 H, H]. dh0 and dc0 carry the gradients from step to step.
__kernel void recurrent_lstm_bwd(ARRAY(const real, gates), ARRAY(const real, cells), ARRAY(const real, y),
                                 ARRAY(const real, h0), ARRAY(const real, c0), ARRAY(const real, panels),
                                 ARRAY(const int, lengths), ARRAY(const real, dy), ARRAY(const real, dh_n),
                                 ARRAY(const real, dc_n), ARRAY_INPLACE(real, dsrc), ARRAY(real, h_before),
                                 ARRAY_INPLACE(real, dh0), ARRAY_INPLACE(real, dc0), const int batch, const int steps,
                                 const int hidden, const int rows_per_group, const int reversed) {
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
  const int first = (int)get_group_id(0) * rows_per_group, rows = min(batch - first, rows_per_group);
  const int item = (int)get_local_id(0), items = (int)get_local_size(0);
  for (int n = first; n < first + rows; ++n)
    for (int u = item; u < hidden; u += items) {
      const long at = (long)n * hidden + u;
      dh0[at] = dh_n ? dh_n[at] : 0;
      dc0[at] = dc_n ? dc_n[at] : 0;
    }
  for (int step = steps - 1; step >= 0; --step) {
    for (int n = first; n < first + rows; ++n) {
      const int length = recurrent_length(lengths, n, steps);
      const bool is_on = step < length;
      const long place = (long)n * steps + (is_on && reversed ? length - 1 - step : step);
      const long before = place + (reversed ? 1 : -1);
      for (int u = item; u < hidden; u += items) {
        const __global real* kept = gates + place * 4 * hidden + u;
        __global real* d = dsrc + place * 4 * hidden + u;
        const long at = (long)n * hidden + u;
        real di = 0, df = 0, dg = 0, d_o = 0, h = 0;
        if (is_on) {
          const real i = kept[0], f = kept[hidden], g = kept[2 * hidden], o = kept[3 * hidden];
          const real tanh_c = tanh(cells[place * hidden + u]), c = step == 0 ? c0[at] : cells[before * hidden + u];
          const real dh = dy ? dh0[at] + dy[place * hidden + u] : dh0[at];
          const real dcell = FMA(dh * o, 1 - tanh_c * tanh_c, dc0[at]);
          h = step == 0 ? h0[at] : y[before * hidden + u];
          di = dcell * g * i * (1 - i);
          df = dcell * c * f * (1 - f);
          dg = dcell * i * (1 - g * g);
          d_o = dh * tanh_c * o * (1 - o);
          dc0[at] = dcell * f;
        }
        d[0] = di;
        d[hidden] = df;
        d[2 * hidden] = dg;
        d[3 * hidden] = d_o;
        h_before[place * hidden + u] = h;
      }
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    recurrent_back(dsrc, panels, dh0, lengths, first, rows, step, steps, hidden, 4 * hidden, reversed, 0);
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
}

// The gradient of recurrent_gru_fwd: dy [N, T, H], dh_n [N, H] (each may be null) -> dsrc [N, T, 3, H], dinner
// [N, T, 3, H] of q, dh0 [N, H] and h_before [N, T, H] as in recurrent_lstm_bwd. panels: W [3 H, H].
__kernel void recurrent_gru_bwd(ARRAY(const real, gates), ARRAY(const real, inner), ARRAY(const real, y),
                                ARRAY(const real, h0), ARRAY(const real, panels), ARRAY(const int, lengths),
                                ARRAY(const real, dy), ARRAY(const real, dh_n), ARRAY(real, dsrc),
                                ARRAY_INPLACE(real, dinner), ARRAY(real, h_before), ARRAY_INPLACE(real, dh0),
                                const int batch, const int steps, const int hidden, const int rows_per_group,
                                const int reversed) {
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
  const int first = (int)get_group_id(0) * rows_per_group, rows = min(batch - first, rows_per_group);
  const int item = (int)get_local_id(0), items = (int)get_local_size(0);
  for (int n = first; n < first + rows; ++n)
    for (int u = item; u < hidden; u += items) dh0[(long)n * hidden + u] = dh_n ? dh_n[(long)n * hidden + u] : 0;
  for (int step = steps - 1; step >= 0; --step) {
    for (int n = first; n < first + rows; ++n) {
      const int length = recurrent_length(lengths, n, steps);
      const bool is_on = step < length;
      const long place = (long)n * steps + (is_on && reversed ? length - 1 - step : step);
      const __global real* from = step == 0 ? h0 + (long)n * hidden : y + (place + (reversed ? 1 : -1)) * hidden;
      for (int u = item; u < hidden; u += items) {
        const __global real* kept = gates + place * 3 * hidden + u;
        __global real *d = dsrc + place * 3 * hidden + u, *e = dinner + place * 3 * hidden + u;
        const long at = (long)n * hidden + u;
        real dr = 0, dz = 0, dn = 0, dq = 0, h = 0;
        if (is_on) {
          const real r = kept[0], z = kept[hidden], fresh = kept[2 * hidden];
          const real dh = dy ? dh0[at] + dy[place * hidden + u] : dh0[at];
          h = from[u];
          dn = dh * (1 - z) * (1 - fresh * fresh);
          dz = dh * (h - fresh) * z * (1 - z);
          dr = dn * inner[place * hidden + u] * r * (1 - r);
          dq = dn * r;
          dh0[at] = dh * z;
        }
        d[0] = dr;
        d[hidden] = dz;
        d[2 * hidden] = dn;
        e[0] = dr;
        e[hidden] = dz;
        e[2 * hidden] = dq;
        h_before[place * hidden + u] = h;
      }
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    recurrent_back(dinner, panels, dh0, lengths, first, rows, step, steps, hidden, 3 * hidden, reversed, 1);
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
}
