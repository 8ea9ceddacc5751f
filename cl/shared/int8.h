// Products and convolutions of 8-bit integers: what kernels (int8) and the code that launches them
// (engine/ops/int8.cpp) both say. Read by C++ and by OpenCL C.
//
//   y[i,n] = s_i w_n (sum over k of q[i,k] W[n,k] - z_i total_n) + bias[n]
//
//   q   u8 with a zero point:  x = s (q - z)      one s and z for the rows that share a range
//   W   i8, symmetric:         weight = w_n W     one w for each channel of the result; total_n = sum over k of W[n,k]
//
// Weights lie as the instructions of CPUs take them, k in fours and channels in sixteens, zeros where there are none:
//   panels [ceil(N / 32) * 2][K4 / 4][16][4]      K4 = k up to a multiple of INT8_K
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

enum { INT8_K = 64, INT8_PANEL = 16, INT8_COLUMNS = 32, INT8_ROWS = 32 };

// Rows of the result are places of images, x [images, h, w, c]; rows that lie in memory have h = w = 1 taps, and
// row_bytes from row to row. A window that reaches over the edge reads z.
typedef struct {
  int rows, n, k, padded_k;
  int row_bytes;      // 0: windows of images
  int rows_of_range;  // rows of the result that share s and z
  int h, w, c, out_h, out_w, kernel_h, kernel_w;
  int stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
} int8_sizes;

// How inputs become bytes: lines of `length` values, `pitch` bytes apart behind that, zeros between.
typedef struct {
  int lines, length, pitch;
  int lines_of_range;   // lines that share s and z
  int parts;            // of a range, whose ends were found before; 0: the range is given, or a line is one
  int lines_per_group;  // of a CPU device
  int is_given;
  float low, high;
} int8_lines;

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
