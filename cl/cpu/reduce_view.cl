// Reductions of views and of whole numbers, read in place. A result has up to four kept axes (size k*, stride ks*; the
// last is the fastest of the results) and sums up to four reduced ones (size r*, stride rs*): src is read at the sum of
// index times stride of all of them. dst is [results, parts]: part p covers the places [p * per_part, ...) of the
// reduced ones. `what`: 0 sum, 1 max, 2 min (NaN wins), 3 sum of squares, 4 product; every value is multiplied by
// `times` and divided by `divisor`, which are 1 but for sums. Whole numbers wrap around. Geometry: a work-group takes
// per_group results of one part.
#include "shared/reduce_view.clh"

#define REDUCE_VIEW_BLOCK 64  // additions to one accumulator before it is added to the total

// The same in scalars (S stored or read, A accumulated) and in vectors.
#define REDUCE_VIEW_KERNEL(S, D, SUFFIX, A, V, ONE, MANY, PUT, FIRST, TWO, LANES)                                   \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void SB_JOIN(reduce_view, SUFFIX)(                        \
      ARRAY(const S, src), ARRAY(D, dst), const int what, const long results, const long reduced, const long parts, \
      const long per_part, const long per_group, const long k0, const long ks0, const long k1, const long ks1,      \
      const long k2, const long ks2, const long k3, const long ks3, const long r0, const long rs0, const long r1,   \
      const long rs1, const long r2, const long rs2, const long r3, const long rs3, const long times,               \
      const real divisor) {                                                                                         \
    START(src);                                                                                                     \
    START(dst);                                                                                                     \
    const long part = (long)get_group_id(0) % parts, first = (long)get_group_id(0) / parts * per_group;             \
    const long end = min(results, first + per_group), begin = part * per_part, n = min(per_part, reduced - begin);  \
    for (long result = first; result < end;) {                                                                      \
      const long i3 = result % k3, above = result / k3;                                                             \
      const __global S* p = src + i3 * ks3 + above % k2 * ks2 + above / k2 % k1 * ks1 + above / k2 / k1 % k0 * ks0; \
      const bool is_wide = ks3 == 1 && i3 + VW <= k3 && result + VW <= end;                                         \
      V total = (V)(FIRST), block = (V)(FIRST);                                                                     \
      A rest = FIRST;                                                                                               \
      long j = begin, left = n;                                                                                     \
      int added = 0;                                                                                                \
      while (left > 0) {                                                                                            \
        const long j3 = j % r3, over = j / r3, run = min(left, r3 - j3);                                            \
        const __global S* q = p + j3 * rs3 + over % r2 * rs2 + over / r2 % r1 * rs1 + over / r2 / r1 % r0 * rs0;    \
        long i = 0;                                                                                                 \
        if (is_wide || rs3 == 1) {                                                                                  \
          const long step = is_wide ? 1 : VW;                                                                       \
          for (; i + step <= run; i += step) {                                                                      \
            block = TWO(what, block, MANY(q + i * rs3));                                                            \
            if (++added == REDUCE_VIEW_BLOCK) {                                                                     \
              total = TWO(what == 3 ? 0 : what, total, block);                                                      \
              block = (V)(FIRST);                                                                                   \
              added = 0;                                                                                            \
            }                                                                                                       \
          }                                                                                                         \
        }                                                                                                           \
        A some = FIRST;                                                                                             \
        for (long c = 0; i < run; ++i) {                                                                            \
          some = TWO(what, some, ONE(q + i * rs3));                                                                 \
          if (++c == REDUCE_VIEW_BLOCK) {                                                                           \
            rest = TWO(what == 3 ? 0 : what, rest, some);                                                           \
            some = FIRST;                                                                                           \
            c = 0;                                                                                                  \
          }                                                                                                         \
        }                                                                                                           \
        rest = TWO(what == 3 ? 0 : what, rest, some);                                                               \
        j += run;                                                                                                   \
        left -= run;                                                                                                \
      }                                                                                                             \
      total = TWO(what == 3 ? 0 : what, total, block);                                                              \
      A lanes[VW];                                                                                                  \
      LANES(total, lanes);                                                                                          \
      if (is_wide) {                                                                                                \
        for (int lane = 0; lane < VW; ++lane) PUT(lanes[lane], dst + (result + lane) * parts + part);               \
        result += VW;                                                                                               \
      } else {                                                                                                      \
        for (int width = VW / 2; width > 0; width /= 2)                                                             \
          for (int lane = 0; lane < width; ++lane)                                                                  \
            lanes[lane] = TWO(what == 3 ? 0 : what, lanes[lane], lanes[lane + width]);                              \
        PUT(TWO(what == 3 ? 0 : what, rest, lanes[0]), dst + result * parts + part);                                \
        ++result;                                                                                                   \
      }                                                                                                             \
    }                                                                                                               \
  }

SB_OVERLOAD vreal reduce_view_two(const int what, const vreal a, const vreal b) {
  return what == 0 ? a + b : what == 1 ? sb_max2(a, b) : what == 2 ? sb_min2(a, b) : what == 4 ? a * b : FMA(b, b, a);
}
REDUCE_VIEW_KERNEL(stored, stored, , real, vreal, REDUCE_VIEW_ONE, VLOAD, REDUCE_VIEW_PUT, REDUCE_VIEW_FIRST,
                   reduce_view_two, VSTORE)
#ifdef SAMEBYTES_STORE_16
REDUCE_VIEW_KERNEL(stored, real, _part, real, vreal, REDUCE_VIEW_ONE, VLOAD, REDUCE_VIEW_PUT, REDUCE_VIEW_FIRST,
                   reduce_view_two, VSTORE)
REDUCE_VIEW_KERNEL(real, stored, _total, real, vreal, REDUCE_VIEW_ONE, VLOAD, REDUCE_VIEW_PUT, REDUCE_VIEW_FIRST,
                   reduce_view_two, VSTORE)
#endif

// Of whole numbers: the results are i32, of i64 i64, or real (_mean).
#ifndef SAMEBYTES_STORE_16
#define REDUCE_VIEW_VEC(T) SB_JOIN(T, VW)
#define REDUCE_VIEW_INTS(p) SB_JOIN(convert_int, VW)(sb_vload(p))
#ifdef SAMEBYTES_F64
#define REDUCE_VIEW_REALS(p) SB_JOIN(convert_double, VW)(sb_vload(p))
#else
#define REDUCE_VIEW_REALS(p) SB_JOIN(convert_float, VW)(sb_vload(p))
#endif
#define REDUCE_VIEW_TWO_WHOLE(T)                                                                \
  SB_OVERLOAD REDUCE_VIEW_VEC(T)                                                                \
      reduce_view_two(const int what, const REDUCE_VIEW_VEC(T) a, const REDUCE_VIEW_VEC(T) b) { \
    return what == 0 ? a + b : what == 1 ? max(a, b) : what == 2 ? min(a, b) : a * b;           \
  }
REDUCE_VIEW_TWO_WHOLE(int)
REDUCE_VIEW_TWO_WHOLE(long)
#undef REDUCE_VIEW_TWO_WHOLE
REDUCE_VIEW_KERNEL(int, int, _i32, int, REDUCE_VIEW_VEC(int), REDUCE_VIEW_INT, sb_vload, REDUCE_VIEW_PUT_INT,
                   REDUCE_VIEW_FIRST_INT, reduce_view_two, sb_vstore)
REDUCE_VIEW_KERNEL(long, long, _i64, long, REDUCE_VIEW_VEC(long), REDUCE_VIEW_LONG, sb_vload, REDUCE_VIEW_PUT_LONG,
                   REDUCE_VIEW_FIRST_LONG, reduce_view_two, sb_vstore)
REDUCE_VIEW_KERNEL(uchar, int, _u8, int, REDUCE_VIEW_VEC(int), REDUCE_VIEW_INT, REDUCE_VIEW_INTS, REDUCE_VIEW_PUT_INT,
                   REDUCE_VIEW_FIRST_INT, reduce_view_two, sb_vstore)
REDUCE_VIEW_KERNEL(int, real, _mean_i32, real, vreal, REDUCE_VIEW_REAL, REDUCE_VIEW_REALS, REDUCE_VIEW_PUT_REAL,
                   REDUCE_VIEW_FIRST, reduce_view_two, VSTORE)
REDUCE_VIEW_KERNEL(long, real, _mean_i64, real, vreal, REDUCE_VIEW_REAL, REDUCE_VIEW_REALS, REDUCE_VIEW_PUT_REAL,
                   REDUCE_VIEW_FIRST, reduce_view_two, VSTORE)
REDUCE_VIEW_KERNEL(uchar, real, _mean_u8, real, vreal, REDUCE_VIEW_REAL, REDUCE_VIEW_REALS, REDUCE_VIEW_PUT_REAL,
                   REDUCE_VIEW_FIRST, reduce_view_two, VSTORE)
#undef REDUCE_VIEW_VEC
#undef REDUCE_VIEW_INTS
#undef REDUCE_VIEW_REALS
#endif
#undef REDUCE_VIEW_BLOCK
#undef REDUCE_VIEW_KERNEL
