// Matrix products and convolutions in double by their definitions, loop by loop: what the ops are compared with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebytes/ops.h"
#include "samebytes/shape.h"

namespace samebytes::testing {

// a [..., M, K] x b [..., K, N], dense, batch axes broadcast.
std::vector<double> reference_matmul(std::span<const double> a, const Shape& a_shape, std::span<const double> b,
                                     const Shape& b_shape);

// [M, N] -> [N, M]
std::vector<double> reference_transpose(std::span<const double> a, std::int64_t m, std::int64_t n);

// src [N, H, W, C], weight [kh, kw, C / groups, K] -> [N, OH, OW, K]. Where the gradients are wanted, also those of
// sum(dy * y).
struct ReferenceConv2d {
  Shape shape;  // of y
  std::vector<double> y;
  std::vector<double> d_src, d_weight;
};
ReferenceConv2d reference_conv2d(std::span<const double> src, const Shape& src_shape, std::span<const double> weight,
                                 const Shape& weight_shape, const Conv2dOptions& options,
                                 std::span<const double> dy = {});

}  // namespace samebytes::testing
