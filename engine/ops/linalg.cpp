// Linear algebra by Eigen on the host: an op for each decomposition, whose gradient is made of public ops (M. Giles,
// "An extended collection of matrix derivative results", 2008, section 2; J. Townsend, "Differentiating the singular
// value decomposition", 2016).
#include "samebytes/linalg.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <limits>
#include <string>
#include <vector>

#include "graph/launch.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrices = std::vector<Matrix>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Matrices solved(const Matrices& in) { return {in[0].partialPivLu().solve(in[1])}; }
Matrices determined(const Matrices& in) { return {Matrix::Constant(1, 1, in[0].partialPivLu().determinant())}; }
Matrices cholesky_of(const Matrices& in) {
  const Eigen::LLT<Matrix> llt(in[0]);
  if (llt.info() != Eigen::Success) return {Matrix::Constant(in[0].rows(), in[0].cols(), kNan)};
  return {llt.matrixL()};
}
Matrices eigh_of(const Matrices& in) {
  if (!in[0].allFinite())
    return {Matrix::Constant(in[0].rows(), 1, kNan), Matrix::Constant(in[0].rows(), in[0].cols(), kNan)};
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(in[0]);
  return {solver.eigenvalues(), solver.eigenvectors()};
}
Matrices svd_of(const Matrices& in) {
  const Eigen::Index k = std::min(in[0].rows(), in[0].cols());
  if (!in[0].allFinite())
    return {Matrix::Constant(in[0].rows(), k, kNan), Matrix::Constant(k, 1, kNan),
            Matrix::Constant(k, in[0].cols(), kNan)};
  const Eigen::JacobiSVD<Matrix, Eigen::HouseholderQRPreconditioner> svd(in[0],
                                                                         Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.matrixU(), svd.singularValues(), svd.matrixV().transpose()};
}

Array transposed(const Array& a) { return transpose(a); }
Array diagonal(const Array& values) {  // [..., N] -> [..., N, N]
  const double n = static_cast<double>(values.shape().back());
  const Array is_on = equal(unsqueeze(arange(0, n, 1, i32), -1), arange(0, n, 1, i32));
  return where(is_on, unsqueeze(values, -1), 0);
}
Array diagonal_of(const Array& a) {
  const double n = static_cast<double>(a.shape().back());
  return where(equal(unsqueeze(arange(0, n, 1, i32), -1), arange(0, n, 1, i32)), a, 0);
}
Array symmetric(const Array& a) { return (a + transposed(a)) * 0.5; }
// 1 / (v[j] - v[i]) off the diagonal, 0 on it.
Array reciprocal_gaps(const Array& v) {
  const double n = static_cast<double>(v.shape().back());
  const Array is_on = equal(unsqueeze(arange(0, n, 1, i32), -1), arange(0, n, 1, i32));
  const Array gaps = unsqueeze(v, -2) - unsqueeze(v, -1);
  return where(is_on, 0, 1 / where(is_on, 1, gaps));
}
Array or_zeros(const Array& a, const Array& like) { return a.defined() ? a : zeros(like.shape(), like.dtype()); }

std::vector<Array> solve_gradient(const GradientRequest& g) {
  const Array db = linalg::solve(transposed(g.src[0]), g.dy[0]);
  return {g.wanted[0] ? -matmul(db, transposed(g.dst[0])) : Array(), db};
}
std::vector<Array> det_gradient(const GradientRequest& g) {
  return {g.dy[0] * g.dst[0] * transposed(linalg::inverse(g.src[0]))};
}
std::vector<Array> cholesky_gradient(const GradientRequest& g) {
  const Array& l = g.dst[0];
  const Array lower = tril(matmul(transposed(l), g.dy[0])), phi = lower - diagonal_of(lower) * 0.5;
  const Array lt = transposed(l);  // s = l^-T phi l^-1
  return {symmetric(transposed(linalg::solve(lt, transposed(linalg::solve(lt, phi)))))};
}
std::vector<Array> eigh_gradient(const GradientRequest& g) {
  const Array values = squeeze(g.dst[0], -1), &v = g.dst[1];
  Array inside = diagonal(squeeze(or_zeros(g.dy[0], g.dst[0]), -1));
  if (g.dy[1].defined()) inside = inside + matmul(transposed(v), g.dy[1]) * reciprocal_gaps(values);
  return {symmetric(matmul(matmul(v, inside), transposed(v)))};
}
std::vector<Array> svd_gradient(const GradientRequest& g) {
  const Array &u = g.dst[0], s = squeeze(g.dst[1], -1), &vt = g.dst[2];
  const Array column = unsqueeze(s, -1), row = unsqueeze(s, -2);
  Array inside = diagonal(squeeze(or_zeros(g.dy[1], g.dst[1]), -1));
  Array result = zeros(g.src[0].shape(), s.dtype());
  const auto skew = [](const Array& x) { return x - transposed(x); };
  if (g.dy[0].defined()) {
    const Array part = matmul(transposed(u), g.dy[0]);
    inside = inside + skew(part) * reciprocal_gaps(square(s)) * row;
    result = result + matmul((g.dy[0] - matmul(u, part)) / row, vt);
  }
  if (g.dy[2].defined()) {
    const Array dv = transposed(g.dy[2]), part = matmul(vt, dv);
    inside = inside + column * (skew(part) * reciprocal_gaps(square(s)));
    result = result + matmul(u / row, transposed(dv - matmul(transposed(vt), part)));
  }
  return {result + matmul(matmul(u, inside), vt)};
}

struct Decomposition {
  const char* name;
  Matrices (*f)(const Matrices&);
  std::vector<Array> (*gradient)(const GradientRequest&);
};
const Decomposition kSolve{"solve", solved, solve_gradient}, kDet{"det", determined, det_gradient},
    kCholesky{"cholesky", cholesky_of, cholesky_gradient}, kEigh{"eigh", eigh_of, eigh_gradient},
    kSvd{"svd", svd_of, svd_gradient};

// Matrices [batch, M, N] in and out.
class OfMatrices final : public Op {
 public:
  explicit OfMatrices(const Decomposition& what) : what_(what) {}
  std::string_view name() const override { return what_.name; }
  void launch(Launch& run) const override {
    if (run.dst_dtype() == f64)
      record<double>(run);
    else
      record<float>(run);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override { return what_.gradient(request); }

 private:
  struct Side {
    Operand operand;
    std::int64_t rows, columns;
  };
  template <class T>
  void record(Launch& run) const {
    std::vector<Side> from, to;
    std::vector<Operand> reads, writes;
    for (int i = 0; i < run.src_count(); ++i) {
      from.push_back({run.src(i), run.src_shape(i)[-2], run.src_shape(i)[-1]});
      reads.push_back(run.src(i));
    }
    for (int k = 0; k < static_cast<int>(std::max<std::size_t>(1, run.node().results.size())); ++k) {
      to.push_back({run.dst(k), run.dst_shape(k)[-2], run.dst_shape(k)[-1]});
      writes.push_back(run.dst(k));
    }
    const std::int64_t batch = run.src_shape(0)[0];
    run.host_call(what_.name, reads, writes, [=, f = what_.f](const std::function<void*(Operand)>& pointer) {
      using Stored = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
      for (std::int64_t b = 0; b < batch; ++b) {
        Matrices in;
        for (const Side& side : from) {
          const T* at = static_cast<const T*>(pointer(side.operand)) + b * side.rows * side.columns;
          in.push_back(Eigen::Map<const Stored>(at, side.rows, side.columns).template cast<double>());
        }
        const Matrices out = f(in);
        for (std::size_t k = 0; k < to.size(); ++k) {
          T* at = static_cast<T*>(pointer(to[k].operand)) + b * to[k].rows * to[k].columns;
          Eigen::Map<Stored>(at, to[k].rows, to[k].columns) = out[k].template cast<T>();
        }
      }
    });
  }
  const Decomposition& what_;
};

// The matrices with one batch axis; what they had is put back by `batched`.
Array flat(const char* op, const Array& a, bool is_square) {
  require(a.defined() && (a.dtype() == f32 || a.dtype() == f64) && a.shape().rank() >= 2 &&
              (!is_square || a.shape()[-1] == a.shape()[-2]),
          op, is_square ? "needs f32 or f64 square matrices [..., N, N]" : "needs f32 or f64 matrices [..., M, N]", a,
          "a");
  require(a.size() > 0, op, "needs elements", a, "a");
  return reshape(a, {-1, a.shape()[-2], a.shape()[-1]});
}
Array batched(const Array& result, const Array& like, std::initializer_list<std::int64_t> last) {
  Shape shape(std::span<const std::int64_t>(like.shape().begin(), like.shape().end() - 2));
  for (const std::int64_t size : last) shape.push_back(size);
  return reshape(result, shape);
}
std::vector<Array> results_of(const Decomposition& what, std::span<const Result> results, std::vector<Array> inputs) {
  if (results.size() == 1) return {make_array(make_op<OfMatrices>(what), results[0].shape, results[0].dtype, inputs)};
  return make_arrays(make_op<OfMatrices>(what), results, inputs);
}

}  // namespace
}  // namespace detail

namespace linalg {

using detail::batched;
using detail::Result;

Array solve(const Input& a, const Input& b) {
  const Array left = detail::flat("solve", a, true), right = detail::flat("solve", b, false);
  if (left.shape()[0] != right.shape()[0] || left.shape()[2] != right.shape()[1] || a.dtype() != b.dtype())
    throw ArgumentError("solve: a [..., N, N] and b [..., N, K] must have one batch, one N and one type, a is " +
                        detail::describe(a) + ", b is " + detail::describe(b));
  const Result result[] = {{right.shape(), a.dtype()}};
  return reshape(detail::results_of(detail::kSolve, result, {left, right})[0], b.shape());
}

Array inverse(const Input& a) {
  const Array left = detail::flat("inverse", a, true);
  const std::int64_t n = left.shape()[1];
  const Array one = detail::diagonal(ones({n}, a.dtype()));
  return reshape(solve(left, contiguous(broadcast_to(one, left.shape()))), a.shape());
}

Array det(const Input& a) {
  const Array flat = detail::flat("det", a, true);
  const Result result[] = {{Shape{flat.shape()[0], 1, 1}, a.dtype()}};
  return batched(detail::results_of(detail::kDet, result, {flat})[0], a, {});
}

Array cholesky(const Input& a) {
  const Array flat = detail::flat("cholesky", a, true);
  const Result result[] = {{flat.shape(), a.dtype()}};
  return reshape(detail::results_of(detail::kCholesky, result, {flat})[0], a.shape());
}

EighResult eigh(const Input& a) {
  const Array flat = detail::flat("eigh", a, true);
  const std::int64_t n = flat.shape()[1];
  const Result results[] = {{Shape{flat.shape()[0], n, 1}, a.dtype()}, {flat.shape(), a.dtype()}};
  const std::vector<Array> parts = detail::results_of(detail::kEigh, results, {flat});
  return {batched(parts[0], a, {n}), reshape(parts[1], a.shape())};
}

SvdResult svd(const Input& a) {
  const Array flat = detail::flat("svd", a, false);
  const std::int64_t batch = flat.shape()[0], m = flat.shape()[1], n = flat.shape()[2], k = std::min(m, n);
  const Result results[] = {
      {Shape{batch, m, k}, a.dtype()}, {Shape{batch, k, 1}, a.dtype()}, {Shape{batch, k, n}, a.dtype()}};
  const std::vector<Array> parts = detail::results_of(detail::kSvd, results, {flat});
  return {batched(parts[0], a, {m, k}), batched(parts[1], a, {k}), batched(parts[2], a, {k, n})};
}

}  // namespace linalg
}  // namespace samebytes
