// Reductions of views and of whole numbers, read in place. A result has up to four kept axes (size k*, stride ks*; the
// last is the fastest of the results) and sums up to four reduced ones (size r*, stride rs*): src is read at the sum of
// index times stride of all of them. dst is [results, parts]: part p covers the places [p * per_part, ...) of the
// reduced ones. `what`: 0 sum, 1 max, 2 min (NaN wins), 3 sum of squares, 4 product; every value is multiplied by
// `times` and divided by `divisor`, which are 1 but for sums. Whole numbers wrap around. Geometry: groups of
// REDUCE_VIEW_ITEMS take per_group (a power of two) results of one part, the items shared equally among them.
#include "shared/reduce_view.clh"

#define REDUCE_VIEW_ITEMS 64

#define REDUCE_VIEW_KERNEL(S, D, SUFFIX, A, ONE, PUT, FIRST)                                                          \
  __kernel __attribute__((reqd_work_group_size(REDUCE_VIEW_ITEMS, 1, 1))) void SB_JOIN(reduce_view, SUFFIX)(          \
      ARRAY(const S, src), ARRAY(D, dst), const int what, const long results, const long reduced, const long parts,   \
      const long per_part, const long per_group, const long k0, const long ks0, const long k1, const long ks1,        \
      const long k2, const long ks2, const long k3, const long ks3, const long r0, const long rs0, const long r1,     \
      const long rs1, const long r2, const long rs2, const long r3, const long rs3, const long times,                 \
      const real divisor) {                                                                                           \
    START(src);                                                                                                       \
    START(dst);                                                                                                       \
    __local A scratch[REDUCE_VIEW_ITEMS];                                                                             \
    const int lanes = REDUCE_VIEW_ITEMS / (int)per_group, item = (int)get_local_id(0), lane = item & (lanes - 1);     \
    const long part = (long)get_group_id(0) % parts, begin = part * per_part, stop = min(reduced, begin + per_part);  \
    const long result = (long)get_group_id(0) / parts * per_group + item / lanes;                                     \
    A value = FIRST;                                                                                                  \
    if (result < results) {                                                                                           \
      const long above = result / k3;                                                                                 \
      const __global S* p =                                                                                           \
          src + result % k3 * ks3 + above % k2 * ks2 + above / k2 % k1 * ks1 + above / k2 / k1 % k0 * ks0;            \
      for (long j = begin + lane; j < stop; j += lanes) {                                                             \
        const long over = j / r3;                                                                                     \
        value = reduce_view_two(                                                                                      \
            what, value, ONE(p + j % r3 * rs3 + over % r2 * rs2 + over / r2 % r1 * rs1 + over / r2 / r1 % r0 * rs0)); \
      }                                                                                                               \
    }                                                                                                                 \
    scratch[item] = value;                                                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                     \
    for (int width = lanes / 2; width > 0; width /= 2) {                                                              \
      if (lane < width) scratch[item] = reduce_view_two(what == 3 ? 0 : what, scratch[item], scratch[item + width]);  \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
    }                                                                                                                 \
    if (result < results && lane == 0) PUT(scratch[item], dst + result * parts + part);                               \
  }

REDUCE_VIEW_KERNEL(stored, stored, , real, REDUCE_VIEW_ONE, REDUCE_VIEW_PUT, REDUCE_VIEW_FIRST)
#ifdef SAMEBYTES_STORE_16
REDUCE_VIEW_KERNEL(stored, real, _part, real, REDUCE_VIEW_ONE, REDUCE_VIEW_PUT, REDUCE_VIEW_FIRST)
REDUCE_VIEW_KERNEL(real, stored, _total, real, REDUCE_VIEW_ONE, REDUCE_VIEW_PUT, REDUCE_VIEW_FIRST)
#endif

// Of whole numbers: the results are i32, of i64 i64, or real (_mean).
#ifndef SAMEBYTES_STORE_16
REDUCE_VIEW_KERNEL(int, int, _i32, int, REDUCE_VIEW_INT, REDUCE_VIEW_PUT_INT, REDUCE_VIEW_FIRST_INT)
REDUCE_VIEW_KERNEL(long, long, _i64, long, REDUCE_VIEW_LONG, REDUCE_VIEW_PUT_LONG, REDUCE_VIEW_FIRST_LONG)
REDUCE_VIEW_KERNEL(uchar, int, _u8, int, REDUCE_VIEW_INT, REDUCE_VIEW_PUT_INT, REDUCE_VIEW_FIRST_INT)
REDUCE_VIEW_KERNEL(int, real, _mean_i32, real, REDUCE_VIEW_REAL, REDUCE_VIEW_PUT_REAL, REDUCE_VIEW_FIRST)
REDUCE_VIEW_KERNEL(long, real, _mean_i64, real, REDUCE_VIEW_REAL, REDUCE_VIEW_PUT_REAL, REDUCE_VIEW_FIRST)
REDUCE_VIEW_KERNEL(uchar, real, _mean_u8, real, REDUCE_VIEW_REAL, REDUCE_VIEW_PUT_REAL, REDUCE_VIEW_FIRST)
#endif
#undef REDUCE_VIEW_ITEMS
#undef REDUCE_VIEW_KERNEL
