// Sizes and strides of a matrix product, without what launches it: ops/gemm.h does.
#pragma once

#include <cstdint>

namespace samebytes::detail {

// C[z] (m x n, dense) = A[z] (m x k) * B[z] (k x n). A(i,p) = a[i*a_row + p*a_col], B(p,j) = b[p*b_row + j*b_col],
// strides in elements. z = o*inner + i over two batch axes; a stride of 0 repeats an operand.
struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;
  std::int64_t outer = 1, inner = 1;
  std::int64_t a_outer = 0, a_inner = 0, b_outer = 0, b_inner = 0;
};

}  // namespace samebytes::detail
