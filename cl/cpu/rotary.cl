// Rotary positions (Su et al. 2021). src [N, T, H, D] with strides and D neighbours, dst dense [N, T, H, D], D even. Pair i
// of token t turns by the angle (first + t) * base^(-2 i / D), with `sign` 1, or back with -1. Pairs are (i, i + D / 2), or
// where interleaved (2 i, 2 i + 1). Heads from `turned` on are copied. A group takes one token: its angles serve all heads.
// Program: transformer

static inline void rotary_pair(const vreal a, const vreal b, const vreal c, const vreal s, vreal* x, vreal* y) {
  *x = FMA(a, c, -(b * s));
  *y = FMA(b, c, a * s);
}

// Groups: x = T, y = N. step = 2 / D * log2(base).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void rotary(ARRAY(const stored, src), ARRAY(stored, dst),
                                                                    const long src_n, const long src_t,
                                                                    const long src_h, const int heads,
                                                                    const int turned, const int depth,
                                                                    const int interleaved, const real step,
                                                                    const real sign, const long first) {
  START(src);
  START(dst);
  const long t = get_group_id(0), n = get_group_id(1);
  const int half_depth = depth / 2, whole = half_depth / VW * VW;
  const real position = (real)(first + t);
  src += n * src_n + t * src_t;
  dst += (n * (long)get_num_groups(0) + t) * heads * depth;
  real lane[VW], cosine[VW], sine[VW];
  for (int i = 0; i < VW; ++i) lane[i] = (real)i;
  const vreal lanes = VLOAD(lane);
  for (int i = 0; i < half_depth; i += VW) {
    const vreal angle = position * exp2((lanes + (real)i) * -step);
    const vreal c = cos(angle), s = sin(angle) * sign;
    if (i < whole) {
      for (int h = 0; h < turned; ++h) {
        const __global stored* x = src + h * src_h;
        __global stored* y = dst + (long)h * depth;
        vreal a, b;
        if (interleaved) {
          const vreal lo = VLOAD(x + 2 * i), hi = VLOAD(x + 2 * i + VW);
          vreal even, odd, low, high;
          even.lo = lo.even;
          even.hi = hi.even;
          odd.lo = lo.odd;
          odd.hi = hi.odd;
          rotary_pair(even, odd, c, s, &a, &b);
          low.even = a.lo;
          low.odd = b.lo;
          high.even = a.hi;
          high.odd = b.hi;
          VSTORE(low, y + 2 * i);
          VSTORE(high, y + 2 * i + VW);
        } else {
          rotary_pair(VLOAD(x + i), VLOAD(x + half_depth + i), c, s, &a, &b);
          VSTORE(a, y + i);
          VSTORE(b, y + half_depth + i);
        }
      }
    } else {
      VSTORE(c, cosine);
      VSTORE(s, sine);
      for (int h = 0; h < turned; ++h) {
        const __global stored* x = src + h * src_h;
        __global stored* y = dst + (long)h * depth;
        for (int j = i; j < half_depth; ++j) {
          const int p = interleaved ? 2 * j : j, q = interleaved ? p + 1 : j + half_depth;
          const real a = LOAD(x + p), b = LOAD(x + q);
          STORE(FMA(a, cosine[j - i], -(b * sine[j - i])), y + p);
          STORE(FMA(b, cosine[j - i], a * sine[j - i]), y + q);
        }
      }
    }
  }
  for (int h = turned; h < heads; ++h) {
    for (int p = 0; p < depth; ++p) dst[(long)h * depth + p] = src[h * src_h + p];
  }
}
