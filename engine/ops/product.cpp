// The gradient of prod: of each element the product of all others, which divides by nothing, so that it is right where
// elements are 0. Kernels: cl/*/product.cl.
#include <algorithm>
#include <numeric>
#include <vector>

#include "graph/launch.h"
#include "ops/dtypes.h"
#include "ops/formula.h"
#include "ops/reduce.h"
#include "ops/rows.h"
#include "ops/sizes.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kLongest = kReducedInOnePass;  // of one launch: a line is the work of one group
constexpr std::int64_t kPart = 4096;                  // of a longer line
constexpr std::int64_t kStretches = 8;

// The product of a [O, R, I] along R, made of products of stretches, for its derivatives alone: each is a product of
// public ops.
Array product_of_stretches(const Array& a) {
  Array products = a, rest;
  for (std::int64_t left = a.shape()[1]; left > 1;) {
    const std::int64_t count = std::min<std::int64_t>(left, kStretches), length = left / count;
    for (std::int64_t i = count * length; i < left; ++i) {
      const Array one = slice(products, 1, i, i + 1);
      rest = rest.defined() ? rest * one : one;
    }
    std::vector<Array> parts;
    for (std::int64_t i = 0; i < count; ++i) parts.push_back(slice(products, 1, i * length, (i + 1) * length));
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
      for (std::size_t i = 0; 2 * i < parts.size(); ++i)
        parts[i] = 2 * i + 1 < parts.size() ? parts[2 * i] * parts[2 * i + 1] : parts[2 * i];
    products = parts[0];
    left = length;
  }
  return rest.defined() ? products * rest : products;
}

// Inputs a [O, R, I] and dy [O, 1, I], f32 or f64.
class ProductGradient final : public Op {
 public:
  std::string_view name() const override { return "prod_gradient"; }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const std::int64_t outer = shape[0], reduced = shape[1], inner = shape[2];
    if (inner == 1) {
      const RowShare share = share_rows(run, outer, reduced);
      run.kernel("product_rows_bwd", run.dst_dtype())
          .args(run.src(0), run.src(1), run.dst(), outer, reduced, share.rows_per_group)
          .over_rows(share.groups, share.group);
      return;
    }
    run.kernel("product_columns_bwd", run.dst_dtype())
        .args(run.src(0), run.src(1), run.dst(), reduced, inner)
        .over_rows(outer * ceil_div(inner, run.constant("product", "PRODUCT_TILE", run.dst_dtype())), 64);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    return formula_gradient(request, [](std::span<const Array> in) {
      return gradients(product_of_stretches(in[0]), {in.data(), 1}, in[1]);
    });
  }
};

Array gradient_of(const Array& a, const Array& dy) {
  static const OpPtr op = make_op<ProductGradient>();
  const std::int64_t outer = a.shape()[0], reduced = a.shape()[1], inner = a.shape()[2];
  if (reduced == 1) return dy;
  if (reduced <= kLongest) {
    const Array inputs[] = {a, dy};
    return make_array(op, a.shape(), a.dtype(), inputs);
  }
  // A long line is cut: dy of a part is the gradient of the product of the parts.
  const std::int64_t parts = reduced / kPart, end = parts * kPart;
  const Array lines = reshape(slice(a, 1, 0, end), {outer * parts, kPart, inner});
  const Array rest = end < reduced ? slice(a, 1, end, reduced) : Array();
  Array products = reshape(prod(lines, 1), {outer, parts, inner});
  if (rest.defined()) products = concat({products, prod(rest, 1, true)}, 1);
  const Array of_parts = gradient_of(products, dy);
  const Array dx = reshape(gradient_of(lines, reshape(slice(of_parts, 1, 0, parts), {outer * parts, 1, inner})),
                           {outer, end, inner});
  return rest.defined() ? concat({dx, gradient_of(rest, slice(of_parts, 1, parts, parts + 1))}, 1) : dx;
}

}  // namespace

Array product_gradient(const Array& a, const Array& dy, AxisMask axes) {
  const Shape& shape = a.shape();
  const Dtype real = real_of(a.dtype());
  // [O, R, I] where the reduced axes are neighbours; else they go to the end.
  std::vector<int> order;
  Shape lines{1, 1, 1};
  bool are_neighbours = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1 && is_reduced(axes, axis)) are_neighbours = are_neighbours && lines[2] == 1;
    lines[is_reduced(axes, axis) ? 1 : lines[1] == 1 ? 0 : 2] *= shape[axis];
  }
  if (are_neighbours)
    return as_dtype(
        reshape(gradient_of(reshape(as_dtype(a, real), lines), reshape(as_dtype(dy, real), {lines[0], 1, lines[2]})),
                shape),
        a.dtype());
  for (const bool reduced : {false, true})
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (is_reduced(axes, axis) == reduced) order.push_back(axis);
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  AxisMask behind = 0;
  for (int i = 0; i < shape.rank(); ++i)
    if (is_reduced(axes, order[static_cast<std::size_t>(i)])) behind |= AxisMask{1} << i;
  return transpose(product_gradient(transpose(a, order), transpose(dy, order), behind), back);
}

}  // namespace samebytes::detail
