// Layer-wise trust ratios (LARS, LAMB) over a flat arena of segments, one for each parameter. The arena is cut into
// chunks that lie within one segment, in order; table [chunks][4] says of each: where it begins and how long it is,
// both in units of TRUST_UNIT elements, the first chunk of its segment and how many the segment has. Segments begin at
// whole units and gaps are zeros, so there are no tails. parts [2][chunks] are sums of squares of two quantities over
// each chunk; whoever needs those of a segment adds up its chunks, in a fixed order. Geometry of all: a work-group of
// TRUST_GROUP items takes one chunk. Sums and arithmetic are in `real`. Where
// has_control is set, control says what only the device knows of this step: [0] is 0 where it is skipped and no cell
// changes, the others stand where they are named.
#include "shared/arena.h"

#define TRUST_GROUP 256

// The norm over the chunk's segment; every item of the group calls it.
static inline real trust_norm(const __global real* parts, const __global int* chunk, __local real* scratch) {
  real sum = 0;
  for (int i = (int)get_local_id(0); i < chunk[3]; i += TRUST_GROUP) sum += parts[chunk[2] + i];
  return sqrt(sb_lanes_sum(sum, scratch, TRUST_GROUP));
}

// Reads a and b, writes parts: their squares.
__kernel __attribute__((reqd_work_group_size(TRUST_GROUP, 1, 1))) void trust_norms(
    ARRAY(const real, a), ARRAY(const real, b), ARRAY(const int, table), ARRAY(real, parts), const long chunks) {
  START(a);
  START(b);
  START(table);
  START(parts);
  __local real scratch[TRUST_GROUP];
  const long at = get_group_id(0);
  const __global int* chunk = table + 4 * at;
  const int item = (int)get_local_id(0), n = chunk[1] * TRUST_UNIT;
  a += (long)chunk[0] * TRUST_UNIT;
  b += (long)chunk[0] * TRUST_UNIT;
  real sum_a = 0, sum_b = 0;
  for (int i = item; i < n; i += TRUST_GROUP) {
    sum_a = FMA(a[i], a[i], sum_a);
    sum_b = FMA(b[i], b[i], sum_b);
  }
  sum_a = sb_lanes_sum(sum_a, scratch, TRUST_GROUP);
  sum_b = sb_lanes_sum(sum_b, scratch, TRUST_GROUP);
  if (item == 0) {
    parts[at] = sum_a;
    parts[chunks + at] = sum_b;
  }
}

// parts are those of p and g. ratio = |p| and |g| above 0 ? trust |p| / (|g| + decay |p| + eps) : 1;
// d = ratio (g + decay p); b = momentum b + d; p -= rate (nesterov ? d + momentum b : b). Overwrites p and b, writes
// ratios [chunks].
__kernel __attribute__((reqd_work_group_size(TRUST_GROUP, 1, 1))) void trust_lars(
    ARRAY(const real, g), ARRAY(const real, parts), ARRAY(const int, table), ARRAY(real, ratios), ARRAY(real, p),
    ARRAY(real, b), const long chunks, const real rate, const real momentum, const real decay, const real trust,
    const real eps, const int nesterov, ARRAY(const real, control), const int has_control) {
  START(g);
  START(parts);
  START(table);
  START(ratios);
  START(p);
  START(b);
  START(control);
  const int is_taken = !has_control || control[0] != 0;
  __local real scratch[TRUST_GROUP];
  const __global int* chunk = table + 4 * (long)get_group_id(0);
  const real norm_p = trust_norm(parts, chunk, scratch), norm_g = trust_norm(parts + chunks, chunk, scratch);
  const real ratio = norm_p > 0 && norm_g > 0 ? trust * norm_p / (norm_g + decay * norm_p + eps) : (real)1;
  if (get_local_id(0) == 0) ratios[get_group_id(0)] = ratio;
  const int n = is_taken ? chunk[1] * TRUST_UNIT : 0;
  g += (long)chunk[0] * TRUST_UNIT;
  p += (long)chunk[0] * TRUST_UNIT;
  b += (long)chunk[0] * TRUST_UNIT;
  for (int i = (int)get_local_id(0); i < n; i += TRUST_GROUP) {
    const real d = ratio * FMA(decay, p[i], g[i]), next = FMA(momentum, b[i], d);
    b[i] = next;
    p[i] = FMA(-rate, nesterov ? FMA(momentum, next, d) : next, p[i]);
  }
}

static inline real trust_lamb_direction(const real p, const real m, const real v, const real scale1, const real scale2,
                                        const real eps, const real decay) {
  return FMA(decay, p, m * scale1 / FMA(sqrt(v), scale2, eps));
}

// m = beta1 m + rest1 g, v = beta2 v + rest2 g^2, overwritten; parts are those of p and of the direction
// r = scale1 m / (scale2 sqrt(v) + eps) + decay p; control [1] and [2] stand for the two scales.
__kernel __attribute__((reqd_work_group_size(TRUST_GROUP, 1, 1))) void trust_lamb_moments(
    ARRAY(const real, p), ARRAY(const real, g), ARRAY(const int, table), ARRAY(real, parts), ARRAY(real, m),
    ARRAY(real, v), const long chunks, const real beta1, const real rest1, const real beta2, const real rest2,
    const real scale1, const real scale2, const real eps, const real decay, ARRAY(const real, control),
    const int has_control) {
  START(p);
  START(g);
  START(table);
  START(parts);
  START(m);
  START(v);
  START(control);
  const int is_taken = !has_control || control[0] != 0;
  const real by1 = has_control ? control[1] : scale1, by2 = has_control ? control[2] : scale2;
  __local real scratch[TRUST_GROUP];
  const long at = get_group_id(0);
  const __global int* chunk = table + 4 * at;
  const int item = (int)get_local_id(0), n = is_taken ? chunk[1] * TRUST_UNIT : 0;
  const long begin = (long)chunk[0] * TRUST_UNIT;
  p += begin;
  g += begin;
  m += begin;
  v += begin;
  real sum_p = 0, sum_r = 0;
  for (int i = item; i < n; i += TRUST_GROUP) {
    const real first = FMA(beta1, m[i], rest1 * g[i]), second = FMA(beta2, v[i], rest2 * g[i] * g[i]);
    const real r = trust_lamb_direction(p[i], first, second, by1, by2, eps, decay);
    m[i] = first;
    v[i] = second;
    sum_p = FMA(p[i], p[i], sum_p);
    sum_r = FMA(r, r, sum_r);
  }
  sum_p = sb_lanes_sum(sum_p, scratch, TRUST_GROUP);
  sum_r = sb_lanes_sum(sum_r, scratch, TRUST_GROUP);
  if (item == 0) {
    parts[at] = sum_p;
    parts[chunks + at] = sum_r;
  }
}

// p -= rate ratio r with ratio = |p| and |r| above 0 ? |p| / |r| : 1; r as above, of the new m and v. Overwrites p.
__kernel __attribute__((reqd_work_group_size(TRUST_GROUP, 1, 1))) void trust_lamb(
    ARRAY(const real, m), ARRAY(const real, v), ARRAY(const real, parts), ARRAY(const int, table), ARRAY(real, p),
    const long chunks, const real rate, const real scale1, const real scale2, const real eps, const real decay,
    ARRAY(const real, control), const int has_control) {
  START(m);
  START(v);
  START(parts);
  START(table);
  START(p);
  START(control);
  const int is_taken = !has_control || control[0] != 0;
  const real by1 = has_control ? control[1] : scale1, by2 = has_control ? control[2] : scale2;
  __local real scratch[TRUST_GROUP];
  const __global int* chunk = table + 4 * (long)get_group_id(0);
  const real norm_p = trust_norm(parts, chunk, scratch), norm_r = trust_norm(parts + chunks, chunk, scratch);
  const real step = norm_p > 0 && norm_r > 0 ? rate * norm_p / norm_r : rate;
  const int n = is_taken ? chunk[1] * TRUST_UNIT : 0;
  const long begin = (long)chunk[0] * TRUST_UNIT;
  m += begin;
  v += begin;
  p += begin;
  for (int i = (int)get_local_id(0); i < n; i += TRUST_GROUP)
    p[i] = FMA(-step, trust_lamb_direction(p[i], m[i], v[i], by1, by2, eps, decay), p[i]);
}
