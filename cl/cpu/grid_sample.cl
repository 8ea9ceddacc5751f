// Images read at places between their elements. Letters: N images, P places of each, C channels; src [N, D, H, W, C] as
// rows of C, grid [N * P, axes]. CPU: one work-item per group; a place's neighbours are found once, and its channels
// are vectors whose sums stay in registers. Gradients for src are sorted by the rows they go to, so that each row is
// written once and in a fixed order.
#include "shared/grid_sample.clh"

// dst [N * P, C] = the weighted sums of src. Geometry: over_rows, rows_per_group places each.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grid_sample_fwd(ARRAY(const real, src),
                                                                             ARRAY(const real, grid), ARRAY(real, dst),
                                                                             const grid_sample_sizes s,
                                                                             const long places, const long total,
                                                                             const int rows_per_group) {
  START(src);
  START(grid);
  START(dst);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(total, first + rows_per_group);
  for (long p = first; p < end; ++p) {
    grid_sample_near x, y, z;
    grid_sample_all(grid, p, s, 0, &x, &y, &z);
    const __global real* from[16];
    real weight[16];
    int count = 0;
    for (int a = 0; a < z.count; ++a)
      for (int b = 0; b < y.count; ++b)
        for (int c = 0; c < x.count; ++c) {
          const long row = grid_sample_row(s, p / places, z.place[a], y.place[b], x.place[c]);
          if (row < 0) continue;
          from[count] = src + row * s.channels;
          weight[count++] = z.weight[a] * y.weight[b] * x.weight[c];
        }
    __global real* to = dst + p * s.channels;
    int i = 0;
    for (; i + 4 * VW <= s.channels; i += 4 * VW) {
      vreal a = 0, b = 0, c = 0, d = 0;
      for (int k = 0; k < count; ++k) {
        const vreal w = weight[k];
        const __global real* row = from[k] + i;
        a = FMA(w, VLOAD(row), a);
        b = FMA(w, VLOAD(row + VW), b);
        c = FMA(w, VLOAD(row + 2 * VW), c);
        d = FMA(w, VLOAD(row + 3 * VW), d);
      }
      VSTORE(a, to + i);
      VSTORE(b, to + i + VW);
      VSTORE(c, to + i + 2 * VW);
      VSTORE(d, to + i + 3 * VW);
    }
    for (; i + VW <= s.channels; i += VW) {
      vreal a = 0;
      for (int k = 0; k < count; ++k) a = FMA((vreal)weight[k], VLOAD(from[k] + i), a);
      VSTORE(a, to + i);
    }
    for (; i < s.channels; ++i) {
      real a = 0;
      for (int k = 0; k < count; ++k) a = FMA(weight[k], from[k][i], a);
      to[i] = a;
    }
  }
}

// dgrid [N * P, axes]: for each coordinate the sums over the channels of dy [N * P, C] times the derivative of the
// sample. Geometry: over_elements(N * P).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grid_sample_slope(
    ARRAY(const real, dy), ARRAY(const real, src), ARRAY(const real, grid), ARRAY(real, dgrid),
    const grid_sample_sizes s, const long places, const long total) {
  START(dy);
  START(src);
  START(grid);
  START(dgrid);
  const long end = SB_END(total);
  for (long p = SB_BEGIN(total); p < end; ++p) {
    grid_sample_near x, y, z, dx, dy_, dz;
    grid_sample_all(grid, p, s, 0, &x, &y, &z);
    grid_sample_all(grid, p, s, 1, &dx, &dy_, &dz);
    const __global real* of_place = dy + p * s.channels;
    real sum_x = 0, sum_y = 0, sum_z = 0;
    for (int a = 0; a < z.count; ++a)
      for (int b = 0; b < y.count; ++b)
        for (int c = 0; c < x.count; ++c) {
          const long row = grid_sample_row(s, p / places, z.place[a], y.place[b], x.place[c]);
          if (row < 0) continue;
          const __global real* from = src + row * s.channels;
          vreal sums = 0;
          int i = 0;
          for (; i + VW <= s.channels; i += VW) sums = FMA(VLOAD(of_place + i), VLOAD(from + i), sums);
          real dot = sb_sum(sums);
          for (; i < s.channels; ++i) dot = FMA(of_place[i], from[i], dot);
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
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grid_sample_places(ARRAY(const real, grid),
                                                                                ARRAY(int, index), ARRAY(real, weight),
                                                                                const grid_sample_sizes s,
                                                                                const long places, const long total) {
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
// Geometry: over_rows, rows_per_group of the rows each.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grid_sample_sum(
    ARRAY(const int, order), ARRAY(const int, starts), ARRAY(const real, weight), ARRAY(const real, dy),
    ARRAY(real, dst), const long rows, const int channels, const int shift, const int rows_per_group) {
  START(order);
  START(starts);
  START(weight);
  START(dy);
  START(dst);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  for (long row = first; row < end; ++row) {
    const int begin = starts[row], stop = starts[row + 1];
    __global real* to = dst + row * channels;
    int i = 0;
    for (; i + 4 * VW <= channels; i += 4 * VW) {
      vreal a = 0, b = 0, c = 0, d = 0;
      for (int k = begin; k < stop; ++k) {
        const int j = order[k];
        const vreal w = weight[j];
        const __global real* from = dy + (long)(j >> shift) * channels + i;
        a = FMA(w, VLOAD(from), a);
        b = FMA(w, VLOAD(from + VW), b);
        c = FMA(w, VLOAD(from + 2 * VW), c);
        d = FMA(w, VLOAD(from + 3 * VW), d);
      }
      VSTORE(a, to + i);
      VSTORE(b, to + i + VW);
      VSTORE(c, to + i + 2 * VW);
      VSTORE(d, to + i + 3 * VW);
    }
    for (; i + VW <= channels; i += VW) {
      vreal a = 0;
      for (int k = begin; k < stop; ++k)
        a = FMA((vreal)weight[order[k]], VLOAD(dy + (long)(order[k] >> shift) * channels + i), a);
      VSTORE(a, to + i);
    }
    for (; i < channels; ++i) {
      real a = 0;
      for (int k = begin; k < stop; ++k) a = FMA(weight[order[k]], dy[(long)(order[k] >> shift) * channels + i], a);
      to[i] = a;
    }
  }
}
