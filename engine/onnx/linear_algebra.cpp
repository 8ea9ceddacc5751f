// Products of matrices, and of arrays by letters; determinants.
#include "samebytes/linalg.h"

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

Outputs summed_products(const Call& call) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < call.in.size(); ++i) arrays.push_back(call.floating(i));
  return {item_of(einsum(call.text("equation", ""), arrays))};
}

Outputs product(const Call& call) {
  Array a = call.floating(0), b = call.floating(1);
  const int ra = a.shape().rank(), rb = b.shape().rank();
  if (ra == 0 || rb == 0) call.refuse("a scalar is not supported");
  if (ra == 1) a = unsqueeze(a, 0);
  if (rb == 1) b = unsqueeze(b, 1);
  Array y = matmul(a, b);
  if (rb == 1) y = squeeze(y, -1);
  if (ra == 1) y = squeeze(y, rb == 1 ? -1 : -2);
  return {item_of(y)};
}

Outputs gemm(const Call& call) {
  Array a = call.floating(0);
  const Array b = call.floating(1), c = call.optional(2);
  const double alpha = call.real("alpha", 1.0), beta = call.real("beta", 1.0);
  if (call.rank(0) != 2 || call.rank(1) != 2) call.refuse("expected two matrices");
  if (call.integer("transA", 0) != 0) a = transpose(a);
  const bool is_linear = call.integer("transB", 0) != 0;
  const bool has_bias =
      is_linear && c.defined() && c.shape().rank() == 1 && c.shape()[0] == b.shape()[0] && alpha == 1 && beta == 1;
  if (has_bias) return {item_of(linear(a, b, c))};
  Array y = is_linear ? linear(a, b) : matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (c.defined()) y = y + (beta == 1 ? c : c * beta);
  return {item_of(y)};
}

Outputs determinant(const Call& call) {
  const Array a = call.floating();
  return {item_of(a.dtype() == f64 ? linalg::det(a) : astype(linalg::det(astype(a, f32)), a.dtype()))};
}

}  // namespace

void add_linear_algebra(Registry& registry) {
  registry.insert({{"MatMul", product}, {"Gemm", gemm}, {"Einsum", summed_products}, {"Det", determinant}});
}

}  // namespace samebytes::onnx
