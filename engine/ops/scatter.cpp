// scatter and scatter_reduce: values put at places, later ones behind earlier ones (kernels: cl/*/scatter.cl). Sums are
// scatter_add's. Gradients are made of public ops, so they can be differentiated again.
#include <limits>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/indexing.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "shared/scatter.h"

namespace samebytes {
namespace detail {
namespace {

Array scatter_by(int how, const Array& a, const Shape& shape, int axis, const Array& index, const Array& src);

struct Lines {
  Around at;
  std::int64_t tile, groups;
  Lines(const Launch& run, const Shape& shape, int axis, Dtype dtype)
      : at(shape, axis),
        tile(run.constant("scatter", "SCATTER_TILE", dtype)),
        groups(at.outer * ceil_div(at.inner, tile)) {}
};

// Inputs index and dy: the gradient of values that replace others.
class ScatterLast final : public Op {
 public:
  explicit ScatterLast(int axis) : axis_(axis) {}
  std::string_view name() const override { return "scatter_last"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }
  void launch(Launch& run) const override {
    const Lines lines(run, run.src_shape(1), axis_, run.dst_dtype());
    const Around& at = lines.at;
    const Operand taken = run.temp(lines.groups * at.depth * lines.tile, u8);
    run.kernel("scatter_last", run.dst_dtype())
        .args(run.src(1), run.src(0), taken, run.dst(), static_cast<int>(at.depth), run.src_shape(0)[axis_], at.inner)
        .over_rows(lines.groups, static_cast<int>(lines.tile));
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    return {Array(), scatter_by(SCATTER_REPLACE, {}, request.src[1].shape(), axis_, request.src[0], request.dy[0])};
  }

 private:
  int axis_;
};

Array last_at(const Array& dy, int axis, const Array& index) {
  const Array inputs[] = {index, dy};
  return make_array(make_op<ScatterLast>(axis), index.shape(), dy.dtype(), inputs);
}

// Inputs index, src and perhaps a (else zeros), dense and of equal sizes but along the axis.
class Scatter final : public Op, public Written {
 public:
  Scatter(int axis, int how) : axis_(axis), how_(how) {}
  std::string_view name() const override { return how_ == SCATTER_REPLACE ? "scatter" : "scatter_reduce"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(axis_));
    hasher.add(static_cast<std::uint64_t>(how_));
  }
  void launch(Launch& run) const override {
    const Dtype dtype = run.dst_dtype();
    const bool is_real = is_floating(dtype);
    const Dtype program = is_real ? dtype : f32;
    const Lines lines(run, run.dst_shape(), axis_, program);
    KernelCall call = run.kernel(is_real ? "scatter_real" : dtype == i64 ? "scatter_i64" : "scatter_i32", program);
    call.args(run.optional_src(2), run.src(0), run.src(1), run.dst(), static_cast<int>(lines.at.depth),
              run.src_shape(0)[axis_], lines.at.inner, how_);
    if (is_real)
      call.args(std::numeric_limits<double>::quiet_NaN());
    else if (dtype == i64)
      call.args(std::int64_t{-1});
    else
      call.args(-1);
    call.over_rows(lines.groups, static_cast<int>(lines.tile));
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    if (!is_floating(request.src[1].dtype())) return {};
    if (how_ == SCATTER_REPLACE) return of_replace(request);
    if (how_ == SCATTER_PROD) return of_prod(request);
    return of_extreme(request);
  }
  void write(NodeWriter& w) const override {
    const char* const how = how_ == SCATTER_REPLACE ? "none"
                            : how_ == SCATTER_PROD  ? "mul"
                            : how_ == SCATTER_AMAX  ? "max"
                                                    : "min";
    write_scatter(w, axis_, how);
  }

 private:
  // Places that were replaced give nothing back; of those that went to one place the last one counts.
  std::vector<Array> of_replace(const GradientRequest& request) const {
    const Array &dy = request.dy[0], &index = request.src[0];
    std::vector<Array> result(request.src.size());
    if (request.wanted[1]) result[1] = last_at(dy, axis_, index);
    if (result.size() > 2 && request.wanted[2])
      result[2] = scatter_by(SCATTER_REPLACE, dy, dy.shape(), axis_, index, zeros(index.shape(), dy.dtype()));
    return result;
  }

  // The product of the others: of all that are not 0, where none of the others is 0.
  std::vector<Array> of_prod(const GradientRequest& request) const {
    const Array &dy = request.dy[0], &index = request.src[0], &src = request.src[1], &a = request.src[2];
    const Array a_is_zero = equal(a, 0), src_is_zero = equal(src, 0);
    const Array rest_a = masked_fill(a, a_is_zero, 1.0), rest_src = masked_fill(src, src_is_zero, 1.0);
    const Array rest = scatter_by(SCATTER_PROD, rest_a, rest_a.shape(), axis_, index, rest_src);
    const Array zeros_there = scatter_add(astype(a_is_zero, a.dtype()), axis_, index, astype(src_is_zero, a.dtype()));
    std::vector<Array> result(3);
    // Of an element that is 0 itself the others have one 0 fewer.
    const auto others = [](const Array& count, const Array& is_zero) {
      return not_equal(count, astype(is_zero, count.dtype()));
    };
    if (request.wanted[2]) result[2] = masked_fill(dy * rest / rest_a, others(zeros_there, a_is_zero), 0.0);
    if (request.wanted[1])
      result[1] = masked_fill(gather(dy, axis_, index) * gather(rest, axis_, index) / rest_src,
                              others(gather(zeros_there, axis_, index), src_is_zero), 0.0);
    return result;
  }

  // Equal values share the gradient.
  std::vector<Array> of_extreme(const GradientRequest& request) const {
    const Array &dy = request.dy[0], &index = request.src[0], &src = request.src[1], &a = request.src[2];
    const Array &y = request.dst[0], of_a = astype(equal(a, y), a.dtype());
    const Array of_src = astype(equal(src, gather(y, axis_, index)), a.dtype());
    const Array share = dy / scatter_add(of_a, axis_, index, of_src);
    return {Array(), of_src * gather(share, axis_, index), of_a * share};
  }

  int axis_, how_;
};

// a (an empty handle: zeros) of `shape`, index and src as scatter_parts leaves them, or with places beyond the index.
Array scatter_by(int how, const Array& a, const Shape& shape, int axis, const Array& index, const Array& src) {
  if (index.size() == 0 || shape.size() == 0) return a.defined() ? a : zeros(shape, src.dtype());
  std::vector<Array> inputs{index, src};
  if (a.defined()) inputs.push_back(a);
  return make_array(make_op<Scatter>(axis, how), shape, src.dtype(), inputs);
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

Array put_at(const Shape& shape, int axis, const Array& index, const Array& src) {
  if (src.dtype() == f16 || src.dtype() == bf16)
    return astype(put_at(shape, axis, index, astype(src, f32)), src.dtype());
  return scatter_by(SCATTER_REPLACE, {}, shape, axis, index, src);
}

}  // namespace detail

Array scatter(const Input& a, int axis, const Input& index, const Input& src) {
  const detail::ScatterParts parts = detail::scatter_parts("scatter", a, axis, index, src);
  detail::require(is_floating(a.dtype()) || a.dtype() == i32 || a.dtype() == i64, "scatter",
                  "needs a floating, i32 or i64 array", a, "a");
  return detail::over_reached(parts, [&](const Array& base, const Array& values) {
    return detail::scatter_by(detail::SCATTER_REPLACE, base, base.shape(), parts.axis, parts.index, values);
  });
}

Array scatter_reduce(const Input& a, int axis, const Input& index, const Input& src, const ScatterOptions& o) {
  const detail::ScatterParts parts = detail::scatter_parts("scatter_reduce", a, axis, index, src);
  detail::require(is_floating(a.dtype()), "scatter_reduce", "needs a floating array", a, "a");
  const bool is_sum = o.reduce == ScatterReduce::sum || o.reduce == ScatterReduce::mean;
  return detail::over_reached(parts, [&](const Array& base, const Array& values) {
    const auto put = [&](const Array& under, double value) {
      const Array all = full(parts.index.shape(), value, under.dtype());
      return detail::scatter_by(detail::SCATTER_REPLACE, under, under.shape(), parts.axis, parts.index, all);
    };
    const Array start = o.include_self ? base : put(base, is_sum ? 0.0 : detail::neutral(o.reduce));
    if (is_sum) {
      Array sums = scatter_add(start, parts.axis, parts.index, values);
      if (o.reduce == ScatterReduce::sum) return sums;
      const Array self = ones(base.shape(), base.dtype());
      const Array count = scatter_add(o.include_self ? self : put(self, 0.0), parts.axis, parts.index,
                                      ones(values.shape(), base.dtype()));
      return sums / count;
    }
    const int how = o.reduce == ScatterReduce::prod   ? detail::SCATTER_PROD
                    : o.reduce == ScatterReduce::amax ? detail::SCATTER_AMAX
                                                      : detail::SCATTER_AMIN;
    return detail::scatter_by(how, start, start.shape(), parts.axis, parts.index, values);
  });
}

}  // namespace samebytes
