// An axis as weighted sums of its places: dst [O, OUT, I] = sum over t of weights [OUT, taps] times src [O, IN, I] at
// place places [OUT, taps]; a place of -1 counts nothing. GPU: one work-item per element of the result, so that
// neighbours read neighbours. Sums are in `real`, in the order of t.
__kernel void resample_axis(ARRAY(const stored, src), ARRAY(const int, places), ARRAY(const real, weights),
                            ARRAY(stored, dst), const long outer, const long in, const long out, const long inner,
                            const int taps) {
  START(src);
  START(places);
  START(weights);
  START(dst);
  const long n = outer * out * inner, end = SB_END(n);
  for (long e = SB_BEGIN(n); e < end; ++e) {
    const long row = e / inner, i = e - row * inner, o = row / out, j = row - o * out;
    const __global stored* from = src + o * in * inner + i;
    real sum = 0;
    for (int t = 0; t < taps; ++t) {
      const int p = places[j * taps + t];
      if (p >= 0) sum = FMA(weights[j * taps + t], LOAD(from + p * inner), sum);
    }
    STORE(sum, dst + e);
  }
}
