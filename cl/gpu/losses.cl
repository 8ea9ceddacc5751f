// Losses of single elements. Dense arrays of n elements; geometry: over_elements(n).
// Program: core

// Binary cross-entropy of a logit x with the target t in a form that never overflows: max(x, 0) - x * t + log(1 +
// exp(-|x|)).
__kernel void losses_bce_with_logits(ARRAY(const stored, logits), ARRAY(const stored, target), ARRAY(real, dst),
                                     const long n) {
  START(logits);
  START(target);
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; ++i) {
    const real x = LOAD(logits + i);
    const real e = exp(-fabs(x)), u = 1 + e;
    dst[i] = sb_max2(x, (real)0) - x * LOAD(target + i) + (u == 1 ? e : log(u) * (e / (u - 1)));
  }
}
