// Rotary positions (Su et al. 2021). src [N, T, H, D] with strides and D neighbours, dst dense [N, T, H, D]. Pair i of the
// R = `pairs` of token t turns by the angle (first + t) * f with f = base^(-2 i / D), or table[i] where there is one, and
// grows by `scale`; `turn` is scale, or -scale to turn back. Pairs are (i, i + R), or where interleaved (2 i, 2 i + 1).
// The other values of a head, and heads from `turned` on, are copied. A group takes one token: its angles serve all
// heads.
// Program: transformer

static inline void rotary_pair(const vreal a, const vreal b, const vreal c, const vreal s, vreal* x, vreal* y) {
  *x = FMA(a, c, -(b * s));
  *y = FMA(b, c, a * s);
}

// Groups: x = T, y = N. step = 2 / D * log2(base).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void rotary(
    ARRAY(const stored, src), ARRAY(const real, table), ARRAY(stored, dst), const long src_n, const long src_t,
    const long src_h, const int heads, const int turned, const int depth, const int pairs, const int interleaved,
    const int has_table, const real step, const real scale, const real turn, const long first) {
  START(src);
  START(table);
  START(dst);
  const long t = get_group_id(0), n = get_group_id(1);
  const int whole = pairs / VW * VW;
  const real position = (real)(first + t);
  src += n * src_n + t * src_t;
  dst += (n * (long)get_num_groups(0) + t) * heads * depth;
  real lane[VW], cosine[VW], sine[VW];
  for (int i = 0; i < VW; ++i) lane[i] = (real)i;
  const vreal lanes = VLOAD(lane);
  for (int i = 0; i < pairs; i += VW) {
    const vreal angle =
        position * (has_table ? sb_load(table + i, pairs - i, pairs - i, 0) : sb_exp2((lanes + (real)i) * -step));
    const vreal c = sb_cos(angle) * scale, s = sb_sin(angle) * turn;
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
          rotary_pair(VLOAD(x + i), VLOAD(x + pairs + i), c, s, &a, &b);
          VSTORE(a, y + i);
          VSTORE(b, y + pairs + i);
        }
      }
    } else {
      VSTORE(c, cosine);
      VSTORE(s, sine);
      for (int h = 0; h < turned; ++h) {
        const __global stored* x = src + h * src_h;
        __global stored* y = dst + (long)h * depth;
        for (int j = i; j < pairs; ++j) {
          const int p = interleaved ? 2 * j : j, q = interleaved ? p + 1 : j + pairs;
          const real a = LOAD(x + p), b = LOAD(x + q);
          STORE(FMA(a, cosine[j - i], -(b * sine[j - i])), y + p);
          STORE(FMA(b, cosine[j - i], a * sine[j - i]), y + q);
        }
      }
    }
  }
  for (int h = 0; h < heads; ++h) {
    for (int p = h < turned ? 2 * pairs : 0; p < depth; ++p) dst[(long)h * depth + p] = src[h * src_h + p];
  }
}
