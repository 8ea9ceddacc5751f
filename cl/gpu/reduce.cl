// Reductions. Letters: O outer, R reduced, I inner sizes of a dense src [O, R, I]; dst is [O, parts, I], where part p
// covers the rows [p * rows_per_part, ...) of R. One launch per pass: the host splits R by shape and reduces the parts
// again. `what`: 0 sum, 1 max, 2 min (NaN wins), 3 sum of squares, 4 product, 5 root of the sum of squares (3 and 5:
// reduce_rows only); every result but a root is divided by `divisor`.
// Program: core

#define REDUCE_ACC 256  // columns that one work-group of reduce_columns can hold; its largest size

static inline real reduce_first(const int what) {
  return what == 1 ? (real)-INFINITY : what == 2 ? (real)INFINITY : what == 4 ? (real)1 : (real)0;
}
static inline real reduce_two(const int what, const real a, const real b) {
  return what == 0 ? a + b : what == 1 ? sb_max2(a, b) : what == 2 ? sb_min2(a, b) : a * b;
}
// As sb_lanes_sum.
static inline real reduce_lanes_product(const real v, __local real* scratch, const int lanes) {
  const int item = (int)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  scratch[item] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = lanes / 2; s > 0; s /= 2) {
    if ((item & (lanes - 1)) < s) scratch[item] *= scratch[item + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return scratch[item & ~(lanes - 1)];
}

// I = 1: src [rows, columns] -> dst [rows, parts]; part p of a row covers columns [p * chunk, ...).
// Geometry: a work-group takes rows_per_group (a power of two) of the rows * parts results, its items shared equally
// among them.
//
// I > 1. A work-group (in the order tile, part, outer_per_group outer indices) accumulates one part of `tile` columns,
// one per item. Narrow rows are folded: `fold` rows of I elements are taken as one of fold * I (fold > 1 needs tile =
// I), added up at the end. fold * I, or tile, is at most the group's size.
//
// Besides stored to stored, for parts of a long 16-bit reduction: from stored to real (_part), from real to stored
// (_total).
#define REDUCE_KERNELS(SUFFIX, S, D)                                                                                  \
  __kernel void SB_JOIN(reduce_rows, SUFFIX)(ARRAY(const S, src), ARRAY(D, dst), const int what, const long rows,     \
                                             const long columns, const long parts, const long chunk,                  \
                                             const int rows_per_group, const real divisor) {                          \
    START(src);                                                                                                       \
    START(dst);                                                                                                       \
    __local real scratch[REDUCE_ACC];                                                                                 \
    const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);             \
    const long result = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;                             \
    real value = reduce_first(what);                                                                                  \
    if (result < rows * parts) {                                                                                      \
      const long row = result / parts, begin = (result - row * parts) * chunk, n = min(chunk, columns - begin);       \
      const __global S* p = src + row * columns + begin;                                                              \
      if (what == 0) { /* by itself, with several loads on their way */                                               \
        _Pragma("unroll 8") for (long i = lane; i < n; i += lanes) value += LOAD(p + i);                              \
      } else {                                                                                                        \
        _Pragma("unroll 4") for (long i = lane; i < n; i += lanes) {                                                  \
          const real x = LOAD(p + i);                                                                                 \
          value = what == 3 || what == 5 ? FMA(x, x, value) : reduce_two(what, value, x);                             \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
    if (what == 0 || what == 3 || what == 5) {                                                                        \
      value = sb_lanes_sum(value, scratch, lanes);                                                                    \
    } else if (what == 4) {                                                                                           \
      value = reduce_lanes_product(value, scratch, lanes);                                                            \
    } else if (what == 1) {                                                                                           \
      value = sb_lanes_max(value, scratch, lanes);                                                                    \
    } else {                                                                                                          \
      value = -sb_lanes_max(-value, scratch, lanes);                                                                  \
    }                                                                                                                 \
    if (result < rows * parts && lane == 0) STORE(what == 5 ? sqrt(value) : value / divisor, dst + result);           \
  }                                                                                                                   \
                                                                                                                      \
  __kernel void SB_JOIN(reduce_columns, SUFFIX)(ARRAY(const S, src), ARRAY(D, dst), const int what, const long outer, \
                                                const long reduced, const long inner, const long parts,               \
                                                const long rows_per_part, const int fold, const long tile,            \
                                                const long outer_per_group, const real divisor) {                     \
    START(src);                                                                                                       \
    START(dst);                                                                                                       \
    __local real scratch[REDUCE_ACC];                                                                                 \
    const long tiles = (inner + tile - 1) / tile;                                                                     \
    const long first_column = (long)get_group_id(0) % tiles * tile, columns = min(tile, inner - first_column);        \
    const long part = (long)get_group_id(0) / tiles % parts, group = (long)get_group_id(0) / (tiles * parts);         \
    const long first_row = part * rows_per_part, rows = min(rows_per_part, reduced - first_row);                      \
    const long width = fold > 1 ? fold * inner : columns, stride = fold * inner;                                      \
    const long item = (long)get_local_id(0);                                                                          \
    const long end = min(outer, (group + 1) * outer_per_group);                                                       \
    for (long o = group * outer_per_group; o < end; ++o) {                                                            \
      const __global S* p = src + (o * reduced + first_row) * inner + first_column;                                   \
      real value = reduce_first(what);                                                                                \
      if (item < width) {                                                                                             \
        long s = 0;                                                                                                   \
        if (what == 0) {                                                                                              \
          _Pragma("unroll 8") for (; s < rows / fold; ++s) value += LOAD(p + s * stride + item);                      \
        } else {                                                                                                      \
          for (; s < rows / fold; ++s) value = reduce_two(what, value, LOAD(p + s * stride + item));                  \
        }                                                                                                             \
        if (item < rows % fold * inner) value = reduce_two(what, value, LOAD(p + s * stride + item));                 \
      }                                                                                                               \
      if (fold > 1) {                                                                                                 \
        scratch[item] = value;                                                                                        \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                 \
        if (item < inner)                                                                                             \
          for (int f = 1; f < fold; ++f) value = reduce_two(what, value, scratch[f * inner + item]);                  \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                 \
      }                                                                                                               \
      if (item < columns) STORE(value / divisor, dst + (o * parts + part) * inner + first_column + item);             \
    }                                                                                                                 \
  }
REDUCE_KERNELS(, stored, stored)
#ifdef SAMEBYTES_STORE_16
REDUCE_KERNELS(_part, stored, real)
REDUCE_KERNELS(_total, real, stored)
#endif

// Whole numbers: src [O, R, I] -> dst [O, I], one result per work-item. Sums and products wrap around.
// Geometry: over_elements(O * I).
#define REDUCE_WHOLE(SUFFIX, T, U)                                                                                  \
  __kernel void SB_JOIN(reduce_, SUFFIX)(                                                                           \
      ARRAY(const T, src), ARRAY(T, dst), const int what, const long outer, const long reduced, const long inner) { \
    START(src);                                                                                                     \
    START(dst);                                                                                                     \
    const long end = SB_END(outer * inner);                                                                         \
    for (long i = SB_BEGIN(outer * inner); i < end; ++i) {                                                          \
      const __global T* p = src + i / inner * reduced * inner + i % inner;                                          \
      T value = p[0];                                                                                               \
      for (long r = 1; r < reduced; ++r) {                                                                          \
        const T x = p[r * inner];                                                                                   \
        value = what == 0   ? (T)((U)value + (U)x)                                                                  \
                : what == 1 ? max(value, x)                                                                         \
                : what == 2 ? min(value, x)                                                                         \
                            : (T)((U)value * (U)x);                                                                 \
      }                                                                                                             \
      dst[i] = value;                                                                                               \
    }                                                                                                               \
  }
REDUCE_WHOLE(i32, int, uint)
REDUCE_WHOLE(i64, long, ulong)
#undef REDUCE_WHOLE

// The index in R of the first largest element; the first NaN is larger than everything. src [O, R, I] -> dst [O, I].
// Geometry: a work-group of 64 takes outer_per_group outer indices; I = 1: its items share R, else they share I.
__kernel void reduce_argmax(ARRAY(const stored, src), ARRAY(int, dst), const long outer, const long reduced,
                            const long inner, const long outer_per_group) {
  START(src);
  START(dst);
  __local real best_values[REDUCE_ACC];
  __local int best_indices[REDUCE_ACC];
  const int item = (int)get_local_id(0), items = (int)get_local_size(0);
  const long end = min(outer, ((long)get_group_id(0) + 1) * outer_per_group);
  for (long o = (long)get_group_id(0) * outer_per_group; o < end; ++o) {
    const __global stored* p = src + o * reduced * inner;
    const bool shared_row = inner == 1;
    for (long c = shared_row ? 0 : item; c < inner; c += shared_row ? 1 : items) {
      long r = shared_row ? min((long)item, reduced - 1) : 0;
      real best = LOAD(p + r * inner + c);
      long index = r;
      for (r += shared_row ? items : 1; r < reduced; r += shared_row ? items : 1) {
        const real x = LOAD(p + r * inner + c);
        if (x > best || (x != x && best == best)) {
          best = x;
          index = r;
        }
      }
      if (shared_row) {
        best_values[item] = best;
        best_indices[item] = (int)index;
      } else {
        dst[o * inner + c] = (int)index;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (shared_row && item == 0) {
      real best = best_values[0];
      int index = best_indices[0];
      for (int i = 1; i < items; ++i) {
        const real x = best_values[i];
        const bool larger = x > best || (x != x && best == best);
        const bool equal = (x == best || (x != x && best != best)) && best_indices[i] < index;
        if (larger || equal) {
          best = x;
          index = best_indices[i];
        }
      }
      dst[o] = index;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

#define REDUCE_WHOLE_ARGMAX(SUFFIX, T)                                                                \
  __kernel void SB_JOIN(reduce_argmax_, SUFFIX)(                                                      \
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
