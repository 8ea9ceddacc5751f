// Rotary positions (Su et al. 2021). src [N, T, H, D] with strides and D neighbours, dst dense [N, T, H, D], D even. Pair i
// of token t turns by the angle (first + t) * base^(-2 i / D), with `sign` 1, or back with -1. Pairs are (i, i + D / 2), or
// where interleaved (2 i, 2 i + 1). Heads from `turned` on are copied. A group takes one token.
// Program: transformer

#define ROTARY_ITEMS 64

// Groups: x = T, y = N. step = 2 / D * log2(base).
__kernel __attribute__((reqd_work_group_size(ROTARY_ITEMS, 1, 1))) void rotary(
    ARRAY(const stored, src), ARRAY(stored, dst), const long src_n, const long src_t, const long src_h, const int heads,
    const int turned, const int depth, const int interleaved, const real step, const real sign, const long first) {
  START(src);
  START(dst);
  const long t = get_group_id(0), n = get_group_id(1);
  const int half_depth = depth / 2, item = get_local_id(0);
  const real position = (real)(first + t);
  src += n * src_n + t * src_t;
  dst += (n * (long)get_num_groups(0) + t) * heads * depth;
  for (int e = item; e < turned * half_depth; e += ROTARY_ITEMS) {
    const int h = e / half_depth, i = e - h * half_depth;
    const real angle = position * exp2((real)i * -step);
    const real c = cos(angle), s = sin(angle) * sign;
    const int p = interleaved ? 2 * i : i, q = interleaved ? p + 1 : i + half_depth;
    const real a = LOAD(src + h * src_h + p), b = LOAD(src + h * src_h + q);
    STORE(FMA(a, c, -(b * s)), dst + (long)h * depth + p);
    STORE(FMA(b, c, a * s), dst + (long)h * depth + q);
  }
  for (int e = turned * depth + item; e < heads * depth; e += ROTARY_ITEMS) {
    const int h = e / depth;
    dst[e] = src[h * src_h + e - h * depth];
  }
}
