// Quantised matrices, as ggml lays them out (ggml-quants.c), and NF4: what kernels (quantised) and the code that
// launches them both say. A row is a sequence of blocks. Read by C++ and by OpenCL C.
//
//   type   values  bytes  block
//   Q8_0      32     34   f16 d, 32 x i8                                       d q
//   Q4_0      32     18   f16 d, 16 bytes: values i and i + 16                 d (q - 8)
//   Q4_K     256    144   f16 d, f16 m, 8 x (scale, least) in 12 bytes, 4 x 32 bytes: values i and i + 32
//                                                                              d scale q - m least
//   Q5_K     256    176   the same with 32 bytes of fifth bits before the low ones
//   Q6_K     256    210   2 x 64 low nibbles, 2 x 32 high pairs, 16 x i8 scale, f16 d
//                                                                              d scale (q - 32)
//   NF4       64     36   f32 m, 32 bytes: values i and i + 32                 m table[q]
#ifdef __cplusplus
#pragma once

#include <cstdint>

namespace samebytes::detail {
typedef std::int64_t quantised_stride;
#else
typedef long quantised_stride;
#endif

// The levels of NF4: quantiles of a normal distribution (T. Dettmers et al., "QLoRA", 2023, appendix E).
#define QUANTISED_NF4_LEVELS                                                                          \
  -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,    \
      -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, \
      0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f

enum { QUANTISED_Q8_0 = 1, QUANTISED_Q4_0, QUANTISED_Q4_K, QUANTISED_Q5_K, QUANTISED_Q6_K, QUANTISED_NF4 };
// Values that kernels dequantise as a vector; sums over k are cut at multiples of two vectors.
enum { QUANTISED_STEP = 16 };

// Rows [N][row_bytes] of a type. is_transposed: k runs over the rows, as for a gradient, else within them.
typedef struct {
  quantised_stride row_bytes;
  int type, is_transposed;
} quantised_rows;

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
