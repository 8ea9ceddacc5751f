// Running sums. Letters: O outer, D the axis, I inner sizes of dense arrays [O, D, I]. A line along D is cut into parts
// of SCAN_CHUNK, which are summed on their own; the totals of the parts are summed the same way and added. `reversed`:
// positions count from the end of the axis.

#define SCAN_CHUNK 1024  // of the axis, one part
#define SCAN_TILE 64     // columns of I of one group; its work-items where I > 1
#define SCAN_ITEMS 256   // most work-items of a group

#define SCAN_PLACE(d) (reversed ? depth - 1 - (d) : (d))

// scan_parts: dst [O, D, I] = the sum of the elements of its part up to each (`exclusive`: before each), totals [O,
// parts, I] (may be null) of the whole parts. scan_offsets: dst += offsets [O, parts, I] of its part.
// Geometry: over_rows, a group for each (o, part, SCAN_TILE columns), the columns fastest. Where I is 1 the items take
// neighbouring stretches of the part, else a column each.
#define SCAN_KERNELS(suffix, T)                                                                                  \
  __kernel void SB_JOIN(scan_parts_, suffix)(ARRAY(const T, src), ARRAY_INPLACE(T, dst), ARRAY(T, totals),       \
                                             const long depth, const long inner, const int reversed,             \
                                             const int exclusive) {                                              \
    START(src);                                                                                                  \
    START(dst);                                                                                                  \
    START(totals);                                                                                               \
    __local T sums[SCAN_ITEMS];                                                                                  \
    const long tiles = (inner + SCAN_TILE - 1) / SCAN_TILE, parts = (depth + SCAN_CHUNK - 1) / SCAN_CHUNK;       \
    const long line = (long)get_group_id(0) / tiles, tile = (long)get_group_id(0) - line * tiles;                \
    const long o = line / parts, part = line - o * parts;                                                        \
    const long first = part * SCAN_CHUNK, end = min(depth, first + SCAN_CHUNK);                                  \
    const int item = (int)get_local_id(0), items = (int)get_local_size(0);                                       \
    const bool shares = inner == 1;                                                                              \
    const long share = shares ? (end - first + items - 1) / items : end - first;                                 \
    const long begin = shares ? min(end, first + item * share) : first, stop = min(end, begin + share);          \
    const long column = shares ? 0 : tile * SCAN_TILE + item;                                                    \
    const bool is_there = column < inner;                                                                        \
    T sum = 0;                                                                                                   \
    if (shares)                                                                                                  \
      for (long d = begin; d < stop; ++d) sum += src[o * depth + SCAN_PLACE(d)];                                 \
    sums[item] = sum;                                                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                \
    for (int step = 1; step < items; step *= 2) {                                                                \
      const T before = item >= step ? sums[item - step] : 0;                                                     \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
      sums[item] += before;                                                                                      \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
    }                                                                                                            \
    sum = shares && item > 0 ? sums[item - 1] : 0;                                                               \
    if (is_there)                                                                                                \
      for (long d = begin; d < stop; ++d) {                                                                      \
        const long at = (o * depth + SCAN_PLACE(d)) * inner + column;                                            \
        const T x = src[at];                                                                                     \
        dst[at] = exclusive ? sum : sum + x;                                                                     \
        sum += x;                                                                                                \
      }                                                                                                          \
    if (totals && is_there && (!shares || item == items - 1)) totals[line * inner + column] = sum;               \
  }                                                                                                              \
  __kernel void SB_JOIN(scan_offsets_, suffix)(ARRAY_INPLACE(T, dst), ARRAY(const T, offsets), const long depth, \
                                               const long inner, const int reversed) {                           \
    START(dst);                                                                                                  \
    START(offsets);                                                                                              \
    const long tiles = (inner + SCAN_TILE - 1) / SCAN_TILE, parts = (depth + SCAN_CHUNK - 1) / SCAN_CHUNK;       \
    const long line = (long)get_group_id(0) / tiles, tile = (long)get_group_id(0) - line * tiles;                \
    const long o = line / parts, part = line - o * parts;                                                        \
    const long first = part * SCAN_CHUNK, end = min(depth, first + SCAN_CHUNK);                                  \
    const int item = (int)get_local_id(0), items = (int)get_local_size(0);                                       \
    const bool shares = inner == 1;                                                                              \
    const long column = shares ? 0 : tile * SCAN_TILE + item;                                                    \
    if (column < inner) {                                                                                        \
      const T offset = offsets[line * inner + column];                                                           \
      for (long d = shares ? first + item : first; d < end; d += shares ? items : 1)                             \
        dst[(o * depth + SCAN_PLACE(d)) * inner + column] += offset;                                             \
    }                                                                                                            \
  }

SCAN_KERNELS(real, real)
SCAN_KERNELS(i32, int)
SCAN_KERNELS(i64, long)

// dst [O, D, I] = the running product of src along D. Geometry: over_elements(O * I), a line per item.
__kernel void scan_product(ARRAY(const real, src), ARRAY(real, dst), const long outer, const long depth,
                           const long inner) {
  START(src);
  START(dst);
  const long end = SB_END(outer * inner);
  for (long line = SB_BEGIN(outer * inner); line < end; ++line) {
    const long o = line / inner, at = o * (depth - 1) * inner + line;
    real product = 1;
    for (long d = 0; d < depth; ++d) {
      product *= src[at + d * inner];
      dst[at + d * inner] = product;
    }
  }
}

// dx of scan_product from dst, its result: dx[d] = dst[d - 1] * s[d] with s[d] = dy[d] + src[d + 1] * s[d + 1], which
// divides by nothing. Geometry: over_elements(O * I).
__kernel void scan_product_bwd(ARRAY(const real, src), ARRAY(const real, dst), ARRAY(const real, dy), ARRAY(real, dx),
                               const long outer, const long depth, const long inner) {
  START(src);
  START(dst);
  START(dy);
  START(dx);
  const long end = SB_END(outer * inner);
  for (long line = SB_BEGIN(outer * inner); line < end; ++line) {
    const long o = line / inner, at = o * (depth - 1) * inner + line;
    real sum = 0;
    for (long d = depth - 1; d >= 0; --d) {
      const long e = at + d * inner;
      sum = d + 1 < depth ? FMA(src[e + inner], sum, dy[e]) : dy[e];
      dx[e] = d > 0 ? dst[e - inner] * sum : sum;
    }
  }
}

// Draws with replacement: dst [rows, samples] = the class of weights [rows, classes] in whose part of the running sum
// `sums` lies u, from 0 to 1, times their total; -1 where the total is not above 0. A class of weight 0 is never drawn,
// also where sums round up and down. Geometry: over_elements(rows * samples), a draw per item.
__kernel void scan_places(ARRAY(const real, weights), ARRAY(const real, sums), ARRAY(const real, u),
                            ARRAY(int, dst), const long rows, const long classes, const long samples) {
  START(weights);
  START(sums);
  START(u);
  START(dst);
  const long end = SB_END(rows * samples);
  for (long i = SB_BEGIN(rows * samples); i < end; ++i) {
    const long row = i / samples * classes;
    const real total = sums[row + classes - 1], wanted = u[i] * total;
    long low = 0, high = classes - 1;  // the first class whose sum is above what is wanted, or all there is
    while (low < high) {
      const long middle = low + (high - low) / 2;
      if (sums[row + middle] > wanted || sums[row + middle] >= total)
        high = middle;
      else
        low = middle + 1;
    }
    while (low + 1 < classes && !(weights[row + low] > 0)) ++low;
    while (low > 0 && !(weights[row + low] > 0)) --low;
    dst[i] = total > 0 ? (int)low : -1;
  }
}

#undef SCAN_PLACE
#undef SCAN_KERNELS
