// Eigen's matrix product on the host; ops/native.h says how often it is compiled. Eigen's namespace bears the name of
// the level there, so that the linker takes no template of one level for that of another.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 reports its own AVX-512 header
#endif
#include <Eigen/Core>

#include "ops/native.h"

namespace samebytes::detail {
namespace {

template <class T, int Order>
using Operand2d =
    Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class T, int OrderA, int OrderB>
void product(const T* a, const T* b, T* c, const GemmProblem& p) {
  const Operand2d<T, OrderA> left(a, p.m, p.k, Eigen::OuterStride<>(OrderA == Eigen::RowMajor ? p.a_row : p.a_col));
  const Operand2d<T, OrderB> right(b, p.k, p.n, Eigen::OuterStride<>(OrderB == Eigen::RowMajor ? p.b_row : p.b_col));
  Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(c, p.m, p.n).noalias() = left * right;
}

template <class T>
void dispatch(const T* a, const T* b, T* c, const GemmProblem& p) {
  constexpr int row = Eigen::RowMajor, col = Eigen::ColMajor;
  const bool a_rows = p.a_col == 1, b_rows = p.b_col == 1;
  if (a_rows && b_rows) return product<T, row, row>(a, b, c, p);
  if (a_rows) return product<T, row, col>(a, b, c, p);
  if (b_rows) return product<T, col, row>(a, b, c, p);
  product<T, col, col>(a, b, c, p);
}

}  // namespace

template <>
void gemm_at<kThisLevel>(const float* a, const float* b, float* c, const GemmProblem& problem) {
  dispatch(a, b, c, problem);
}
template <>
void gemm_at<kThisLevel>(const double* a, const double* b, double* c, const GemmProblem& problem) {
  dispatch(a, b, c, problem);
}

}  // namespace samebytes::detail
