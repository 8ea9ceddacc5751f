// Images read at places between their elements. Letters: N images, P places of each, C channels; src [N, D, H, W, C] as
// rows of C, grid [N * P, axes]. GPU: work-items share the channels of a place or of a row. Gradients for src are
// sorted by the rows they go to, so that each row is written once and in a fixed order.
#include "shared/grid_sample.clh"

// dst [N * P, C] = the weighted sums of src. Geometry: over_rows, rows_per_group (a power of two) places each, its
// items shared equally among them.
__kernel void grid_sample_fwd(ARRAY(const real, src), ARRAY(const real, grid), ARRAY(real, dst),
                              const grid_sample_sizes s, const long places, const long total,
                              const int rows_per_group) {
  START(src);
  START(grid);
  START(dst);
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long p = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  if (p >= total) return;
  grid_sample_near x, y, z;
  grid_sample_all(grid, p, s, 0, &x, &y, &z);
  for (int i = lane; i < s.channels; i += lanes) {
    real sum = 0;
    for (int a = 0; a < z.count; ++a)
      for (int b = 0; b < y.count; ++b)
        for (int c = 0; c < x.count; ++c) {
          const long row = grid_sample_row(s, p / places, z.place[a], y.place[b], x.place[c]);
          if (row >= 0) sum = FMA(z.weight[a] * y.weight[b] * x.weight[c], src[row * s.channels + i], sum);
        }
    dst[p * s.channels + i] = sum;
  }
}

// dgrid [N * P, axes]: for each coordinate the sums over the channels of dy [N * P, C] times the derivative of the
// sample. Geometry: over_elements(N * P).
__kernel void grid_sample_slope(ARRAY(const real, dy), ARRAY(const real, src), ARRAY(const real, grid),
                                ARRAY(real, dgrid), const grid_sample_sizes s, const long places, const long total) {
  START(dy);
  START(src);
  START(grid);
  START(dgrid);
  const long end = SB_END(total);
  for (long p = SB_BEGIN(total); p < end; ++p) {
    grid_sample_near x, y, z, dx, dy_, dz;
    grid_sample_all(grid, p, s, 0, &x, &y, &z);
    grid_sample_all(grid, p, s, 1, &dx, &dy_, &dz);
    real sum_x = 0, sum_y = 0, sum_z = 0;
    for (int a = 0; a < z.count; ++a)
      for (int b = 0; b < y.count; ++b)
        for (int c = 0; c < x.count; ++c) {
          const long row = grid_sample_row(s, p / places, z.place[a], y.place[b], x.place[c]);
          if (row < 0) continue;
          real dot = 0;
          for (int i = 0; i < s.channels; ++i) dot = FMA(dy[p * s.channels + i], src[row * s.channels + i], dot);
          sum_x += dot * (z.weight[a] * y.weight[b] * dx.weight[c]);
          sum_y += dot * (z.weight[a] * dy_.weight[b] * x.weight[c]);
          sum_z += dot * (dz.weight[a] * y.weight[b] * x.weight[c]);
        }
    __global real* to = dgrid + p * s.axes;
    to[0] = sum_x;
    to[1] = sum_y;
    if (s.axes == 3) to[2] = sum_z;
  }
}

// index and weight [N * P, 2^shift]: the rows of src that a place reads, -1 where there is none. Geometry:
// over_elements(N * P).
__kernel void grid_sample_places(ARRAY(const real, grid), ARRAY(int, index), ARRAY(real, weight),
                                 const grid_sample_sizes s, const long places, const long total) {
  START(grid);
  START(index);
  START(weight);
  const long end = SB_END(total);
  for (long p = SB_BEGIN(total); p < end; ++p) {
    grid_sample_near x, y, z;
    grid_sample_all(grid, p, s, 0, &x, &y, &z);
    long at = p * (x.count * y.count * z.count);
    for (int a = 0; a < z.count; ++a)
      for (int b = 0; b < y.count; ++b)
        for (int c = 0; c < x.count; ++c, ++at) {
          const real w = z.weight[a] * y.weight[b] * x.weight[c];
          index[at] = w == w ? (int)grid_sample_row(s, p / places, z.place[a], y.place[b], x.place[c]) : -1;
          weight[at] = w;
        }
  }
}

// dst [rows, C] = the weighted sums of dy [N * P, C] over the places of each row, in the order of indexing_sort.
// Geometry: over_rows, rows_per_group (a power of two) of the rows each, its items shared equally among them.
__kernel void grid_sample_sum(ARRAY(const int, order), ARRAY(const int, starts), ARRAY(const real, weight),
                              ARRAY(const real, dy), ARRAY(real, dst), const long rows, const int channels,
                              const int shift, const int rows_per_group) {
  START(order);
  START(starts);
  START(weight);
  START(dy);
  START(dst);
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long row = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  if (row >= rows) return;
  const int begin = starts[row], stop = starts[row + 1];
  for (int i = lane; i < channels; i += lanes) {
    real sum = 0;
    for (int k = begin; k < stop; ++k) sum = FMA(weight[order[k]], dy[(long)(order[k] >> shift) * channels + i], sum);
    dst[row * channels + i] = sum;
  }
}
