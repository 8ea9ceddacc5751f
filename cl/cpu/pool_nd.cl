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
  const long volume = (long)s.d * s.h * s.w * s.c;
  long e = SB_BEGIN(n);
  const long pixel = e / s.c, line = pixel / s.ow, plane = line / s.oh;
  long image = plane / s.od;
  int k = (int)(e - pixel * s.c), ox = (int)(pixel - line * s.ow), oy = (int)(line - plane * s.oh),
      oz = (int)(plane - image * s.od);
  while (e < end) {
    const long first = image * volume + k, lanes = min(min((long)VW, (long)s.c - k), end - e);
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
    if (lanes == VW) {
#pragma unroll
      for (int lane = 0; lane < VW; ++lane) index[e + lane] = (int)places[lane];
    } else {
      for (int lane = 0; lane < lanes; ++lane) index[e + lane] = (int)places[lane];
    }
    e += lanes;
    k += (int)lanes;
    if (k < s.c) continue;
    k = 0;
    if (++ox < s.ow) continue;
    ox = 0;
    if (++oy < s.oh) continue;
    oy = 0;
    if (++oz < s.od) continue;
    oz = 0;
    ++image;
  }
}

// dx [N, D H W, C] = dy [N, OD OH OW, C] added up at its places `index`. A work-group owns some channels of an image,
// so that nobody else adds to them, and adds the windows in their order. Geometry: over_rows(N * (C / POOL_ND_TILE,
// rounded up)).
#define POOL_ND_TILE 16

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pool_nd_max_bwd(ARRAY(const stored, dy),
                                                                             ARRAY(const int, index), ARRAY(real, dx),
                                                                             const long places, const long windows,
                                                                             const long channels) {
  START(dy);
  START(index);
  START(dx);
  const long tiles = (channels + POOL_ND_TILE - 1) / POOL_ND_TILE, image = (long)get_group_id(0) / tiles;
  const long first = ((long)get_group_id(0) - image * tiles) * POOL_ND_TILE;
  const int lanes = (int)min((long)POOL_ND_TILE, channels - first);
  __global real* to = dx + image * places * channels + first;
  if (lanes == POOL_ND_TILE) {
    for (long p = 0; p < places; ++p)
      for (int lane = 0; lane < POOL_ND_TILE; lane += VW) VSTORE((vreal)(0), to + p * channels + lane);
  } else {
    for (long p = 0; p < places; ++p)
      for (int lane = 0; lane < lanes; ++lane) to[p * channels + lane] = 0;
  }
  const long begin = image * windows * channels + first;
  for (long w = 0; w < windows; ++w) {
    const long at = begin + w * channels;
    for (int lane = 0; lane < lanes; ++lane) to[index[at + lane] * channels + lane] += LOAD(dy + at + lane);
  }
}
#undef POOL_ND_TILE
