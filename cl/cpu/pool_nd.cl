// Max pooling with gaps, uneven sides or three axes: src [N, D, H, W, C] to dst [N, OD, OH, OW, C]. The places of the
// windows along each axis are lists, depths [OD, kd], rows [OH, kh], columns [OW, kw]; -1 is a place outside. index is
// the place (z H + y) W + x of the largest value: the first of equal ones, the first NaN before everything. CPU:
// one work-item per group, a stretch of the result each, in vectors of channels.
#include "shared/pool_nd.h"

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pool_nd_max(ARRAY(const stored, src),
                                                                         ARRAY(const int, depths),
                                                                         ARRAY(const int, rows),
                                                                         ARRAY(const int, columns), ARRAY(stored, dst),
                                                                         ARRAY(int, index), const pool_nd_sizes s) {
  START(src);
  START(depths);
  START(rows);
  START(columns);
  START(dst);
  START(index);
  const long n = (long)s.batch * s.od * s.oh * s.ow * s.c, end = SB_END(n), all = (long)s.batch * s.d * s.h * s.w * s.c;
  for (long e = SB_BEGIN(n); e < end;) {
    const long pixel = e / s.c, line = pixel / s.ow, plane = line / s.oh, image = plane / s.od;
    const int k = (int)(e - pixel * s.c), ox = (int)(pixel - line * s.ow), oy = (int)(line - plane * s.oh),
              oz = (int)(plane - image * s.od);
    const long first = image * s.d * s.h * s.w * s.c + k, lanes = min(min((long)VW, (long)s.c - k), end - e);
    const __global stored* from = src + first;
    vreal best = -INFINITY;
    vmask place = -1;
    for (int i = 0; i < s.kd; ++i) {
      const int z = depths[oz * s.kd + i];
      for (int j = 0; j < s.kh && z >= 0; ++j) {
        const int y = rows[oy * s.kh + j];
        for (int t = 0; t < s.kw && y >= 0; ++t) {
          const int x = columns[ox * s.kw + t];
          if (x < 0) continue;
          const int here = (z * s.h + y) * s.w + x;
          const long at = (long)here * s.c;
          const vreal v = sb_load(from + at, lanes, all - first - at, 0);
          const vmask better = (place < 0) | (v > best) | ((v != v) & (best == best));
          best = select(best, v, better);
          place = select(place, (vmask)((real_int)here), better);
        }
      }
    }
    sb_store(best, dst + e, lanes);
    real_int places[VW];
    SB_JOIN(vstore, VW)(place, 0, places);
    for (int lane = 0; lane < lanes; ++lane) index[e + lane] = (int)places[lane];
    e += lanes;
  }
}
