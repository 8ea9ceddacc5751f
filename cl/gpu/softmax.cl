// Soft-max and its logarithm over the last axis. All arrays are dense [rows, columns]; a work-group takes
// rows_per_group rows (a power of two), its items shared equally among them. The largest element is taken off first, so
// nothing overflows.
// Program: core

#define SOFTMAX_MOST_ITEMS 256
#define SOFTMAX_HELD 32  // values of a row that a work-item holds in registers, where that is enough

// dst = exp(src - max) / sum(exp(src - max)), or where is_log: src - max - log(sum(exp(src - max))).
__kernel void softmax_fwd(ARRAY(const stored, src), ARRAY(stored, dst), const long rows, const long columns,
                          const int rows_per_group, const int is_log) {
  START(src);
  START(dst);
  __local real scratch[SOFTMAX_MOST_ITEMS];
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long row = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  const long n = row < rows ? columns : 0;
  const __global stored* x = src + (row < rows ? row : 0) * columns;
  __global stored* y = dst + (row < rows ? row : 0) * columns;
  real largest = -INFINITY;
  if (columns <= SOFTMAX_HELD * lanes) {  // read once
    real held[SOFTMAX_HELD];
#pragma unroll
    for (int e = 0; e < SOFTMAX_HELD; ++e) held[e] = lane + e * lanes < n ? LOAD(x + lane + e * lanes) : -INFINITY;
#pragma unroll
    for (int e = 0; e < SOFTMAX_HELD; ++e) largest = sb_max2(largest, held[e]);
    largest = sb_lanes_max(largest, scratch, lanes);
    real sum = 0;
#pragma unroll
    for (int e = 0; e < SOFTMAX_HELD; ++e) {
      if (lane + e * lanes >= n) continue;
      const real distance = held[e] - largest, power = exp(distance);
      sum += power;
      held[e] = is_log ? distance : power;
    }
    sum = sb_lanes_sum(sum, scratch, lanes);
    const real log_sum = log(sum), scale = 1 / sum;
#pragma unroll
    for (int e = 0; e < SOFTMAX_HELD; ++e)
      if (lane + e * lanes < n) STORE(is_log ? held[e] - log_sum : held[e] * scale, y + lane + e * lanes);
    return;  // all items of the launch do
  }
  for (long i = lane; i < n; i += lanes) largest = sb_max2(largest, LOAD(x + i));
  largest = sb_lanes_max(largest, scratch, lanes);
  real sum = 0;
  for (long i = lane; i < n; i += lanes) sum += exp(LOAD(x + i) - largest);
  sum = sb_lanes_sum(sum, scratch, lanes);
  if (is_log) {
    const real log_sum = log(sum);
    for (long i = lane; i < n; i += lanes) STORE(LOAD(x + i) - largest - log_sum, y + i);
  } else {
    const real scale = 1 / sum;
    for (long i = lane; i < n; i += lanes) STORE(exp(LOAD(x + i) - largest) * scale, y + i);
  }
}

// The gradient of src from dst and the gradient dy of dst: dst * (dy - sum(dy * dst)), or where is_log: dy - exp(dst) *
// sum(dy).
__kernel void softmax_bwd(ARRAY(const stored, dst), ARRAY(const stored, dy), ARRAY(stored, dx), const long rows,
                          const long columns, const int rows_per_group, const int is_log) {
  START(dst);
  START(dy);
  START(dx);
  __local real scratch[SOFTMAX_MOST_ITEMS];
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long row = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  const long n = row < rows ? columns : 0, at = (row < rows ? row : 0) * columns;
  real sum = 0;
  for (long i = lane; i < n; i += lanes)
    sum = is_log ? sum + LOAD(dy + at + i) : FMA(LOAD(dy + at + i), LOAD(dst + at + i), sum);
  sum = sb_lanes_sum(sum, scratch, lanes);
  for (long i = lane; i < n; i += lanes) {
    const real v = LOAD(dy + at + i), p = LOAD(dst + at + i);
    STORE(is_log ? FMA(-exp(p), sum, v) : p * (v - sum), dx + at + i);
  }
}
