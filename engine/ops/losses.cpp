// Losses of single elements and their mean or sum. The binary cross-entropy has a kernel of its own because log1p keeps
// the digits of small losses, and because its gradient sigmoid(x) - t is smooth where the stable form has a corner (x =
// 0).
#include "graph/launch.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

class BceWithLogits final : public Op {
 public:
  std::string_view name() const override { return "bce_with_logits"; }
  void launch(Launch& run) const override {
    const std::int64_t n = run.dst_shape().size();
    run.kernel("losses_bce_with_logits", run.dst_dtype()).args(run.src(0), run.src(1), run.dst(), n).over_elements(n);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &x = request.src[0], &t = request.src[1], &dy = request.dy[0];
    return {request.wanted[0] ? dy * (sigmoid(x) - t) : Array(), request.wanted[1] ? -(dy * x) : Array()};
  }
};

// Losses of 16-bit inputs are f32.
Array reduce_loss(const Array& losses, Reduction reduction) {
  return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

// Both floating and of one shape; then both of the dtype in which the loss is computed.
Dtype check_pair(const char* op, const Array& a, const char* a_name, const Array& b, const char* b_name) {
  require(a && is_floating(a.dtype()), op, "needs floating arrays", a, a_name);
  require(b && is_floating(b.dtype()), op, "needs floating arrays", b, b_name);
  if (a.shape() != b.shape())
    throw ArgumentError(std::string(op) + ": the shapes differ: " + a_name + " is " + describe(a) + ", " + b_name +
                        " is " + describe(b));
  return a.dtype() == f64 || b.dtype() == f64 ? f64 : f32;
}

Array as(const Array& a, Dtype dtype) { return a.dtype() == dtype ? a : astype(a, dtype); }

}  // namespace
}  // namespace detail

Array bce_with_logits(const Array& logits, const Array& target, Reduction reduction) {
  const Dtype dtype = detail::check_pair("bce_with_logits", logits, "logits", target, "target");
  const Array inputs[] = {detail::as(logits, dtype), detail::as(target, dtype)};
  static const auto op = detail::make_op<detail::BceWithLogits>();
  return detail::reduce_loss(detail::make_array(op, logits.shape(), dtype, inputs), reduction);
}

Array mse_loss(const Array& a, const Array& b, Reduction reduction) {
  const Dtype dtype = detail::check_pair("mse_loss", a, "a", b, "b");
  return detail::reduce_loss(square(detail::as(a, dtype) - detail::as(b, dtype)), reduction);
}

}  // namespace samebytes
