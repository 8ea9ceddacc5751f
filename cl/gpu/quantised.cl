// Products with a matrix of quantised rows (shared/quantised.h): the tiles of gemm.cl, whose values of B are
// dequantised as they are loaded into local memory, once for each tile of C; a few rows of A have a group a column.
// Program: quantised
#include "shared/gemm.clh"
#include "shared/quantised.h"

#define QUANTISED_TILE 64  // rows and columns of C of a group of 16 x 16 work-items
#define QUANTISED_FEW_ROWS 8
#define QUANTISED_FEW_ITEMS 64
#define QUANTISED_PITCH 65  // of a row in local memory; odd, so that a column's values lie in different banks

static float quantised_half(__global const uchar* p) { return sb_f16_value((ushort)(p[0] | (ushort)p[1] << 8)); }
static int quantised_nibble(const uchar byte, const int is_high) { return is_high ? byte >> 4 : byte & 15; }

__constant float quantised_nf4[16] = {QUANTISED_NF4_LEVELS};

// Value i of a row.
static float quantised_value(__global const uchar* row, const int i, const int type) {
  if (type == QUANTISED_Q8_0) {
    __global const uchar* b = row + i / 32 * 34;
    return quantised_half(b) * (float)(char)b[2 + i % 32];
  }
  if (type == QUANTISED_Q4_0) {
    __global const uchar* b = row + i / 32 * 18;
    return quantised_half(b) * (float)(quantised_nibble(b[2 + i % 16], i % 32 / 16) - 8);
  }
  if (type == QUANTISED_NF4) {
    __global const uchar* b = row + i / 64 * 36;
    const uint bits = (uint)b[0] | (uint)b[1] << 8 | (uint)b[2] << 16 | (uint)b[3] << 24;
    return as_float(bits) * quantised_nf4[quantised_nibble(b[4 + i % 32], i % 64 / 32)];
  }
  const int within = i % 256, group = within / 32, at = within % 32;
  if (type == QUANTISED_Q6_K) {
    __global const uchar* b = row + i / 256 * 210;
    const int part = within / 128, quarter = group % 4;
    const int low = quantised_nibble(b[64 * part + 32 * (quarter & 1) + at], quarter >> 1);
    const int q = low + ((b[128 + 32 * part + at] >> (2 * quarter) & 3) << 4) - 32;
    return quantised_half(b + 208) * (float)(char)b[192 + 8 * part + 2 * quarter + at / 16] * (float)q;
  }
  const int has_fifth = type == QUANTISED_Q5_K;
  __global const uchar* b = row + i / 256 * (has_fifth ? 176 : 144);
  __global const uchar* s = b + 4;
  const int j = group, scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int least = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6) << 4;
  int q = quantised_nibble(b[(has_fifth ? 48 : 16) + 32 * (j >> 1) + at], j & 1);
  if (has_fifth) q += (b[16 + at] >> j & 1) << 4;
  return quantised_half(b) * (float)scale * (float)q - quantised_half(b + 2) * (float)least;
}

// c [m][n] = a [m][k] * B with the epilogue of `flags`, or where part is there, part[split] (as c) = the product over
// the split's part of k. Groups: x = ceil(m/64)*ceil(n/64), tiles of 64 x 64, column tile fastest; y = splits.
// Work-items load along a row of blocks, and hold rows ly + 16 r and columns lx + 16 s.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void quantised_product(
    ARRAY(const stored, a), ARRAY(const uchar, blocks), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), ARRAY(real, part), const quantised_rows layout, const gemm_sizes s, const gemm_strips share,
    const int flags) {
  START(a);
  START(blocks);
  START(bias);
  START(residual);
  START(c);
  START(part);
  GEMM_NAMES(s);
  const int column_tiles = share.column_tiles, split_k = share.split_k, is_part = part != 0;
  __local real a_tile[QUANTISED_STEP * QUANTISED_PITCH];
  __local real b_tile[QUANTISED_STEP * QUANTISED_PITCH];
  const int lx = get_local_id(0), ly = get_local_id(1), item = ly * 16 + lx;
  const int i0 = (int)(get_group_id(0) / column_tiles) * QUANTISED_TILE;
  const int j0 = (int)(get_group_id(0) % column_tiles) * QUANTISED_TILE;
  const int begin = (int)get_group_id(1) * split_k, end = min(k, begin + split_k);
  part += (long)get_group_id(1) * m * n;
  const int over_rows = layout.is_transposed;
  const int b_p = over_rows ? item / 64 : item % 16, b_j = over_rows ? item % 64 : item / 16;
  real acc[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int t = 0; t < 4; ++t) acc[r][t] = 0;
  }
  for (int p0 = begin; p0 < end; p0 += QUANTISED_STEP) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int p = item % 16, i = item / 16 + 16 * q;
      a_tile[p * QUANTISED_PITCH + i] = p0 + p < end && i0 + i < m ? LOAD(a + (i0 + i) * a_row + (p0 + p) * a_col) : 0;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int p = b_p + (over_rows ? 4 * q : 0), j = b_j + (over_rows ? 0 : 16 * q);
      real value = 0;
      if (p0 + p < end && j0 + j < n) {
        const long row = over_rows ? p0 + p : j0 + j;
        value = quantised_value(blocks + row * layout.row_bytes, over_rows ? j0 + j : p0 + p, layout.type);
      }
      b_tile[p * QUANTISED_PITCH + j] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int p = 0; p < QUANTISED_STEP; ++p) {
      real av[4], bv[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) av[r] = a_tile[p * QUANTISED_PITCH + ly + 16 * r];
#pragma unroll
      for (int t = 0; t < 4; ++t) bv[t] = b_tile[p * QUANTISED_PITCH + lx + 16 * t];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int t = 0; t < 4; ++t) acc[r][t] = FMA(av[r], bv[t], acc[r][t]);
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
      if (i < m && j < n) {
        const long at = (long)i * n + j;
        if (is_part)
          part[at] = acc[r][t];
        else
          STORE(gemm_finish(acc[r][t], c + at, bias + j, residual + at, flags), c + at);
      }
    }
  }
}

// c [m][n] = a [m][k], contiguous along k, times W' with the epilogue of `flags`, for m of QUANTISED_FEW_ROWS at most.
// Groups: a column each, whose sums over k its work-items share.
__kernel __attribute__((reqd_work_group_size(QUANTISED_FEW_ITEMS, 1, 1))) void quantised_few(
    ARRAY(const stored, a), ARRAY(const uchar, blocks), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(stored, c), const quantised_rows layout, const gemm_sizes s, const int flags) {
  START(a);
  START(blocks);
  START(bias);
  START(residual);
  START(c);
  __local real sums[QUANTISED_FEW_ROWS * QUANTISED_FEW_ITEMS];
  const int j = get_group_id(0), item = get_local_id(0);
  real own[QUANTISED_FEW_ROWS];
  for (int i = 0; i < QUANTISED_FEW_ROWS; ++i) own[i] = 0;
  __global const uchar* row = blocks + j * layout.row_bytes;
  for (int p = item; p < s.k; p += QUANTISED_FEW_ITEMS) {
    const real value = quantised_value(row, p, layout.type);
    for (int i = 0; i < s.m; ++i) own[i] = FMA(value, LOAD(a + i * s.a_row + p), own[i]);
  }
  for (int i = 0; i < QUANTISED_FEW_ROWS; ++i) sums[i * QUANTISED_FEW_ITEMS + item] = own[i];
  for (int half_items = QUANTISED_FEW_ITEMS / 2; half_items > 0; half_items /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_items) {
      for (int i = 0; i < s.m; ++i)
        sums[i * QUANTISED_FEW_ITEMS + item] += sums[i * QUANTISED_FEW_ITEMS + item + half_items];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < s.m) {
    const long at = (long)item * s.n + j;
    STORE(gemm_finish(sums[item * QUANTISED_FEW_ITEMS], c + at, bias + j, residual + at, flags), c + at);
  }
}

// dst [rows][columns] = the values of the rows. Groups: rows_per_group rows, each shared by its work-items.
__kernel void quantised_values(ARRAY(const uchar, blocks), ARRAY(real, dst), const quantised_rows layout,
                               const long rows, const long columns, const int rows_per_group) {
  START(blocks);
  START(dst);
  const int lanes = (int)get_local_size(0) / rows_per_group, lane = (int)get_local_id(0) & (lanes - 1);
  const long row = (long)get_group_id(0) * rows_per_group + get_local_id(0) / lanes;
  if (row >= rows) return;
  for (long i = lane; i < columns; i += lanes)
    dst[row * columns + i] = quantised_value(blocks + row * layout.row_bytes, (int)i, layout.type);
}
