// An axis as weighted sums of its places: dst [O, OUT, I] = sum over t of weights [OUT, taps] times src [O, IN, I] at
// place places [OUT, taps]; a place of -1 counts nothing. CPU: one work-item per group, a stretch of the result each,
// vectors along I. Sums are in `real`, in the order of t.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void resample_axis(
    ARRAY(const stored, src), ARRAY(const int, places), ARRAY(const real, weights), ARRAY(stored, dst),
    const long outer, const long in, const long out, const long inner, const int taps) {
  START(src);
  START(places);
  START(weights);
  START(dst);
  const long n = outer * out * inner, end = SB_END(n);
  for (long e = SB_BEGIN(n); e < end;) {
    const long row = e / inner, i = e - row * inner, o = row / out, j = row - o * out;
    const long count = min(inner - i, end - e);
    const __global stored* from = src + o * in * inner + i;
    const long readable = (outer - o) * in * inner - i;
    for (long k = 0; k < count; k += VW) {
      vreal sum = (vreal)(0);
      for (int t = 0; t < taps; ++t) {
        const int p = places[j * taps + t];
        if (p < 0) continue;
        const long at = p * inner + k;
        sum = FMA((vreal)(weights[j * taps + t]), sb_load(from + at, count - k, readable - at, 0), sum);
      }
      sb_store(sum, dst + e + k, count - k);
    }
    e += count;
  }
}
