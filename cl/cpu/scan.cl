// Running sums. Letters: O outer, D the axis, I inner sizes of dense arrays [O, D, I]. A line along D is cut into parts
// of SCAN_CHUNK, which are summed on their own; the totals of the parts are summed the same way and added. `reversed`:
// positions count from the end of the axis.

#define SCAN_CHUNK 4096  // of the axis, one part
#define SCAN_TILE 1024   // columns of I of one group

#define SCAN_PLACE(d) (reversed ? depth - 1 - (d) : (d))

// scan_parts: dst [O, D, I] = the sum of the elements of its part up to each (`exclusive`: before each), totals [O,
// parts, I] (may be null) of the whole parts. scan_offsets: dst += offsets [O, parts, I] of its part.
// Geometry: over_rows, a group for each (o, part, SCAN_TILE columns), the columns fastest.
#define SCAN_KERNELS(suffix, T)                                                                                 \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(scan_parts_, suffix)(                    \
      ARRAY(const T, src), ARRAY_INPLACE(T, dst), ARRAY(T, totals), const long depth, const long inner,         \
      const int reversed, const int exclusive) {                                                                \
    START(src);                                                                                                 \
    START(dst);                                                                                                 \
    START(totals);                                                                                              \
    const long tiles = (inner + SCAN_TILE - 1) / SCAN_TILE, parts = (depth + SCAN_CHUNK - 1) / SCAN_CHUNK;      \
    const long line = (long)get_group_id(0) / tiles, tile = (long)get_group_id(0) - line * tiles;               \
    const long o = line / parts, part = line - o * parts;                                                       \
    const long column = tile * SCAN_TILE, columns = min((long)SCAN_TILE, inner - column);                       \
    const long first = part * SCAN_CHUNK, end = min(depth, first + SCAN_CHUNK);                                 \
    if (inner == 1) {                                                                                           \
      T sum = 0;                                                                                                \
      for (long d = first; d < end; ++d) {                                                                      \
        const long at = o * depth + SCAN_PLACE(d);                                                              \
        const T x = src[at];                                                                                    \
        dst[at] = exclusive ? sum : sum + x;                                                                    \
        sum += x;                                                                                               \
      }                                                                                                         \
      if (totals) totals[line] = sum;                                                                           \
      return;                                                                                                   \
    }                                                                                                           \
    for (long d = first; d < end; ++d) {                                                                        \
      const long at = (o * depth + SCAN_PLACE(d)) * inner + column, step = reversed ? inner : -inner;           \
      const __global T* x = src + (exclusive ? at + step : at);                                                 \
      const __global T* before = dst + at + step;                                                               \
      __global T* to = dst + at;                                                                                \
      if (d > first) {                                                                                          \
        for (long i = 0; i < columns; ++i) to[i] = before[i] + x[i];                                            \
      } else {                                                                                                  \
        for (long i = 0; i < columns; ++i) to[i] = exclusive ? 0 : x[i];                                        \
      }                                                                                                         \
    }                                                                                                           \
    if (!totals) return;                                                                                        \
    const long last = (o * depth + SCAN_PLACE(end - 1)) * inner + column;                                       \
    for (long i = 0; i < columns; ++i)                                                                          \
      totals[line * inner + column + i] = exclusive ? dst[last + i] + src[last + i] : dst[last + i];            \
  }                                                                                                             \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(scan_offsets_, suffix)(                  \
      ARRAY_INPLACE(T, dst), ARRAY(const T, offsets), const long depth, const long inner, const int reversed) { \
    START(dst);                                                                                                 \
    START(offsets);                                                                                             \
    const long tiles = (inner + SCAN_TILE - 1) / SCAN_TILE, parts = (depth + SCAN_CHUNK - 1) / SCAN_CHUNK;      \
    const long line = (long)get_group_id(0) / tiles, tile = (long)get_group_id(0) - line * tiles;               \
    const long o = line / parts, part = line - o * parts;                                                       \
    const long column = tile * SCAN_TILE, columns = min((long)SCAN_TILE, inner - column);                       \
    const long first = part * SCAN_CHUNK, end = min(depth, first + SCAN_CHUNK);                                 \
    const __global T* offset = offsets + line * inner + column;                                                 \
    if (inner == 1) {                                                                                           \
      __global T* to = dst + o * depth + (reversed ? depth - end : first);                                      \
      const T x = offset[0];                                                                                    \
      for (long i = 0; i < end - first; ++i) to[i] += x;                                                        \
      return;                                                                                                   \
    }                                                                                                           \
    for (long d = first; d < end; ++d) {                                                                        \
      __global T* to = dst + (o * depth + SCAN_PLACE(d)) * inner + column;                                      \
      for (long i = 0; i < columns; ++i) to[i] += offset[i];                                                    \
    }                                                                                                           \
  }

SCAN_KERNELS(real, real)
SCAN_KERNELS(i32, int)
SCAN_KERNELS(i64, long)

// Products run along D in its order, in whatever way lines are taken together: I = 1: squares of VW lines and VW
// places, turned so that a lane is a line; I > 1: neighbouring lines side by side.
#define SCAN_LINES 128  // of I, one after the other in memory

static inline void scan_load_square(vreal* r, const __global real* p, const long depth) {
#pragma unroll
  for (int i = 0; i < VW; ++i) r[i] = VLOAD(p + i * depth);
  sb_transpose(r);
}
static inline void scan_store_square(vreal* r, __global real* p, const long depth) {
  sb_transpose(r);
#pragma unroll
  for (int i = 0; i < VW; ++i) VSTORE(r[i], p + i * depth);
}
// How many lines from `line` on, before `end`, are neighbours of it.
static inline int scan_lines(const long line, const long end, const long inner) {
  return (int)min(min((long)SCAN_LINES, inner - line % inner), end - line);
}

// dst [O, D, I] = the running product of src along D. Geometry: over_elements(O * I), stretches of lines.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void scan_product(ARRAY(const real, src), ARRAY(real, dst),
                                                                          const long outer, const long depth,
                                                                          const long inner) {
  START(src);
  START(dst);
  const long end = SB_END(outer * inner);
  long line = SB_BEGIN(outer * inner);
  real product[SCAN_LINES];
  while (line < end) {
    const long at = line / inner * (depth - 1) * inner + line;
    if (inner > 1) {
      const int lines = scan_lines(line, end, inner);
      for (int c = 0; c < lines; c += VW) {
        vreal p = 1;
        VSTORE(p, product + c);
      }
      for (long d = 0; d < depth; ++d)
        for (int c = 0; c < lines; c += VW) {
          const long e = at + d * inner + c;
          const vreal p = VLOAD(product + c) * sb_load(src + e, lines - c, lines - c, 1);
          VSTORE(p, product + c);
          sb_store(p, dst + e, lines - c);
        }
      line += lines;
      continue;
    }
    const int lines = end - line >= VW ? VW : 1;
    long d = 0;
    VSTORE((vreal)(1), product);
    if (lines == VW) {
      vreal p = 1;
      for (; d + VW <= depth; d += VW) {
        vreal square[VW];
        scan_load_square(square, src + at + d, depth);
#pragma unroll
        for (int i = 0; i < VW; ++i) square[i] = p = p * square[i];
        scan_store_square(square, dst + at + d, depth);
      }
      VSTORE(p, product);
    }
    for (int i = 0; i < lines; ++i) {
      real p = product[i];
      for (long rest = d; rest < depth; ++rest) {
        p *= src[at + i * depth + rest];
        dst[at + i * depth + rest] = p;
      }
    }
    line += lines;
  }
}

// dx of scan_product from dst, its result: dx[d] = dst[d - 1] * s[d] with s[d] = dy[d] + src[d + 1] * s[d + 1], which
// divides by nothing. Geometry: over_elements(O * I), stretches of lines.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void scan_product_bwd(ARRAY(const real, src),
                                                                              ARRAY(const real, dst),
                                                                              ARRAY(const real, dy), ARRAY(real, dx),
                                                                              const long outer, const long depth,
                                                                              const long inner) {
  START(src);
  START(dst);
  START(dy);
  START(dx);
  const long end = SB_END(outer * inner);
  long line = SB_BEGIN(outer * inner);
  real sums[SCAN_LINES];
  while (line < end) {
    const long at = line / inner * (depth - 1) * inner + line;
    if (inner > 1) {
      const int lines = scan_lines(line, end, inner);
      for (long d = depth - 1; d >= 0; --d)
        for (int c = 0; c < lines; c += VW) {
          const long e = at + d * inner + c;
          const int left = lines - c;
          vreal sum = sb_load(dy + e, left, left, 0);
          if (d + 1 < depth) sum = FMA(sb_load(src + e + inner, left, left, 0), VLOAD(sums + c), sum);
          VSTORE(sum, sums + c);
          sb_store(d > 0 ? sb_load(dst + e - inner, left, left, 0) * sum : sum, dx + e, left);
        }
      line += lines;
      continue;
    }
    const int lines = end - line >= VW ? VW : 1;
    long d = depth - 1;  // the places above d are done
    for (int i = 0; i < lines; ++i) {
      const long e = at + i * depth + d;
      sums[i] = dy[e];
      dx[e] = d > 0 ? dst[e - 1] * sums[i] : sums[i];
    }
    if (lines == VW) {
      vreal sum = VLOAD(sums);
      for (; d - VW >= 1; d -= VW) {
        vreal next[VW], before[VW], square[VW];
        scan_load_square(next, src + at + d - VW + 1, depth);
        scan_load_square(square, dy + at + d - VW, depth);
        scan_load_square(before, dst + at + d - VW - 1, depth);
#pragma unroll
        for (int i = VW - 1; i >= 0; --i) {
          sum = FMA(next[i], sum, square[i]);
          square[i] = before[i] * sum;
        }
        scan_store_square(square, dx + at + d - VW, depth);
      }
      VSTORE(sum, sums);
    }
    for (int i = 0; i < lines; ++i) {
      real sum = sums[i];
      for (long rest = d - 1; rest >= 0; --rest) {
        const long e = at + i * depth + rest;
        sum = FMA(src[e + 1], sum, dy[e]);
        dx[e] = rest > 0 ? dst[e - 1] * sum : sum;
      }
    }
    line += lines;
  }
}
#undef SCAN_LINES

// Draws with replacement: dst [rows, samples] = the class of weights [rows, classes] in whose part of the running sum
// `sums` lies u, from 0 to 1, times their total; -1 where the total is not above 0. A class of weight 0 is never drawn,
// also where sums round up and down. Geometry: over_elements(rows * samples), a draw per item.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void scan_places(ARRAY(const real, weights),
                                                                         ARRAY(const real, sums), ARRAY(const real, u),
                                                                         ARRAY(int, dst), const long rows,
                                                                         const long classes, const long samples) {
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
