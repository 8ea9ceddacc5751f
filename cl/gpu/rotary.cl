// Rotary positions (Su et al. 2021). src [N, T, H, D] with strides and D neighbours, dst dense [N, T, H, D]. Pair i of the
// R = `pairs` of token t turns by the angle (first + t) * f with f = base^(-2 i / D), or table[i] where there is one, and
// grows by `scale`; `turn` is scale, or -scale to turn back. Pairs are (i, i + R), or where interleaved (2 i, 2 i + 1).
// The other values of a head, and heads from `turned` on, are copied. A group takes one token.
// Program: transformer

#define ROTARY_ITEMS 64

// Groups: x = T, y = N. step = 2 / D * log2(base).
__kernel __attribute__((reqd_work_group_size(ROTARY_ITEMS, 1, 1))) void rotary(
    ARRAY(const stored, src), ARRAY(const real, table), ARRAY(stored, dst), const long src_n, const long src_t,
    const long src_h, const int heads, const int turned, const int depth, const int pairs, const int interleaved,
    const int has_table, const real step, const real scale, const real turn, const long first) {
  START(src);
  START(table);
  START(dst);
  const long t = get_group_id(0), n = get_group_id(1);
  const int item = get_local_id(0);
  const real position = (real)(first + t);
  src += n * src_n + t * src_t;
  dst += (n * (long)get_num_groups(0) + t) * heads * depth;
  for (int e = item; e < turned * pairs; e += ROTARY_ITEMS) {
    const int h = e / pairs, i = e - h * pairs;
    const real angle = position * (has_table ? table[i] : exp2((real)i * -step));
    const real c = cos(angle) * scale, s = sin(angle) * turn;
    const int p = interleaved ? 2 * i : i, q = interleaved ? p + 1 : i + pairs;
    const real a = LOAD(src + h * src_h + p), b = LOAD(src + h * src_h + q);
    STORE(FMA(a, c, -(b * s)), dst + (long)h * depth + p);
    STORE(FMA(b, c, a * s), dst + (long)h * depth + q);
  }
  for (int e = item; e < heads * depth; e += ROTARY_ITEMS) {
    const int h = e / depth, p = e - h * depth;
    if (h >= turned || p >= 2 * pairs) dst[e] = src[h * src_h + p];
  }
}
