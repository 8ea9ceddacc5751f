// Layer-wise trust ratios (LARS, LAMB) over a flat arena of segments, one for each parameter. The arena is cut into
// chunks that lie within one segment, in order; table [chunks][4] says of each: where it begins and how long it is,
// both in units of TRUST_UNIT elements, the first chunk of its segment and how many the segment has. Segments begin at
// whole units and gaps are zeros, so there are no tails. parts [2][chunks] are sums of squares of two quantities over
// each chunk; whoever needs those of a segment adds up its chunks, in their order. Geometry of all: a work-group of one
// item takes one chunk. Sums and arithmetic are in `real`. Where
// has_control is set, control says what only the device knows of this step: [0] is 0 where it is skipped and no cell
// changes, the others stand where they are named.
#include "shared/arena.h"

static inline real trust_sum(const __global real* p, const int n) {
  vreal total = 0;
  int i = 0;
  for (; i + VW <= n; i += VW) total += VLOAD(p + i);
  real sum = sb_sum(total);
  for (; i < n; ++i) sum += p[i];
  return sum;
}

// The norms of the two quantities over the chunk's segment.
static inline real trust_norm(const __global real* parts, const __global int* chunk) {
  return sqrt(trust_sum(parts + chunk[2], chunk[3]));
}

// Reads a and b, writes parts: their squares.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void trust_norms(ARRAY(const real, a), ARRAY(const real, b),
                                                                         ARRAY(const int, table), ARRAY(real, parts),
                                                                         const long chunks) {
  START(a);
  START(b);
  START(table);
  START(parts);
  const long at = get_group_id(0);
  const __global int* chunk = table + 4 * at;
  const int n = chunk[1] * TRUST_UNIT;
  a += (long)chunk[0] * TRUST_UNIT;
  b += (long)chunk[0] * TRUST_UNIT;
  vreal sum_a = 0, sum_b = 0;
  for (int i = 0; i < n; i += VW) {
    const vreal x = VLOAD(a + i), y = VLOAD(b + i);
    sum_a = FMA(x, x, sum_a);
    sum_b = FMA(y, y, sum_b);
  }
  parts[at] = sb_sum(sum_a);
  parts[chunks + at] = sb_sum(sum_b);
}

// parts are those of p and g. ratio = |p| and |g| above 0 ? trust |p| / (|g| + decay |p| + eps) : 1;
// d = ratio (g + decay p); b = momentum b + d; p -= rate (nesterov ? d + momentum b : b). Overwrites p and b, writes
// ratios [chunks].
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void trust_lars(
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
  const __global int* chunk = table + 4 * (long)get_group_id(0);
  const real norm_p = trust_norm(parts, chunk), norm_g = trust_norm(parts + chunks, chunk);
  const real ratio = norm_p > 0 && norm_g > 0 ? trust * norm_p / (norm_g + decay * norm_p + eps) : (real)1;
  ratios[get_group_id(0)] = ratio;
  const int n = is_taken ? chunk[1] * TRUST_UNIT : 0;
  g += (long)chunk[0] * TRUST_UNIT;
  p += (long)chunk[0] * TRUST_UNIT;
  b += (long)chunk[0] * TRUST_UNIT;
  for (int i = 0; i < n; i += VW) {
    const vreal old = VLOAD(p + i), d = ratio * FMA((vreal)(decay), old, VLOAD(g + i));
    const vreal next = FMA((vreal)(momentum), VLOAD(b + i), d);
    VSTORE(next, b + i);
    VSTORE(FMA((vreal)(-rate), nesterov ? FMA((vreal)(momentum), next, d) : next, old), p + i);
  }
}

static inline vreal trust_lamb_direction(const vreal p, const vreal m, const vreal v, const real scale1,
                                         const real scale2, const real eps, const real decay) {
  return FMA((vreal)(decay), p, m * scale1 / FMA(sqrt(v), (vreal)(scale2), (vreal)(eps)));
}

// m = beta1 m + rest1 g, v = beta2 v + rest2 g^2, overwritten; parts are those of p and of the direction
// r = scale1 m / (scale2 sqrt(v) + eps) + decay p; control [1] and [2] stand for the two scales.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void trust_lamb_moments(
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
  const long at = get_group_id(0);
  const __global int* chunk = table + 4 * at;
  const int n = is_taken ? chunk[1] * TRUST_UNIT : 0;
  const long begin = (long)chunk[0] * TRUST_UNIT;
  p += begin;
  g += begin;
  m += begin;
  v += begin;
  vreal sum_p = 0, sum_r = 0;
  for (int i = 0; i < n; i += VW) {
    const vreal x = VLOAD(p + i), slope = VLOAD(g + i);
    const vreal first = FMA((vreal)(beta1), VLOAD(m + i), rest1 * slope);
    const vreal second = FMA((vreal)(beta2), VLOAD(v + i), rest2 * slope * slope);
    const vreal r = trust_lamb_direction(x, first, second, by1, by2, eps, decay);
    VSTORE(first, m + i);
    VSTORE(second, v + i);
    sum_p = FMA(x, x, sum_p);
    sum_r = FMA(r, r, sum_r);
  }
  parts[at] = sb_sum(sum_p);
  parts[chunks + at] = sb_sum(sum_r);
}

// p -= rate ratio r with ratio = |p| and |r| above 0 ? |p| / |r| : 1; r as above, of the new m and v. Overwrites p.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void trust_lamb(
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
  const __global int* chunk = table + 4 * (long)get_group_id(0);
  const real norm_p = trust_norm(parts, chunk), norm_r = trust_norm(parts + chunks, chunk);
  const real step = norm_p > 0 && norm_r > 0 ? rate * norm_p / norm_r : rate;
  const int n = is_taken ? chunk[1] * TRUST_UNIT : 0;
  const long begin = (long)chunk[0] * TRUST_UNIT;
  m += begin;
  v += begin;
  p += begin;
  for (int i = 0; i < n; i += VW) {
    const vreal x = VLOAD(p + i);
    const vreal r = trust_lamb_direction(x, VLOAD(m + i), VLOAD(v + i), by1, by2, eps, decay);
    VSTORE(FMA((vreal)(-step), r, x), p + i);
  }
}
