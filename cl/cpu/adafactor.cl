// Adafactor over a flat arena of parameters. A parameter of two or more axes is B matrices [R, C], one behind the
// other; its second moment is kept as one mean for each row and one for each column. One of fewer axes is a vector of R
// elements whose second moments are all kept, as rows; it has C = 1. Rows of a matrix, or elements of a vector, are cut
// into tiles. table [tiles][ADAFACTOR_FIELDS] says of each tile (longs would be needed for whole offsets only):
//   0 begin of the parameter in units of 16 elements   1 first row, counted over the parameter   2 rows   3 C
//   4 place of the parameter's first row in `rows`     5 place of the matrix in `columns`; -1: a vector
//   6 first tile of the matrix   7 its tiles   8 first tile of the parameter   9 its tiles   10 R   11 rows of the
//   parameter   12 place of the tile's sums of columns
// Geometry: a work-group of one item takes one tile, adafactor_columns one block of columns. Arithmetic is in `real`.
// Where has_control is set, control says what only the device knows of this step: [0] is 0 where it is skipped and no
// cell changes, [1] stands for rest, [2] for rate.
#include "shared/arena.h"

static inline real adafactor_fold(const __global real* p, const int n) {
  vreal total = 0;
  int i = 0;
  for (; i + VW <= n; i += VW) total += VLOAD(p + i);
  real sum = sb_sum(total);
  for (; i < n; ++i) sum += p[i];
  return sum;
}

// rows = rows + rest (mean of g^2 over the row - rows), overwritten; parts [2][tiles]: sums of the new rows and of p^2;
// sums [..., C]: of g^2 over the tile's rows, by column. n is the length of the arena.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void adafactor_rows(ARRAY(const real, g), ARRAY(const real, p),
                                                                            ARRAY(const int, table), ARRAY(real, parts),
                                                                            ARRAY(real, sums), ARRAY(real, rows),
                                                                            const long tiles, const real rest,
                                                                            ARRAY(const real, control),
                                                                            const int has_control, const long n) {
  START(g);
  START(p);
  START(table);
  START(parts);
  START(sums);
  START(rows);
  START(control);
  const int is_taken = !has_control || control[0] != 0;
  const real share = has_control ? control[1] : rest;
  const long at = get_group_id(0);
  const __global int* tile = table + ADAFACTOR_FIELDS * at;
  const int count = is_taken ? tile[2] : 0, width = tile[3];
  const long begin = (long)tile[0] * ADAFACTOR_UNIT + (long)tile[1] * width;
  rows += tile[4] + tile[1];
  real sum_rows = 0;
  vreal sum_p = 0;
  if (tile[5] < 0) {
    for (int i = 0; i < count; i += VW) {
      const vreal slope = sb_load(g + begin + i, count - i, n - begin - i, 0);
      const vreal x = sb_load(p + begin + i, count - i, n - begin - i, 0);
      sum_p = FMA(x, x, sum_p);
      real old[VW];
      for (int k = 0; k < VW; ++k) old[k] = i + k < count ? rows[i + k] : 0;
      const vreal before = VLOAD(old);
      sb_store(FMA((vreal)(share), slope * slope - before, before), rows + i, count - i);
    }
  } else {
    sums += tile[12];
    for (int r = 0; r < count; ++r) {
      const long row = begin + (long)r * width;
      vreal sum = 0;
      for (int i = 0; i < width; i += VW) {
        const vreal slope = sb_load(g + row + i, width - i, n - row - i, 0);
        const vreal x = sb_load(p + row + i, width - i, n - row - i, 0), square = slope * slope;
        sum += square;
        sum_p = FMA(x, x, sum_p);
        vreal column = square;
        if (r > 0) {
          if (width - i >= VW) {
            column += VLOAD(sums + i);
          } else {
            real old[VW];
            for (int k = 0; k < VW; ++k) old[k] = i + k < width ? sums[i + k] : 0;
            column += VLOAD(old);
          }
        }
        sb_store(column, sums + i, width - i);
      }
      const real before = rows[r], after = FMA(share, sb_sum(sum) / width - before, before);
      rows[r] = after;
      sum_rows += after;
    }
  }
  parts[at] = sum_rows;
  parts[tiles + at] = sb_sum(sum_p);
}

// columns = columns + rest (mean of g^2 over the column - columns), overwritten. blocks [groups][8]: place in
// `columns`, columns of the block, first sum of the matrix at the block's first column, tiles, C, R.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void adafactor_columns(ARRAY(const real, sums),
                                                                               ARRAY(const int, blocks),
                                                                               ARRAY(real, columns), const real rest,
                                                                               ARRAY(const real, control),
                                                                               const int has_control) {
  START(sums);
  START(blocks);
  START(columns);
  START(control);
  const int is_taken = !has_control || control[0] != 0;
  const real share = has_control ? control[1] : rest;
  const __global int* block = blocks + 8 * (long)get_group_id(0);
  const int count = is_taken ? block[1] : 0, tiles = block[3], width = block[4];
  columns += block[0];
  sums += block[2];
  int c = 0;
  for (; c + VW <= count; c += VW) {
    vreal sum = 0;
    for (int t = 0; t < tiles; ++t) sum += VLOAD(sums + (long)t * width + c);
    const vreal before = VLOAD(columns + c);
    VSTORE(FMA((vreal)(share), sum / (real)block[5] - before, before), columns + c);
  }
  for (; c < count; ++c) {
    real sum = 0;
    for (int t = 0; t < tiles; ++t) sum += sums[(long)t * width + c];
    columns[c] = FMA(share, sum / block[5] - columns[c], columns[c]);
  }
}

// What a row's second moments are multiplied by the columns' with: rows / max(mean of rows, eps).
static inline real adafactor_row(const real row, const real mean, const real eps) { return row / fmax(mean, eps); }

static inline vreal adafactor_direction(const vreal slope, const vreal variance, const real eps) {
  return slope / sqrt(fmax(variance, (vreal)(eps * eps)));
}

// norms [tiles]: sums of u^2 with u = g / sqrt(max(variance, eps^2)) and variance = rows columns / mean of rows, or the
// vector's own.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void adafactor_norms(
    ARRAY(const real, g), ARRAY(const real, rows), ARRAY(const real, columns), ARRAY(const real, parts),
    ARRAY(const int, table), ARRAY(real, norms), const real eps, const long n) {
  START(g);
  START(rows);
  START(columns);
  START(parts);
  START(table);
  START(norms);
  const long at = get_group_id(0);
  const __global int* tile = table + ADAFACTOR_FIELDS * at;
  const int count = tile[2], width = tile[3];
  const long begin = (long)tile[0] * ADAFACTOR_UNIT + (long)tile[1] * width;
  rows += tile[4] + tile[1];
  vreal sum = 0;
  if (tile[5] < 0) {
    for (int i = 0; i < count; i += VW) {
      real own[VW];
      for (int k = 0; k < VW; ++k) own[k] = i + k < count ? rows[i + k] : 1;
      const vreal u = adafactor_direction(sb_load(g + begin + i, count - i, n - begin - i, 0), VLOAD(own), eps);
      sum = FMA(u, u, sum);
    }
  } else {
    const real mean = adafactor_fold(parts + tile[6], tile[7]) / tile[10];
    columns += tile[5];
    for (int r = 0; r < count; ++r) {
      const long row = begin + (long)r * width;
      const real factor = adafactor_row(rows[r], mean, eps);
      int i = 0;
      for (; i + VW <= width; i += VW) {
        const vreal u = adafactor_direction(VLOAD(g + row + i), factor * VLOAD(columns + i), eps);
        sum = FMA(u, u, sum);
      }
      if (i < width) {
        real own[VW];
        for (int k = 0; k < VW; ++k) own[k] = i + k < width ? columns[i + k] : 1;
        const vreal u = adafactor_direction(sb_load(g + row + i, width - i, n - row - i, 0), factor * VLOAD(own), eps);
        sum = FMA(u, u, sum);
      }
    }
  }
  norms[at] = sb_sum(sum);
}

// p = keep p - step u, overwritten; step = rate max(least, root mean square of p) / max(1, that of u / clip).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void adafactor_update(
    ARRAY(const real, g), ARRAY(const real, rows), ARRAY(const real, columns), ARRAY(const real, parts),
    ARRAY(const real, norms), ARRAY(const int, table), ARRAY(real, p), const long tiles, const real eps,
    const real rate, const real least, const real clip, const real keep, ARRAY(const real, control),
    const int has_control, const long n) {
  START(g);
  START(rows);
  START(columns);
  START(parts);
  START(norms);
  START(table);
  START(p);
  START(control);
  const int is_taken = !has_control || control[0] != 0;
  const real pace = has_control ? control[2] : rate;
  const __global int* tile = table + ADAFACTOR_FIELDS * (long)get_group_id(0);
  const int count = is_taken ? tile[2] : 0, width = tile[3];
  const long begin = (long)tile[0] * ADAFACTOR_UNIT + (long)tile[1] * width;
  const real size = (real)tile[11] * (real)width;
  const real rms_p = sqrt(adafactor_fold(parts + tiles + tile[8], tile[9]) / size);
  const real rms_u = sqrt(adafactor_fold(norms + tile[8], tile[9]) / size);
  const real step = pace * fmax(least, rms_p) / fmax((real)1, rms_u / clip);
  rows += tile[4] + tile[1];
  if (tile[5] < 0) {
    for (int i = 0; i < count; i += VW) {
      real own[VW];
      for (int k = 0; k < VW; ++k) own[k] = i + k < count ? rows[i + k] : 1;
      const vreal u = adafactor_direction(sb_load(g + begin + i, count - i, n - begin - i, 0), VLOAD(own), eps);
      const vreal x = sb_load(p + begin + i, count - i, n - begin - i, 0);
      sb_store(FMA((vreal)(-step), u, keep * x), p + begin + i, count - i);
    }
  } else {
    const real mean = adafactor_fold(parts + tile[6], tile[7]) / tile[10];
    columns += tile[5];
    for (int r = 0; r < count; ++r) {
      const long row = begin + (long)r * width;
      const real factor = adafactor_row(rows[r], mean, eps);
      int i = 0;
      for (; i + VW <= width; i += VW) {
        const vreal u = adafactor_direction(VLOAD(g + row + i), factor * VLOAD(columns + i), eps);
        VSTORE(FMA((vreal)(-step), u, keep * VLOAD(p + row + i)), p + row + i);
      }
      if (i < width) {
        real own[VW], mine[VW];
        for (int k = 0; k < VW; ++k) {
          own[k] = i + k < width ? columns[i + k] : 1;
          mine[k] = i + k < width ? p[row + i + k] : 0;
        }
        const vreal u = adafactor_direction(sb_load(g + row + i, width - i, n - row - i, 0), factor * VLOAD(own), eps);
        sb_store(FMA((vreal)(-step), u, keep * VLOAD(mine)), p + row + i, width - i);
      }
    }
  }
}
