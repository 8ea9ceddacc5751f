// Products and convolutions of 8-bit integers with frozen weights (shared/int8.h has the formula and the layouts).
//
//   int8_ranges, int8_quantise   x f32 -> q u8, once for each value
//   int8_product                 a group has 64 x 64 of the result, its 16 x 16 items 4 x 4 each
//     for 16 values of k         q and W as words of four bytes in local memory, each read once for the group
//       sums in integers
//     epilogue                   i32 -> f32 with both scales, the bias and what the planner adds
//
// Why it is fast. A value of q or W is a byte in global and local memory, a quarter of f32's, and is read for 64 sums.
// Program: int8
#include "shared/int8.clh"

#define INT8_TILE 64
#define INT8_ITEMS 256  // of a group that finds a range
#define INT8_QUADS 4    // fours of k in local memory
#define INT8_WORDS 65   // of a row of them; odd, so that a column's values lie in different banks

static void int8_ends(__global const float* x, const long n, float* low, float* high, __local float* scratch) {
  const int item = (int)get_local_id(0), items = (int)get_local_size(0);
  float least = 0, most = 0, bad = 0;
  for (long i = item; i < n; i += items) {
    const float v = x[i];
    least = v < least ? v : least;
    most = v > most ? v : most;
    bad += v - v;
  }
  // NaN wins in sb_lanes_max.
  *low = -sb_lanes_max(-least + bad, scratch, items);
  *high = sb_lanes_max(most + bad, scratch, items);
}

// ends [ranges][parts][2]. Groups: one for each part of each range of `span` values.
__kernel __attribute__((reqd_work_group_size(INT8_ITEMS, 1, 1))) void int8_ranges(ARRAY(const float, x),
                                                                                  ARRAY(float, ends), const long span,
                                                                                  const int parts) {
  START(x);
  START(ends);
  __local float scratch[INT8_ITEMS];
  const long group = get_group_id(0), range = group / parts, part = group - range * parts;
  const long first = span * part / parts, last = span * (part + 1) / parts;
  float low, high;
  int8_ends(x + range * span + first, last - first, &low, &high, scratch);
  if (get_local_id(0) == 0) {
    ends[2 * group] = low;
    ends[2 * group + 1] = high;
  }
}

// q and scales [ranges][2] = s, z. Groups: one for each line.
__kernel __attribute__((reqd_work_group_size(INT8_ITEMS, 1, 1))) void int8_quantise(
    ARRAY(const float, x), ARRAY(const float, ends), ARRAY(uchar, q), ARRAY(float, scales), const int8_lines l) {
  START(x);
  START(ends);
  START(q);
  START(scales);
  __local float scratch[INT8_ITEMS];
  const int line = (int)get_group_id(0), item = (int)get_local_id(0), range = line / l.lines_of_range;
  __global const float* from = x + (long)line * l.length;
  float low = l.low, high = l.high;
  if (!l.is_given && l.parts == 0) int8_ends(from, l.length, &low, &high, scratch);
  for (int p = 0; p < l.parts; ++p) {
    const float a = ends[2 * ((long)range * l.parts + p)], b = ends[2 * ((long)range * l.parts + p) + 1];
    low = p == 0 ? a : sb_min2(low, a);
    high = p == 0 ? b : sb_max2(high, b);
    if (low != low) break;
  }
  const float2 scale = int8_scale(low, high);
  if (item == 0 && line % l.lines_of_range == 0) {
    scales[2 * range] = scale.x;
    scales[2 * range + 1] = scale.y;
  }
  const float inverse = 1.0f / scale.x, z = scale.y;
  for (int i = item; i < l.pitch; i += INT8_ITEMS) {
    uchar byte = 0;
    if (i < l.length) {
      const float scaled = from[i] * inverse, inside = scaled >= -z ? scaled : -z;
      byte = (uchar)(rint(inside <= 255.0f - z ? inside : 255.0f - z) + z);
    }
    q[(long)line * l.pitch + i] = byte;
  }
}

// Value k of the window of one place of the result; z outside of the image.
static uint int8_value(__global const uchar* q, const int8_sizes s, const int image, const int y0, const int x0,
                       const int k, const uint z) {
  const int line = s.kernel_w * s.c, up = k / line, in_line = k - up * line, tap = in_line / s.c;
  const int iy = y0 + up * s.dilation_h, ix = x0 + tap * s.dilation_w;
  if (k >= s.k || iy < 0 || iy >= s.h || ix < 0 || ix >= s.w) return z;
  return q[(((long)image * s.h + iy) * s.w + ix) * s.c + in_line - tap * s.c];
}

static int int8_four(const uint q, const uint w, int sum) {
#pragma unroll
  for (int t = 0; t < 4; ++t) sum += (int)(q >> (8 * t) & 255u) * ((int)(w << (24 - 8 * t)) >> 24);
  return sum;
}

// c [rows][n]. Groups: x = row tiles of 64, y = column tiles of 64.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void int8_product(
    ARRAY(const uchar, q), ARRAY(const float, scales), ARRAY(const uchar, panels), ARRAY(const int, totals),
    ARRAY(const float, w_scales), ARRAY(const float, bias), ARRAY(const float, residual), ARRAY(float, c),
    const int8_sizes s, const int flags) {
  START(q);
  START(scales);
  START(panels);
  START(totals);
  START(w_scales);
  START(bias);
  START(residual);
  START(c);
  __local uint q_tile[INT8_QUADS * INT8_WORDS];
  __local uint w_tile[INT8_QUADS * INT8_WORDS];
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int i0 = (int)get_group_id(0) * INT8_TILE, j0 = (int)get_group_id(1) * INT8_TILE;
  // What this item loads: four bytes of one row, and one word of one column.
  const int my_row = min(i0 + item / 4, s.rows - 1), my_quad = item % 4, w_quad = item / 64;
  const int image = my_row / (s.out_h * s.out_w), place = my_row - image * s.out_h * s.out_w, y = place / s.out_w;
  const int y0 = y * s.stride_h - s.pad_h, x0 = (place - y * s.out_w) * s.stride_w - s.pad_w;
  const uint z = (uint)scales[2 * (my_row / s.rows_of_range) + 1];
  const int column = j0 + item % 64, last_panel = (s.n + INT8_COLUMNS - 1) / INT8_COLUMNS * 2 - 1;
  __global const uint* w = (__global const uint*)panels +
                           (long)min(column / INT8_PANEL, last_panel) * (s.padded_k / 4) * INT8_PANEL +
                           column % INT8_PANEL;
  int sums[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int t = 0; t < 4; ++t) sums[r][t] = 0;
  }
  for (int p0 = 0; p0 < s.padded_k; p0 += 4 * INT8_QUADS) {
    uint four = 0;
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int k = p0 + 4 * my_quad + t;
      const uint byte = s.row_bytes ? q[(long)my_row * s.row_bytes + k] : int8_value(q, s, image, y0, x0, k, z);
      four |= byte << (8 * t);
    }
    q_tile[my_quad * INT8_WORDS + item / 4] = four;
    w_tile[w_quad * INT8_WORDS + item % 64] = w[(p0 / 4 + w_quad) * INT8_PANEL];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int p = 0; p < INT8_QUADS; ++p) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int t = 0; t < 4; ++t)
          sums[r][t] =
              int8_four(q_tile[p * INT8_WORDS + ly + 16 * r], w_tile[p * INT8_WORDS + lx + 16 * t], sums[r][t]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i = i0 + ly + 16 * r;
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int j = j0 + lx + 16 * t;
      if (i < s.rows && j < s.n) {
        const int range = i / s.rows_of_range;
        const long at = (long)i * s.n + j;
        c[at] = int8_finish(sums[r][t] - totals[j] * (int)scales[2 * range + 1], w_scales[j] * scales[2 * range],
                            bias + j, residual + at, flags);
      }
    }
  }
}
