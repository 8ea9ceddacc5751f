#include "native/eigen_product.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 reports its own AVX-512 header
#endif
#include <Eigen/Core>

namespace samebytes::benchmarks {

void eigen_product(const float* a, const float* b, float* c, int m, int n, int k) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Matrix>(c, m, n).noalias() = Eigen::Map<const Matrix>(a, m, k) * Eigen::Map<const Matrix>(b, k, n);
}

}  // namespace samebytes::benchmarks
