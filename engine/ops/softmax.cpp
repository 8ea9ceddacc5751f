// Soft-max and log-soft-max over the last axis, each with a fused backward kernel.
#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/formula.h"
#include "ops/moved_axis.h"
#include "ops/rows.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

class SoftmaxBackward final : public Op {
 public:
  explicit SoftmaxBackward(bool is_log) : is_log_(is_log) {}
  std::string_view name() const override { return is_log_ ? "log_softmax_backward" : "softmax_backward"; }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const RowShare share = share_rows(run, shape.rows(), shape.back());
    run.kernel("softmax_bwd", run.dst_dtype())
        .args(run.src(0), run.src(1), run.dst(), shape.rows(), shape.back(), share.rows_per_group, int{is_log_})
        .over_rows(share.groups, share.group);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    return formula_gradient(request, [this](std::span<const Array> in) -> std::vector<Array> {
      const Array &y = in[0], &dy = in[1];
      if (is_log_) return {dy - exp(y) * sum(dy, {-1}, true)};
      return {y * (dy - sum(y * dy, {-1}, true))};
    });
  }

 private:
  bool is_log_;
};

class Softmax final : public Op, public Written {
 public:
  explicit Softmax(bool is_log) : is_log_(is_log) {}
  std::string_view name() const override { return is_log_ ? "log_softmax" : "softmax"; }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const RowShare share = share_rows(run, shape.rows(), shape.back());
    run.kernel("softmax_fwd", run.dst_dtype())
        .args(run.src(0), run.dst(), shape.rows(), shape.back(), share.rows_per_group, int{is_log_})
        .over_rows(share.groups, share.group);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array inputs[] = {request.dst[0], request.dy[0]};
    return {make_array(make_op<SoftmaxBackward>(is_log_), inputs[0].shape(), inputs[0].dtype(), inputs)};
  }
  void write(NodeWriter& w) const override {
    w.give(w.put(is_log_ ? "LogSoftmax" : "Softmax", {w.in(0)}, {{"axis", std::int64_t{-1}}}));
  }

 private:
  bool is_log_;
};

const CastRow kSoftmaxCast{"softmax", CastRule::keep_f32}, kLogSoftmaxCast{"log_softmax", CastRule::keep_f32};

Array apply_softmax(const char* name, bool is_log, const Array& a) {
  if (const Casts cast(is_log ? kLogSoftmaxCast : kSoftmaxCast); cast) return apply_softmax(name, is_log, cast(a));
  require(a.defined() && is_floating(a.dtype()), name, "needs a floating array", a, "src");
  require(a.shape().rank() >= 1, name, "needs at least one axis", a, "src");
  return make_array(make_op<Softmax>(is_log), a.shape(), a.dtype(), std::span<const Array>(&a, 1));
}

Array apply_softmax_along(const char* name, bool is_log, const Array& a, int axis) {
  axis = checked_axis(name, a, axis);
  return last_moved_to(apply_softmax(name, is_log, moved_last(a, axis)), axis);
}

}  // namespace
}  // namespace detail

Array softmax(const Input& a) { return detail::apply_softmax("softmax", false, a); }
Array softmax(const Input& a, int axis) { return detail::apply_softmax_along("softmax", false, a, axis); }
Array log_softmax(const Input& a) { return detail::apply_softmax("log_softmax", true, a); }
Array log_softmax(const Input& a, int axis) { return detail::apply_softmax_along("log_softmax", true, a, axis); }

}  // namespace samebytes
