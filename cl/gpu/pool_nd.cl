// Max pooling with gaps, uneven sides or three axes: src [N, D, H, W, C] to dst [N, OD, OH, OW, C]. The places of the
// windows along each axis are lists, depths [OD, kd], rows [OH, kh], columns [OW, kw]; -1 is a place outside. index is
// the place (z H + y) W + x of the largest value: the first of equal ones, the first NaN before everything. GPU:
// one work-item per element of the result, channels fastest, so that neighbours read neighbours.
#include "shared/pool_nd.h"

__kernel void pool_nd_max(ARRAY(const stored, src), ARRAY(const int, depths), ARRAY(const int, rows),
                          ARRAY(const int, columns), ARRAY(stored, dst), ARRAY(int, index), const pool_nd_sizes s) {
  START(src);
  START(depths);
  START(rows);
  START(columns);
  START(dst);
  START(index);
  const long n = (long)s.batch * s.od * s.oh * s.ow * s.c, end = SB_END(n);
  for (long e = SB_BEGIN(n); e < end; ++e) {
    const long pixel = e / s.c, line = pixel / s.ow, plane = line / s.oh, image = plane / s.od;
    const int k = (int)(e - pixel * s.c), ox = (int)(pixel - line * s.ow), oy = (int)(line - plane * s.oh),
              oz = (int)(plane - image * s.od);
    const __global stored* from = src + image * s.d * s.h * s.w * s.c + k;
    real best = -INFINITY;
    int place = -1;
    for (int i = 0; i < s.kd; ++i) {
      const int z = depths[oz * s.kd + i];
      for (int j = 0; j < s.kh && z >= 0; ++j) {
        const int y = rows[oy * s.kh + j];
        for (int t = 0; t < s.kw && y >= 0; ++t) {
          const int x = columns[ox * s.kw + t];
          if (x < 0) continue;
          const int here = (z * s.h + y) * s.w + x;
          const real v = LOAD(from + (long)here * s.c);
          if (place < 0 || v > best || (isnan(v) && !isnan(best))) {
            best = v;
            place = here;
          }
        }
      }
    }
    STORE(best, dst + e);
    index[e] = place;
  }
}

// dx [N, D H W, C] = dy [N, OD OH OW, C] added up at its places `index`. An item owns a channel of an image, so that
// nobody else adds to it, and adds the windows in their order. Geometry: over_rows(N * (C / POOL_ND_TILE, rounded up)),
// groups of POOL_ND_TILE items.
#define POOL_ND_TILE 64

__kernel void pool_nd_max_bwd(ARRAY(const stored, dy), ARRAY(const int, index), ARRAY(real, dx), const long places,
                              const long windows, const long channels) {
  START(dy);
  START(index);
  START(dx);
  const long tiles = (channels + POOL_ND_TILE - 1) / POOL_ND_TILE, image = (long)get_group_id(0) / tiles;
  const long channel = ((long)get_group_id(0) - image * tiles) * POOL_ND_TILE + (long)get_local_id(0);
  if (channel >= channels) return;
  __global real* to = dx + image * places * channels + channel;
  for (long p = 0; p < places; ++p) to[p * channels] = 0;
  for (long w = 0; w < windows; ++w) {
    const long at = (image * windows + w) * channels + channel;
    to[index[at] * channels] += LOAD(dy + at);
  }
}
#undef POOL_ND_TILE
