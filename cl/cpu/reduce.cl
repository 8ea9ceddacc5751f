// Reductions. Letters: O outer, R reduced, I inner sizes of a dense src [O, R, I]; dst is [O, parts, I], where part p
// covers the rows [p * rows_per_part, ...) of R. One launch per pass: the host splits R by shape and reduces the parts
// again, so results do not depend on the number of threads. `what`: 0 sum, 1 max, 2 min (NaN wins), 3 sum of squares, 4
// product, 5 root of the sum of squares (3 and 5: reduce_rows only); every result but a root is divided by `divisor`.
// Program: core

#define REDUCE_ACC 2048       // columns that one work-item of reduce_columns can hold
#define REDUCE_BLOCK_ROWS 64  // additions to one accumulator before it is added to the total
#define REDUCE_ADD2(a, b) ((a) + (b))
#define REDUCE_MULTIPLY2(a, b) ((a) * (b))

// One row of n elements: four vectors in flight, blocks of REDUCE_BLOCK_ROWS so that rounding errors grow with the
// square root of what is left.
#define REDUCE_DEFINE(what, COMBINE, FIRST, T)                                                                  \
  SB_OVERLOAD vreal reduce_row_##what(const __global T* p, const long n, const long readable) {                 \
    vreal total = FIRST;                                                                                        \
    long i = 0;                                                                                                 \
    while (n - i >= 4 * VW) {                                                                                   \
      const long end = i + min((n - i) / (4 * VW), (long)REDUCE_BLOCK_ROWS) * (4 * VW);                         \
      vreal a = FIRST, b = FIRST, c = FIRST, d = FIRST;                                                         \
      for (; i < end; i += 4 * VW) {                                                                            \
        a = COMBINE(a, VLOAD(p + i));                                                                           \
        b = COMBINE(b, VLOAD(p + i + VW));                                                                      \
        c = COMBINE(c, VLOAD(p + i + 2 * VW));                                                                  \
        d = COMBINE(d, VLOAD(p + i + 3 * VW));                                                                  \
      }                                                                                                         \
      total = COMBINE(total, COMBINE(COMBINE(a, b), COMBINE(c, d)));                                            \
    }                                                                                                           \
    for (; i < n; i += VW) total = COMBINE(total, sb_load(p + i, n - i, readable - i, FIRST));                  \
    return total;                                                                                               \
  }                                                                                                             \
  /* acc[0 .. width) over `steps` rows that lie `stride` apart; lanes beyond width hold FIRST. */               \
  SB_OVERLOAD void reduce_rows_into_##what(real* acc, const __global T* p, const long steps, const long stride, \
                                           const int width, const long readable) {                              \
    long s = 0;                                                                                                 \
    for (; s + 4 <= steps; s += 4, p += 4 * stride) {                                                           \
      int c = 0;                                                                                                \
      for (; c + VW <= width; c += VW) {                                                                        \
        const vreal low = COMBINE(VLOAD(p + c), VLOAD(p + stride + c));                                         \
        const vreal high = COMBINE(VLOAD(p + 2 * stride + c), VLOAD(p + 3 * stride + c));                       \
        VSTORE(COMBINE(VLOAD(acc + c), COMBINE(low, high)), acc + c);                                           \
      }                                                                                                         \
      if (c < width) {                                                                                          \
        const long left = width - c, room = readable - s * stride - c;                                          \
        const vreal low =                                                                                       \
            COMBINE(sb_load(p + c, left, room, FIRST), sb_load(p + stride + c, left, room - stride, FIRST));    \
        const vreal high = COMBINE(sb_load(p + 2 * stride + c, left, room - 2 * stride, FIRST),                 \
                                   sb_load(p + 3 * stride + c, left, room - 3 * stride, FIRST));                \
        VSTORE(COMBINE(VLOAD(acc + c), COMBINE(low, high)), acc + c);                                           \
      }                                                                                                         \
    }                                                                                                           \
    for (; s < steps; ++s, p += stride)                                                                         \
      for (int c = 0; c < width; c += VW)                                                                       \
        VSTORE(COMBINE(VLOAD(acc + c), sb_load(p + c, width - c, readable - s * stride - c, FIRST)), acc + c);  \
  }
#define REDUCE_DEFINE_ALL(T)                     \
  REDUCE_DEFINE(sum, REDUCE_ADD2, 0, T)          \
  REDUCE_DEFINE(product, REDUCE_MULTIPLY2, 1, T) \
  REDUCE_DEFINE(max, sb_max2, -INFINITY, T)      \
  REDUCE_DEFINE(min, sb_min2, INFINITY, T)
REDUCE_DEFINE_ALL(real)
#ifdef SAMEBYTES_STORE_16
REDUCE_DEFINE_ALL(stored)
#endif
#undef REDUCE_DEFINE_ALL

// As reduce_row_sum, of the squares.
#define REDUCE_DEFINE_SQUARES(T)                                                                                   \
  SB_OVERLOAD vreal reduce_row_squares(const __global T* p, const long n, const long readable) {                   \
    vreal total = 0;                                                                                               \
    long i = 0;                                                                                                    \
    while (n - i >= 4 * VW) {                                                                                      \
      const long end = i + min((n - i) / (4 * VW), (long)REDUCE_BLOCK_ROWS) * (4 * VW);                            \
      vreal a = 0, b = 0, c = 0, d = 0;                                                                            \
      for (; i < end; i += 4 * VW) {                                                                               \
        const vreal w = VLOAD(p + i), x = VLOAD(p + i + VW), y = VLOAD(p + i + 2 * VW), z = VLOAD(p + i + 3 * VW); \
        a = FMA(w, w, a);                                                                                          \
        b = FMA(x, x, b);                                                                                          \
        c = FMA(y, y, c);                                                                                          \
        d = FMA(z, z, d);                                                                                          \
      }                                                                                                            \
      total += (a + b) + (c + d);                                                                                  \
    }                                                                                                              \
    for (; i < n; i += VW) {                                                                                       \
      const vreal v = sb_load(p + i, n - i, readable - i, 0);                                                      \
      total = FMA(v, v, total);                                                                                    \
    }                                                                                                              \
    return total;                                                                                                  \
  }
REDUCE_DEFINE_SQUARES(real)
#ifdef SAMEBYTES_STORE_16
REDUCE_DEFINE_SQUARES(stored)
#endif
#undef REDUCE_DEFINE_SQUARES

static inline real reduce_min_lanes(const vreal v) { return -sb_max(-v); }
static inline real reduce_product_lanes(const vreal v) {
  real lanes[VW];
  VSTORE(v, lanes);
  for (int step = VW / 2; step > 0; step /= 2)
    for (int lane = 0; lane < step; ++lane) lanes[lane] *= lanes[lane + step];
  return lanes[0];
}

// I = 1: src [rows, columns] -> dst [rows, parts]; part p of a row covers columns [p * chunk, ...).
// Geometry: a work-group takes rows_per_group of the rows * parts results.
//
// I > 1. A work-group (in the order tile, part, outer_per_group outer indices) accumulates one part of `tile` columns
// in a private row. Narrow rows are folded: `fold` rows of I elements are taken as one of fold * I (fold > 1 needs tile
// = I), added up at the end.
//
// Besides stored to stored, for parts of a long 16-bit reduction: from stored to real (_part), from real to stored
// (_total).
// The sums of VW rows of up to VW columns, turned so that a lane is a row. Reads a vector behind them.
#define REDUCE_SHORT_ROWS(SUFFIX, S, D)                                                                          \
  static void SB_JOIN(reduce_short_rows, SUFFIX)(const __global S* p, __global D* dst, const long columns,       \
                                                 const real divisor) {                                           \
    const vmask is_column = SB_LANES < (vmask)((real_int)columns);                                               \
    vreal r[VW];                                                                                                 \
    _Pragma("unroll") for (int i = 0; i < VW; ++i) r[i] = select((vreal)(0), VLOAD(p + i * columns), is_column); \
    sb_transpose(r);                                                                                             \
    _Pragma("unroll") for (int step = VW / 2; step > 0; step /= 2) {                                             \
      _Pragma("unroll") for (int c = 0; c < step; ++c) r[c] += r[c + step];                                      \
    }                                                                                                            \
    VSTORE(r[0] / divisor, dst);                                                                                 \
  }
#define REDUCE_ROWS(SUFFIX, S, D)                                                                                \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(reduce_rows, SUFFIX)(                     \
      ARRAY(const S, src), ARRAY(D, dst), const int what, const long rows, const long columns, const long parts, \
      const long chunk, const int rows_per_group, const real divisor) {                                          \
    START(src);                                                                                                  \
    START(dst);                                                                                                  \
    const long first = (long)get_group_id(0) * rows_per_group, end = min(rows * parts, first + rows_per_group);  \
    for (long result = first; result < end; ++result) {                                                          \
      if (what == 0 && columns <= VW && end - result >= VW && (rows - result) * columns >= VW * columns + VW) {  \
        SB_JOIN(reduce_short_rows, SUFFIX)(src + result * columns, dst + result, columns, divisor);              \
        result += VW - 1;                                                                                        \
        continue;                                                                                                \
      }                                                                                                          \
      const long row = result / parts, begin = (result - row * parts) * chunk, n = min(chunk, columns - begin);  \
      const long at = row * columns + begin, readable = rows * columns - at;                                     \
      real value;                                                                                                \
      if (what == 0) {                                                                                           \
        value = sb_sum(reduce_row_sum(src + at, n, readable));                                                   \
      } else if (what == 3 || what == 5) {                                                                       \
        value = sb_sum(reduce_row_squares(src + at, n, readable));                                               \
      } else if (what == 4) {                                                                                    \
        value = reduce_product_lanes(reduce_row_product(src + at, n, readable));                                 \
      } else if (what == 1) {                                                                                    \
        value = sb_max(reduce_row_max(src + at, n, readable));                                                   \
      } else {                                                                                                   \
        value = reduce_min_lanes(reduce_row_min(src + at, n, readable));                                         \
      }                                                                                                          \
      STORE(what == 5 ? sqrt(value) : value / divisor, dst + result);                                            \
    }                                                                                                            \
  }
#define REDUCE_COLUMNS(SUFFIX, S, D)                                                                              \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(reduce_columns, SUFFIX)(                   \
      ARRAY(const S, src), ARRAY(D, dst), const int what, const long outer, const long reduced, const long inner, \
      const long parts, const long rows_per_part, const int fold, const long tile, const long outer_per_group,    \
      const real divisor) {                                                                                       \
    START(src);                                                                                                   \
    START(dst);                                                                                                   \
    const long tiles = (inner + tile - 1) / tile;                                                                 \
    const long first_column = (long)get_group_id(0) % tiles * tile, columns = min(tile, inner - first_column);    \
    const long part = (long)get_group_id(0) / tiles % parts, group = (long)get_group_id(0) / (tiles * parts);     \
    const long first_row = part * rows_per_part, rows = min(rows_per_part, reduced - first_row);                  \
    const int width = (int)(fold > 1 ? fold * inner : columns);                                                   \
    const long stride = fold * inner, rest = rows % fold * inner;                                                 \
    const vreal empty = what == 0 ? (real)0 : what == 1 ? (real)-INFINITY : what == 2 ? (real)INFINITY : (real)1; \
    real acc[REDUCE_ACC];                                                                                         \
    const long end = min(outer, (group + 1) * outer_per_group);                                                   \
    for (long o = group * outer_per_group; o < end; ++o) {                                                        \
      const long at = (o * reduced + first_row) * inner + first_column, readable = outer * reduced * inner - at;  \
      const long behind = rows / fold * stride;                                                                   \
      for (int c = 0; c < width; c += VW) VSTORE(empty, acc + c);                                                 \
      __global D* to = dst + (o * parts + part) * inner + first_column;                                           \
      if (what == 0) {                                                                                            \
        reduce_rows_into_sum(acc, src + at, rows / fold, stride, width, readable);                                \
        reduce_rows_into_sum(acc, src + at + behind, rest > 0, stride, (int)rest, readable - behind);             \
        for (int f = 1; f < fold; ++f)                                                                            \
          for (int c = 0; c < inner; ++c) acc[c] += acc[f * inner + c];                                           \
      } else if (what == 4) {                                                                                     \
        reduce_rows_into_product(acc, src + at, rows / fold, stride, width, readable);                            \
        reduce_rows_into_product(acc, src + at + behind, rest > 0, stride, (int)rest, readable - behind);         \
        for (int f = 1; f < fold; ++f)                                                                            \
          for (int c = 0; c < inner; ++c) acc[c] *= acc[f * inner + c];                                           \
      } else if (what == 1) {                                                                                     \
        reduce_rows_into_max(acc, src + at, rows / fold, stride, width, readable);                                \
        reduce_rows_into_max(acc, src + at + behind, rest > 0, stride, (int)rest, readable - behind);             \
        for (int f = 1; f < fold; ++f)                                                                            \
          for (int c = 0; c < inner; ++c) {                                                                       \
            const real a = acc[c], b = acc[f * inner + c];                                                        \
            acc[c] = b > a || b != b ? b : a;                                                                     \
          }                                                                                                       \
      } else {                                                                                                    \
        reduce_rows_into_min(acc, src + at, rows / fold, stride, width, readable);                                \
        reduce_rows_into_min(acc, src + at + behind, rest > 0, stride, (int)rest, readable - behind);             \
        for (int f = 1; f < fold; ++f)                                                                            \
          for (int c = 0; c < inner; ++c) {                                                                       \
            const real a = acc[c], b = acc[f * inner + c];                                                        \
            acc[c] = b < a || b != b ? b : a;                                                                     \
          }                                                                                                       \
      }                                                                                                           \
      for (int c = 0; c < columns; c += VW) sb_store(VLOAD(acc + c) / divisor, to + c, columns - c);              \
    }                                                                                                             \
  }
#define REDUCE_KERNELS(SUFFIX, S, D) \
  REDUCE_SHORT_ROWS(SUFFIX, S, D) REDUCE_ROWS(SUFFIX, S, D) REDUCE_COLUMNS(SUFFIX, S, D)
REDUCE_KERNELS(, stored, stored)
#ifdef SAMEBYTES_STORE_16
REDUCE_KERNELS(_part, stored, real)
REDUCE_KERNELS(_total, real, stored)
#endif

// Whole numbers: src [O, R, I] -> dst [O, I], one result after the other. Sums and products wrap around.
// Geometry: over_elements(O * I).
#define REDUCE_WHOLE(SUFFIX, T, U)                                                                                  \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(reduce_, SUFFIX)(                            \
      ARRAY(const T, src), ARRAY(T, dst), const int what, const long outer, const long reduced, const long inner) { \
    START(src);                                                                                                     \
    START(dst);                                                                                                     \
    const long end = SB_END(outer * inner);                                                                         \
    for (long i = SB_BEGIN(outer * inner); i < end; ++i) {                                                          \
      const __global T* p = src + i / inner * reduced * inner + i % inner;                                          \
      T value = p[0];                                                                                               \
      if (what == 0) {                                                                                              \
        for (long r = 1; r < reduced; ++r) value = (T)((U)value + (U)p[r * inner]);                                 \
      } else if (what == 4) {                                                                                       \
        for (long r = 1; r < reduced; ++r) value = (T)((U)value * (U)p[r * inner]);                                 \
      } else if (what == 1) {                                                                                       \
        for (long r = 1; r < reduced; ++r) value = max(value, p[r * inner]);                                        \
      } else {                                                                                                      \
        for (long r = 1; r < reduced; ++r) value = min(value, p[r * inner]);                                        \
      }                                                                                                             \
      dst[i] = value;                                                                                               \
    }                                                                                                               \
  }
REDUCE_WHOLE(i32, int, uint)
REDUCE_WHOLE(i64, long, ulong)
#undef REDUCE_WHOLE

// The index in R of the first largest element; the first NaN is larger than everything. src [O, R, I] -> dst [O, I].
// Geometry: a work-group takes outer_per_group outer indices.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void reduce_argmax(ARRAY(const stored, src), ARRAY(int, dst),
                                                                           const long outer, const long reduced,
                                                                           const long inner,
                                                                           const long outer_per_group) {
  START(src);
  START(dst);
  const long end = min(outer, ((long)get_group_id(0) + 1) * outer_per_group);
  for (long o = (long)get_group_id(0) * outer_per_group; o < end; ++o) {
    const __global stored* p = src + o * reduced * inner;
    const long readable = (outer - o) * reduced * inner;
    if (inner == 1) {
      vreal best = sb_load(p, reduced, readable, -INFINITY);
      vmask index = 0;
      for (long i = VW; i < reduced; i += VW) {
        const vreal x = sb_load(p + i, reduced - i, readable - i, -INFINITY);
        const vmask better = (x > best) | ((x != x) & (best == best));
        best = select(best, x, better);
        index = select(index, (vmask)((real_int)i), better);
      }
      const real largest = sb_max(best);
      const vmask holds = largest == largest ? best == (vreal)(largest) : best != best;
      real_int places[VW], place = (real_int)reduced - 1;
      SB_JOIN(vstore, VW)(select((vmask)(place), index + SB_LANES, holds), 0, places);
#pragma unroll
      for (int lane = 0; lane < VW; ++lane) place = min(place, places[lane]);
      dst[o] = (int)place;
    } else {
      for (long c = 0; c < inner; c += VW) {
        vreal best = sb_load(p + c, inner - c, readable - c, 0);
        vmask index = 0;
        for (long r = 1; r < reduced; ++r) {
          const vreal x = sb_load(p + r * inner + c, inner - c, readable - r * inner - c, 0);
          const vmask better = (x > best) | ((x != x) & (best == best));
          best = select(best, x, better);
          index = select(index, (vmask)((real_int)r), better);
        }
        for (int lane = 0; lane < VW && c + lane < inner; ++lane) {
          real_int indices[VW];
          SB_JOIN(vstore, VW)(index, 0, indices);
          dst[o * inner + c + lane] = (int)indices[lane];
        }
      }
    }
  }
}

#define REDUCE_WHOLE_ARGMAX(SUFFIX, T)                                                                \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(reduce_argmax_, SUFFIX)(       \
      ARRAY(const T, src), ARRAY(int, dst), const long outer, const long reduced, const long inner) { \
    START(src);                                                                                       \
    START(dst);                                                                                       \
    const long end = SB_END(outer * inner);                                                           \
    for (long i = SB_BEGIN(outer * inner); i < end; ++i) {                                            \
      const __global T* p = src + i / inner * reduced * inner + i % inner;                            \
      long best = 0;                                                                                  \
      for (long r = 1; r < reduced; ++r)                                                              \
        if (p[r * inner] > p[best * inner]) best = r;                                                 \
      dst[i] = (int)best;                                                                             \
    }                                                                                                 \
  }
REDUCE_WHOLE_ARGMAX(i32, int)
REDUCE_WHOLE_ARGMAX(i64, long)
#undef REDUCE_WHOLE_ARGMAX

#undef REDUCE_ADD2
#undef REDUCE_MULTIPLY2
#undef REDUCE_DEFINE
#undef REDUCE_KERNELS
#undef REDUCE_SHORT_ROWS
#undef REDUCE_ROWS
#undef REDUCE_COLUMNS
#undef REDUCE_BLOCK_ROWS
