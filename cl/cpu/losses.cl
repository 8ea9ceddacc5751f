// Losses of single elements. Dense arrays of n elements; geometry: over_elements(n).
// Program: core

// Binary cross-entropy of a logit x with the target t in a form that never overflows: max(x, 0) - x * t + log(1 +
// exp(-|x|)).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void losses_bce_with_logits(ARRAY(const stored, logits),
                                                                                    ARRAY(const stored, target),
                                                                                    ARRAY(real, dst), const long n) {
  START(logits);
  START(target);
  START(dst);
  const long end = SB_END(n);
  for (long i = SB_BEGIN(n); i < end; i += VW) {
    const vreal x = sb_load(logits + i, end - i, n - i, 0), t = sb_load(target + i, end - i, n - i, 0);
    const vreal e = exp(-fabs(x)), u = 1 + e;
    const vreal log_u = select(log(u) * (e / (u - 1)), e, u == 1);
    sb_store(sb_max2(x, (vreal)(0)) - x * t + log_u, dst + i, end - i);
  }
}
