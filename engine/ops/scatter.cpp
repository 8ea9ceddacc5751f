// scatter and scatter_reduce: values put at places, later ones behind earlier ones (kernels: cl/*/scatter.cl). Sums are
// scatter_add's. Gradients are made of public ops, so they can be differentiated again.
#include <limits>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "ops/indexing.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "shared/scatter.h"

namespace samebytes {
namespace detail {
namespace {

Array scatter_by(int how, const Array& a, int axis, const Array& index, const Array& src);

// The number of src's place along the axis, in the shape of the index.
Array order_of(const Array& index, int axis) {
  Shape line;
  for (int i = 0; i < index.shape().rank(); ++i) line.push_back(i == axis ? index.shape()[i] : 1);
  return broadcast_to(reshape(arange(0, static_cast<double>(index.shape()[axis]), 1, i32), line), index.shape());
}

// Inputs a, index and src, dense and of equal sizes but along the axis.
class Scatter final : public Op {
 public:
  Scatter(int axis, int how) : axis_(axis), how_(how) {}
  std::string_view name() const override { return how_ == SCATTER_REPLACE ? "scatter" : "scatter_reduce"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(axis_));
    hasher.add(static_cast<std::uint64_t>(how_));
  }
  void launch(Launch& run) const override {
    const Around at(run.dst_shape(), axis_);
    const Dtype dtype = run.dst_dtype();
    const Dtype program = dtype == i32 ? f32 : dtype;
    const std::int64_t tile = run.constant("scatter", "SCATTER_TILE", program);
    KernelCall call = run.kernel(dtype == i32 ? "scatter_i32" : "scatter_real", program);
    call.args(run.src(0), run.src(1), run.src(2), run.dst(), static_cast<int>(at.depth), run.src_shape(1)[axis_],
              at.inner, how_);
    if (dtype == i32)
      call.args(-1);
    else
      call.args(std::numeric_limits<double>::quiet_NaN());
    call.over_rows(at.outer * ((at.inner + tile - 1) / tile), static_cast<int>(tile));
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    if (!is_floating(request.src[0].dtype())) return {};
    if (how_ == SCATTER_REPLACE) return of_replace(request);
    if (how_ == SCATTER_PROD) return of_prod(request);
    return of_extreme(request);
  }

 private:
  // Places that were replaced give nothing back; of those that went to one place the last one counts.
  std::vector<Array> of_replace(const GradientRequest& request) const {
    const Array &dy = request.dy[0], &index = request.src[1];
    std::vector<Array> result(3);
    if (request.wanted[0]) result[0] = scatter(dy, axis_, index, zeros(index.shape(), dy.dtype()));
    if (request.wanted[2]) {
      const Array order = order_of(index, axis_);
      const Array last = scatter_by(SCATTER_REPLACE, full(dy.shape(), -1, i32), axis_, index, order);
      const Array lost = not_equal(gather(last, axis_, index), order);
      result[2] = masked_fill(gather(dy, axis_, index), lost, 0.0);
    }
    return result;
  }

  // The product of the others: of all that are not 0, where none of the others is 0.
  std::vector<Array> of_prod(const GradientRequest& request) const {
    const Array &dy = request.dy[0], &a = request.src[0], &index = request.src[1], &src = request.src[2];
    const Array a_is_zero = equal(a, 0), src_is_zero = equal(src, 0);
    const Array rest_a = masked_fill(a, a_is_zero, 1.0), rest_src = masked_fill(src, src_is_zero, 1.0);
    const Array rest = scatter_by(SCATTER_PROD, rest_a, axis_, index, rest_src);
    const Array zeros_there = scatter_add(astype(a_is_zero, a.dtype()), axis_, index, astype(src_is_zero, a.dtype()));
    std::vector<Array> result(3);
    // Of an element that is 0 itself the others have one 0 fewer.
    const auto others = [](const Array& count, const Array& is_zero) {
      return not_equal(count, astype(is_zero, count.dtype()));
    };
    if (request.wanted[0]) result[0] = masked_fill(dy * rest / rest_a, others(zeros_there, a_is_zero), 0.0);
    if (request.wanted[2])
      result[2] = masked_fill(gather(dy, axis_, index) * gather(rest, axis_, index) / rest_src,
                              others(gather(zeros_there, axis_, index), src_is_zero), 0.0);
    return result;
  }

  // Equal values share the gradient.
  std::vector<Array> of_extreme(const GradientRequest& request) const {
    const Array &dy = request.dy[0], &a = request.src[0], &index = request.src[1], &src = request.src[2];
    const Array &y = request.dst[0], of_a = astype(equal(a, y), a.dtype());
    const Array of_src = astype(equal(src, gather(y, axis_, index)), a.dtype());
    const Array share = dy / scatter_add(of_a, axis_, index, of_src);
    return {of_a * share, Array(), of_src * gather(share, axis_, index)};
  }

  int axis_, how_;
};

// a, index and src as scatter_parts leaves them, or with places beyond the index.
Array scatter_by(int how, const Array& a, int axis, const Array& index, const Array& src) {
  if (index.size() == 0 || a.size() == 0) return a;
  const Array inputs[] = {a, index, src};
  return make_array(make_op<Scatter>(axis, how), a.shape(), a.dtype(), inputs);
}

// f(a, src), where 16 bits become f32 and what the index does not reach stays beside.
template <class F>
Array over_reached(const ScatterParts& parts, const F& f) {
  const Dtype dtype = parts.a.dtype();
  if (dtype == f16 || dtype == bf16) {
    ScatterParts wide = parts;
    wide.a = astype(parts.a, f32);
    wide.src = astype(parts.src, f32);
    return astype(over_reached(wide, f), dtype);
  }
  Array a = parts.a;
  const Shape& reached = parts.index.shape();
  for (int i = 0; i < reached.rank(); ++i)
    if (i != parts.axis && reached[i] < a.shape()[i]) a = slice(a, i, 0, reached[i]);
  Array y = f(a, parts.src);
  for (int i = reached.rank() - 1; i >= 0; --i) {
    if (i == parts.axis || reached[i] == parts.a.shape()[i]) continue;
    Array beside = slice(parts.a, i, reached[i], parts.a.shape()[i]);
    for (int k = 0; k < i; ++k)
      if (k != parts.axis && reached[k] < beside.shape()[k]) beside = slice(beside, k, 0, reached[k]);
    y = concat({y, beside}, i);
  }
  return y;
}

double neutral(ScatterReduce reduce) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return reduce == ScatterReduce::prod ? 1 : reduce == ScatterReduce::amax ? -infinity : infinity;
}

}  // namespace
}  // namespace detail

Array scatter(const Input& a, int axis, const Input& index, const Input& src) {
  const detail::ScatterParts parts = detail::scatter_parts("scatter", a, axis, index, src);
  detail::require(is_floating(a.dtype()) || a.dtype() == i32, "scatter", "needs a floating or i32 array", a, "a");
  return detail::over_reached(parts, [&](const Array& base, const Array& values) {
    return detail::scatter_by(detail::SCATTER_REPLACE, base, parts.axis, parts.index, values);
  });
}

Array scatter_reduce(const Input& a, int axis, const Input& index, const Input& src, const ScatterOptions& o) {
  const detail::ScatterParts parts = detail::scatter_parts("scatter_reduce", a, axis, index, src);
  detail::require(is_floating(a.dtype()), "scatter_reduce", "needs a floating array", a, "a");
  const bool is_sum = o.reduce == ScatterReduce::sum || o.reduce == ScatterReduce::mean;
  return detail::over_reached(parts, [&](const Array& base, const Array& values) {
    const auto put = [&](const Array& under, double value) {
      const Array all = full(parts.index.shape(), value, under.dtype());
      return detail::scatter_by(detail::SCATTER_REPLACE, under, parts.axis, parts.index, all);
    };
    const Array start = o.include_self ? base : put(base, is_sum ? 0.0 : detail::neutral(o.reduce));
    if (is_sum) {
      const Array sums = scatter_add(start, parts.axis, parts.index, values);
      if (o.reduce == ScatterReduce::sum) return sums;
      const Array self = ones(base.shape(), base.dtype());
      const Array count = scatter_add(o.include_self ? self : put(self, 0.0), parts.axis, parts.index,
                                      ones(values.shape(), base.dtype()));
      return sums / count;
    }
    const int how = o.reduce == ScatterReduce::prod   ? detail::SCATTER_PROD
                    : o.reduce == ScatterReduce::amax ? detail::SCATTER_AMAX
                                                      : detail::SCATTER_AMIN;
    return detail::scatter_by(how, start, parts.axis, parts.index, values);
  });
}

}  // namespace samebytes
