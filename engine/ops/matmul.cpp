// Matrix products: matmul as NumPy defines it, and linear, whose weight is [out, in] and whose bias is added in the
// kernel's epilogue. Transposed, sliced and broadcast operands are read through their strides; nothing is copied for
// them (kernels: gemm.h).
#include <array>
#include <optional>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/dtypes.h"
#include "ops/gemm.h"
#include "ops/kept_bias.h"
#include "ops/reduce.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

Strides strides_of(const Array& a) { return a.node()->is_view ? a.node()->strides : dense_strides(a.shape()); }

std::string shape_of(const Array& a) { return a.shape().to_string(); }

Cost product_cost(const Shape& dst, std::int64_t k, std::span<const Shape> src) {
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(dst.size()) * static_cast<double>(k);
  cost.bytes = 4.0 * static_cast<double>(dst.size());
  for (const Shape& s : src) cost.bytes += 4.0 * static_cast<double>(s.size());
  return cost;
}

// The problem of a [..., M, K] x b [..., K, N] with broadcast batch axes; nullopt if they do not merge into two.
std::optional<GemmProblem> make_problem(const Shape& a, const Strides& a_strides, const Shape& b,
                                        const Strides& b_strides, const Shape& dst) {
  GemmProblem p;
  const int ra = a.rank(), rb = b.rank(), rank = dst.rank();
  p.m = a[-2];
  p.k = a[-1];
  p.n = b[-1];
  p.a_row = a_strides[ra - 2];
  p.a_col = a_strides[ra - 1];
  p.b_row = b_strides[rb - 2];
  p.b_col = b_strides[rb - 1];
  struct Axis {
    std::int64_t size, a, b;
  };
  std::array<Axis, Shape::kMaxRank> axes{};
  int count = 0;
  for (int i = 0; i < rank - 2; ++i) {
    if (dst[i] == 1) continue;
    const int ia = i - (rank - ra), ib = i - (rank - rb);
    const Axis axis{dst[i], ia < 0 || a[ia] == 1 ? 0 : a_strides[ia], ib < 0 || b[ib] == 1 ? 0 : b_strides[ib]};
    Axis* last = count > 0 ? &axes[count - 1] : nullptr;
    if (last && last->a == axis.a * axis.size && last->b == axis.b * axis.size)
      *last = {last->size * axis.size, axis.a, axis.b};
    else
      axes[count++] = axis;
  }
  if (count > 2) return std::nullopt;
  if (count >= 1) {
    p.inner = axes[count - 1].size;
    p.a_inner = axes[count - 1].a;
    p.b_inner = axes[count - 1].b;
  }
  if (count == 2) {
    p.outer = axes[0].size;
    p.a_outer = axes[0].a;
    p.b_outer = axes[0].b;
  }
  return p;
}

// x [M, K], a [K, N] in panels (gemm.h), bias [N] or absent -> [M, N]: in a graph that was settled
class PanelProduct final : public Op {
 public:
  explicit PanelProduct(std::int64_t columns) : Op({.takes_strides = {0}, .takes_epilogue = true}), columns_(columns) {}
  std::string_view name() const override { return "linear"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(columns_)); }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return product_cost(dst[0], src[0].back(), src);
  }
  void launch(Launch& run) const override {
    const Strides strides = run.src_strides(0);
    GemmProblem p;
    p.m = run.src_shape(0)[0];
    p.k = run.src_shape(0)[1];
    p.n = columns_;
    p.a_row = strides[0];
    p.a_col = strides[1];
    launch_gemm_panels(run, run.src(0), run.src(1), run.optional_src(2), run.dst(), p, run.dst_dtype());
  }

 private:
  std::int64_t columns_;
};

// The product of the node of `run` with its right operand b [K, N], which is constant, in panels.
Array panel_product(const Launch& run, const Array& b) {
  const Node& node = run.node();
  std::vector<Array> inputs;
  for (const Edge& edge : node.inputs) inputs.emplace_back(edge.node);
  inputs[1] = gemm_panels(run, b);
  return make_array(make_op<PanelProduct>(b.shape()[1]), node.shape, node.dtype, inputs);
}

class Matmul final : public Op, public Written {
 public:
  Matmul() : Op({.takes_strides = InputSet::all(), .takes_epilogue = true}) {}
  std::string_view name() const override { return "matmul"; }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return product_cost(dst[0], src[0].back(), src);
  }

  void launch(Launch& run) const override {
    const auto problem =
        make_problem(run.src_shape(0), run.src_strides(0), run.src_shape(1), run.src_strides(1), run.dst_shape());
    if (!problem) throw Error("matmul: the batch axes of the operands do not merge into two");
    launch_gemm(run, run.src(0), run.src(1), Launch::none(), run.dst(), *problem, run.dst_dtype());
  }

  Array settled(const Launch& run, std::span<const bool> is_constant) const override {
    const auto problem =
        make_problem(run.src_shape(0), run.src_strides(0), run.src_shape(1), run.src_strides(1), run.node().shape);
    if (!is_constant[1] || run.src_shape(0).rank() != 2 || run.src_shape(1).rank() != 2 || !problem ||
        !gemm_takes_panels(run, *problem, run.node().dtype))
      return {};
    return panel_product(run, Array(run.node().inputs[1].node));
  }

  std::vector<Array> gradient(const GradientRequest& g) const override {
    std::vector<Array> result(2);
    if (g.wanted[0]) result[0] = sum_to(matmul(g.dy[0], transpose(g.src[1])), g.src[0].shape());
    if (g.wanted[1]) result[1] = sum_to(matmul(transpose(g.src[0]), g.dy[0]), g.src[1].shape());
    return result;
  }
  void write(NodeWriter& w) const override { w.give(w.put("MatMul", {w.in(0), w.in(1)})); }
};

// x [M, K], weight [N, K], bias [N] of the dtype that sums have, or absent.
class Linear final : public Op, public Written {
 public:
  Linear() : Op({.takes_strides = {0, 1}, .takes_epilogue = true}) {}
  std::string_view name() const override { return "linear"; }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return product_cost(dst[0], src[0].back(), src);
  }

  void launch(Launch& run) const override {
    launch_gemm(run, run.src(0), run.src(1), run.optional_src(2), run.dst(), problem_of(run), run.dst_dtype());
  }

  Array settled(const Launch& run, std::span<const bool> is_constant) const override {
    if (!is_constant[1] || !gemm_takes_panels(run, problem_of(run), run.node().dtype)) return {};
    return panel_product(run, transpose(Array(run.node().inputs[1].node)));
  }

  std::vector<Array> gradient(const GradientRequest& g) const override {
    std::vector<Array> result(g.src.size());
    if (g.wanted[0]) result[0] = matmul(g.dy[0], g.src[1]);
    if (g.wanted[1]) result[1] = matmul(transpose(g.dy[0]), g.src[0]);
    if (g.src.size() > 2 && g.wanted[2]) result[2] = column_sums(g.dy[0]);
    return result;
  }
  void write(NodeWriter& w) const override {
    std::vector<NodeWriter::Name> inputs{w.in(0), w.in(1)};
    if (w.count() > 2) inputs.push_back(w.cast(w.in(2), w.dtype(2), w.result_dtype()));
    w.give(w.put("Gemm", inputs, {{"transB", std::int64_t{1}}}));
  }

 private:
  static GemmProblem problem_of(const Launch& run) {
    const Shape &x = run.src_shape(0), &weight = run.src_shape(1);
    const Strides xs = run.src_strides(0), ws = run.src_strides(1);
    GemmProblem p;
    p.m = x[0];
    p.k = x[1];
    p.n = weight[0];
    p.a_row = xs[0];
    p.a_col = xs[1];
    p.b_row = ws[1];
    p.b_col = ws[0];
    return p;
  }
};

}  // namespace
}  // namespace detail

const detail::CastRow kMatmulCast{"matmul", CastRule::lower};
Array matmul(const Input& a, const Input& b) {
  if (const detail::Casts cast(kMatmulCast); cast) return matmul(cast(a), cast(b));
  using detail::require;
  require(a.defined() && is_floating(a.dtype()) && a.shape().rank() >= 2, "matmul",
          "a must be floating with two axes or more", a, "a");
  require(b.defined() && is_floating(b.dtype()) && b.shape().rank() >= 2, "matmul",
          "b must be floating with two axes or more", b, "b");
  if (a.shape()[-1] != b.shape()[-2])
    throw ArgumentError("matmul: inner dimensions differ: a is " + detail::shape_of(a) + ", b is " +
                        detail::shape_of(b));
  const int ra = a.shape().rank(), rb = b.shape().rank();
  const Dtype dtype = detail::wider(a.dtype(), b.dtype());
  if (a.dtype() != b.dtype()) return matmul(detail::as_dtype(a, dtype), detail::as_dtype(b, dtype));

  const std::span<const std::int64_t> a_sizes(a.shape().begin(), a.shape().end()),
      b_sizes(b.shape().begin(), b.shape().end());
  Shape dst;
  try {
    dst =
        broadcast_shapes("matmul", Shape(a_sizes.first(a_sizes.size() - 2)), Shape(b_sizes.first(b_sizes.size() - 2)));
  } catch (const ArgumentError&) {
    throw ArgumentError("matmul: batch axes do not broadcast: a is " + detail::shape_of(a) + ", b is " +
                        detail::shape_of(b));
  }
  const std::int64_t m = a.shape()[-2], k = a.shape()[-1], n = b.shape()[-1];
  const Shape batch = dst;
  dst.push_back(m);
  dst.push_back(n);
  if (k == 0 || dst.size() == 0) return zeros(dst, dtype);
  if (rb == 2 && ra > 2)  // one product of all rows, whose gradient for b is one product, too
    return reshape(matmul(reshape(a, {-1, k}), b), dst);

  std::array<Array, 2> operands{a, b};
  const auto fits = [&] {
    return detail::make_problem(operands[0].shape(), detail::strides_of(operands[0]), operands[1].shape(),
                                detail::strides_of(operands[1]), dst);
  };
  if (!fits()) operands = {contiguous(a), contiguous(b)};
  if (!fits()) {
    Shape whole_a = batch, whole_b = batch;
    whole_a.push_back(m);
    whole_a.push_back(k);
    whole_b.push_back(k);
    whole_b.push_back(n);
    operands = {contiguous(broadcast_to(a, whole_a)), contiguous(broadcast_to(b, whole_b))};
  }
  static const auto op = detail::make_op<detail::Matmul>();
  return detail::make_array(op, dst, dtype, operands);
}

const detail::CastRow kLinearCast{"linear", CastRule::lower};
Array linear(const Input& x, const Input& weight, const Input& bias) {
  if (const detail::Casts cast(kLinearCast); cast)
    return linear(cast(x), cast(weight), detail::kept_bias(cast, bias, cast(x).dtype()));
  using detail::require;
  require(x.defined() && is_floating(x.dtype()) && x.shape().rank() >= 1, "linear",
          "x must be floating with one axis or more", x, "x");
  require(weight.defined() && is_floating(weight.dtype()) && weight.shape().rank() == 2, "linear",
          "weight must be floating [out, in]", weight, "weight");
  if (x.shape().back() != weight.shape()[1])
    throw ArgumentError("linear: x must have " + std::to_string(weight.shape()[1]) + " values in its last axis, x is " +
                        detail::shape_of(x) + ", weight is " + detail::shape_of(weight));
  const std::int64_t out = weight.shape()[0], in = weight.shape()[1];
  if (bias.defined())
    require(is_floating(bias.dtype()) && bias.shape() == Shape{out}, "linear", "bias must be floating [out]", bias,
            "bias");
  Dtype dtype = detail::wider(x.dtype(), weight.dtype());
  if (bias.defined() && bias.dtype() == f64) dtype = f64;
  Shape dst = x.shape();
  dst[-1] = out;
  if (x.size() == 0 || weight.size() == 0) {
    const Array nothing = zeros(dst, dtype);
    return bias.defined() ? nothing + detail::as_dtype(bias, dtype) : nothing;
  }
  if (x.shape().rank() != 2) return reshape(linear(reshape(x, {-1, in}), weight, bias), dst);
  static const auto op = detail::make_op<detail::Linear>();
  std::vector<Array> inputs{detail::as_dtype(x, dtype), detail::as_dtype(weight, dtype)};
  if (bias.defined()) inputs.push_back(detail::as_dtype(bias, detail::real_of(dtype)));
  return detail::make_array(op, dst, dtype, inputs);
}

}  // namespace samebytes
