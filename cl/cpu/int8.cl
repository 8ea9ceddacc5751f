// Products and convolutions of 8-bit integers with frozen weights (shared/int8.h has the formula and the layouts).
//
//   int8_ranges, int8_quantise   x f32 -> q u8, once for each value, of which a window of 3 x 3 reads nine
//   int8_product                 a group, for a block of k (INT8_BLOCK):
//     its rows of q              in place, or gathered: runs of kernel_w * c bytes     second-level cache
//       for a panel of 32 columns of W, packed once for all calls                      first-level cache
//         for a panel of rows    sums in registers (int8_tile.clh)
//     epilogue                   i32 -> f32 with both scales, the bias and what the planner adds
//
// Why it is fast. An instruction does four times what a multiply-add of f32 does (VNNI), or 64 times (AMX), so
// everything else is kept away from the innermost loop: weights never move, bytes are laid out for whole loads, and
// sums leave the registers once for each block of k. Integers have no rounding, so all devices have the same sums.
// Program: int8
#include "cpu/int8_tile.clh"

// Bytes of 16 values: rounded to nearest even, by a sum that leaves the whole number in the lowest bits of the float.
static uchar16 int8_bytes(const float16 x, const float inverse, const float z) {
  const float16 scaled = x * inverse, low = (float16)(-z), high = (float16)(255.0f - z);
  const float16 inside = select(low, scaled, scaled >= low);
  const float16 shifted = select(high, inside, inside <= high) + 12582912.0f;  // 1.5 * 2^23
  return convert_uchar16(as_int16(shifted) - 0x4B400000 + (int)z);
}

// The lowest and highest of n values; bad becomes NaN where one is not finite.
static void int8_ends(__global const float* x, const long n, float* low, float* high) {
  float16 least = 0, most = 0, bad = 0;
  long i = 0;
  for (; i + 16 <= n; i += 16) {
    const float16 v = sb_load16(x + i);
    least = select(least, v, v < least);
    most = select(most, v, v > most);
    bad += v - v;
  }
  float l[16], m[16], b[16];
  *(sb_loose16_float*)l = least;
  *(sb_loose16_float*)m = most;
  *(sb_loose16_float*)b = bad;
  for (; i < n; ++i) {
    l[0] = x[i] < l[0] ? x[i] : l[0];
    m[0] = x[i] > m[0] ? x[i] : m[0];
    b[0] += x[i] - x[i];
  }
  for (int j = 1; j < 16; ++j) {
    l[0] = l[j] < l[0] ? l[j] : l[0];
    m[0] = m[j] > m[0] ? m[j] : m[0];
    b[0] += b[j];
  }
  *low = l[0] + b[0];
  *high = m[0] + b[0];
}

// ends [ranges][parts][2]. Groups: one for each part of each range of `span` values.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void int8_ranges(ARRAY(const float, x), ARRAY(float, ends),
                                                                         const long span, const int parts) {
  START(x);
  START(ends);
  const long group = get_group_id(0), range = group / parts, part = group - range * parts;
  const long first = span * part / parts, last = span * (part + 1) / parts;
  float low, high;
  int8_ends(x + range * span + first, last - first, &low, &high);
  ends[2 * group] = low;
  ends[2 * group + 1] = high;
}

// q and scales [ranges][2] = s, z. Groups: lines_per_group lines each.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void int8_quantise(ARRAY(const float, x),
                                                                           ARRAY(const float, ends), ARRAY(uchar, q),
                                                                           ARRAY(float, scales), const int8_lines l) {
  START(x);
  START(ends);
  START(q);
  START(scales);
  const int first = (int)get_group_id(0) * l.lines_per_group, last = min(l.lines, first + l.lines_per_group);
  float2 scale = (float2)(0);
  for (int line = first; line < last; ++line) {
    const int range = line / l.lines_of_range, is_first = line % l.lines_of_range == 0;
    __global const float* from = x + (long)line * l.length;
    if (is_first || line == first) {
      float low = l.low, high = l.high;
      if (!l.is_given && l.parts == 0) int8_ends(from, l.length, &low, &high);
      for (int p = 0; p < l.parts; ++p) {
        const float a = ends[2 * ((long)range * l.parts + p)], b = ends[2 * ((long)range * l.parts + p) + 1];
        low = p == 0 || !(a >= low) ? a : low;
        high = p == 0 || !(b <= high) ? b : high;
        if (a != a) break;
      }
      scale = int8_scale(low, high);
      if (is_first) {
        scales[2 * range] = scale.x;
        scales[2 * range + 1] = scale.y;
      }
    }
    const float inverse = 1.0f / scale.x;
    __global uchar* to = q + (long)line * l.pitch;
    int i = 0;
    for (; i + 16 <= l.length; i += 16) sb_store16(int8_bytes(sb_load16(from + i), inverse, scale.y), to + i);
    if (i < l.length) {
      float rest[16];
      for (int j = 0; j < 16; ++j) rest[j] = i + j < l.length ? from[i + j] : 0;
      const uchar16 bytes = int8_bytes(*(const sb_loose16_float*)rest, inverse, scale.y);
      uchar some[16];
      *(sb_loose16_uchar*)some = bytes;
      for (int j = 0; i + j < l.length; ++j) to[i + j] = some[j];
    }
    for (i = l.length; i < l.pitch; ++i) to[i] = 0;
  }
}

// Copies n bytes, in whole vectors: up to 63 bytes behind both are touched.
static void int8_copy(__global const uchar* from, uchar* to, const int n) {
#ifdef POCL_DEVICE_ADDRESS_BITS
  typedef ulong8 lane __attribute__((aligned(1)));
  for (int i = 0; i < n; i += 64) *(lane*)(to + i) = *(__global const lane*)(from + i);
#else
  for (int i = 0; i < n; ++i) to[i] = from[i];
#endif
}
static void int8_fill(const uchar value, uchar* to, const int n) {
  for (int i = 0; i < n; ++i) to[i] = value;
}

// A place of the result: its image, and where its window begins.
typedef struct {
  int image, x, y;
} int8_place;
static int8_place int8_place_of(const int8_sizes s, const int row) {
  const int image = row / (s.out_h * s.out_w), place = row - image * s.out_h * s.out_w, y = place / s.out_w;
  return (int8_place){image, place - y * s.out_w, y};
}
static int8_place int8_next(const int8_sizes s, int8_place p) {
  if (++p.x < s.out_w) return p;
  p.x = 0;
  if (++p.y < s.out_h) return p;
  p.y = 0;
  ++p.image;
  return p;
}

// Values `at` to `at` + n - 1 of the taps that lie side by side from (iy, ix) on.
static void int8_run(__global const uchar* q, const int8_sizes s, const int image, const int iy, const int ix,
                     const int at, const int n, const uchar z, uchar* to) {
  if (iy < 0 || iy >= s.h) {
    int8_fill(z, to, n);
    return;
  }
  // The values from `low` to `high` lie inside the line.
  const int low = max(at, min(at + n, -ix * s.c)), high = max(low, min(at + n, (s.w - ix) * s.c));
  int8_fill(z, to, low - at);
  int8_copy(q + (((long)image * s.h + iy) * s.w + ix) * s.c + low, to + (low - at), high - low);
  int8_fill(z, to + (high - at), at + n - high);
}

// Values k0 to k1 - 1 of the window of one place of the result, in order; up to 63 bytes behind k1 are touched.
static void int8_window(__global const uchar* q, const int8_sizes s, const int8_place p, const int k0, const int k1,
                        const uchar z, uchar* to) {
  const int y = p.y * s.stride_h - s.pad_h, x = p.x * s.stride_w - s.pad_w;
  const int taps = s.dilation_w == 1 ? s.kernel_w : 1, run = taps * s.c;  // that lie side by side, and their values
  int up = 0, tap = 0, at = 0;
  if (k0 > 0) {
    const int first = k0 / run, runs = s.kernel_w / taps;
    up = first / runs;
    tap = first - up * runs;
    at = k0 - first * run;
  }
  for (int k = k0; k < k1; at = 0) {
    const int n = min(run - at, k1 - k);
    int8_run(q, s, p.image, y + up * s.dilation_h, x + tap * s.dilation_w, at, n, z, to + (k - k0));
    k += n;
    tap += taps;
    if (tap < s.kernel_w) continue;
    tap = 0;
    ++up;
  }
}

// rows x columns of the result from sums (rows lds apart).
static void int8_epilogue(const int* sums, const int lds, __global const float* scales, const int8_sizes s,
                          const int row0, const int rows, const int j, const int columns, __global const int* totals,
                          __global const float* w_scales, __global const float* bias, __global const float* residual,
                          __global float* c, const int flags) {
  int range = row0 / s.rows_of_range, left = s.rows_of_range - row0 % s.rows_of_range;
  for (int r = 0; r < rows; ++r, sums += lds, --left) {
    if (left == 0) {
      ++range;
      left = s.rows_of_range;
    }
    const float scale = scales[2 * range];
    const int z = (int)scales[2 * range + 1];
    const long at = (long)(row0 + r) * s.n + j;
    int i = 0;
    for (; i + 16 <= columns; i += 16) {
      const int16 sum = *(const int8_ints*)(sums + i) - as_int16(sb_load16((__global const uint*)totals + j + i)) * z;
      float16 v = convert_float16(sum) * (sb_load16(w_scales + j + i) * scale);
      if (flags & GEMM_BIAS) v += sb_load16(bias + j + i);
      if (flags & GEMM_RESIDUAL) v += sb_load16(residual + at + i);
      if (flags & GEMM_RELU) v = select(v, (float16)(0), v < (float16)(0));
      if (flags & GEMM_ACTIVATION) {
        float one[16];
        *(sb_loose16_float*)one = v;
        for (int l = 0; l < 16; ++l) c[at + i + l] = sb_activated_one(one[l], flags & GEMM_RELU6);
        continue;
      }
      sb_store16(v, c + at + i);
    }
    for (; i < columns; ++i)
      c[at + i] =
          int8_finish(sums[i] - totals[j + i] * z, w_scales[j + i] * scale, bias + j + i, residual + at + i, flags);
  }
}

// Sums of `columns` columns, at most 32, of up to INT8_GROUP_ROWS rows, of kc values of k.
static void int8_sums(const uchar* block, const size_t in_place, const size_t row_bytes, __global const uchar* w,
                      const long panel_bytes, const int kc, const int rows, const int columns, int* sums, const int lds,
                      const int accumulate) {
#if defined(SAMEBYTES_INT8_TILES)
  const size_t q = in_place ? in_place : (size_t)block, pitch = in_place ? row_bytes : INT8_PITCH;
  const int depth = (kc + INT8_K - 1) / INT8_K;
  for (int i = 0; i < rows; i += INT8_ROWS)
    int8_tiles(q + i * pitch, pitch, (size_t)w, panel_bytes, depth, (size_t)(sums + i * lds), lds, accumulate,
               rows - i <= 16);
#elif defined(SAMEBYTES_INT8_DOTS)
  const int quads = (kc + 3) / 4;
  if (rows == 1) {
    int8_row_wide(block, w, panel_bytes, quads, sums, lds, accumulate);
    return;
  }
  for (int i = 0; i < rows; i += INT8_STEP) {
    if (columns > INT8_PANEL)
      int8_rows_wide(block + i * INT8_PITCH, w, panel_bytes, quads, sums + i * lds, lds, accumulate);
    else
      int8_rows_narrow(block + i * INT8_PITCH, w, panel_bytes, quads, sums + i * lds, lds, accumulate);
  }
#else
  const int quads = (kc + 3) / 4;
  for (int i = 0; i < rows; i += INT8_STEP) {
    float floats[INT8_STEP * INT8_BLOCK];
    for (int r = 0; r < INT8_STEP; ++r) {
      const uchar* row = block + min(i + r, rows - 1) * INT8_PITCH;
      for (int p = 0; p < 4 * quads; ++p) floats[r * INT8_BLOCK + p] = (float)row[p];
    }
    int8_rows_of(floats, w, quads, sums + i * lds, lds, accumulate);
    if (columns > INT8_PANEL)
      int8_rows_of(floats, w + panel_bytes, quads, sums + i * lds + INT8_PANEL, lds, accumulate);
  }
#endif
}

// c [rows][n]. Groups: x = row tiles of `group_rows`, y = column tiles of `group_columns`, multiples of 32.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void int8_product(
    ARRAY(const uchar, q), ARRAY(const float, scales), ARRAY(const uchar, panels), ARRAY(const int, totals),
    ARRAY(const float, w_scales), ARRAY(const float, bias), ARRAY(const float, residual), ARRAY(float, c),
    const int8_sizes s, const int flags, const int group_rows, const int group_columns) {
  START(q);
  START(scales);
  START(panels);
  START(totals);
  START(w_scales);
  START(bias);
  START(residual);
  START(c);
  const int row0 = (int)get_group_id(0) * group_rows, rows = min(group_rows, s.rows - row0);
  const int column0 = (int)get_group_id(1) * group_columns, columns = min(group_columns, s.n - column0);
  const long panel_bytes = (long)s.padded_k * INT8_PANEL;
  uint16 block[INT8_GROUP_ROWS * INT8_PITCH / 64];
  int16 sums[INT8_GROUP_ROWS * INT8_GROUP_COLUMNS / 16];
  const int lds = group_columns;
#if defined(SAMEBYTES_INT8_TILES)
  const int is_in_place = s.row_bytes != 0;
  amx_begin();
#else
  const int is_in_place = 0;
#endif
  for (int kb = 0; kb < s.k; kb += INT8_BLOCK) {
    const int kc = min(INT8_BLOCK, s.k - kb), is_last = kb + INT8_BLOCK >= s.k;
    const int copied = is_in_place ? 0 : rows;
    int8_place place = int8_place_of(s, row0);
    for (int r = 0; r < copied; ++r) {
      uchar* to = (uchar*)block + r * INT8_PITCH;
      if (s.row_bytes) {
        int8_copy(q + (long)(row0 + r) * s.row_bytes + kb, to, kc);
      } else {
        const int range = s.rows_of_range == s.rows ? 0 : place.image;
        int8_window(q, s, place, kb, kb + kc, (uchar)scales[2 * range + 1], to);
        place = int8_next(s, place);
      }
      for (int i = kc; i % 4 != 0; ++i) to[i] = 0;  // the rest of the last four
    }
    const size_t in_place = is_in_place ? (size_t)(q + (long)row0 * s.row_bytes + kb) : 0;
    for (int j = 0; j < columns; j += INT8_COLUMNS) {
      const int some = min(INT8_COLUMNS, columns - j);
      __global const uchar* w = panels + (column0 + j) / INT8_PANEL * panel_bytes + kb * INT8_PANEL;
      int8_sums((const uchar*)block, in_place, s.row_bytes, w, panel_bytes, kc, rows, some, (int*)sums + j, lds,
                kb > 0);
      if (is_last)
        int8_epilogue((const int*)sums + j, lds, scales, s, row0, rows, column0 + j, some, totals, w_scales, bias,
                      residual, c, flags);
    }
  }
#if defined(SAMEBYTES_INT8_TILES)
  AMX_END();
#endif
}
