// Losses of single elements and their mean or sum. The binary cross-entropy of logits has a kernel of its own because
// log1p keeps the digits of small losses, and because its gradient sigmoid(x) - t is smooth where the stable form has a
// corner (x = 0). The others are pointwise chains, which the planner fuses.
#include "ops/losses.h"

#include <cmath>
#include <numbers>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

using R = PointwiseRow::Result;
using G = const GradientRequest&;
using Arrays = std::vector<Array>;

class BceWithLogits final : public Op {
 public:
  std::string_view name() const override { return "bce_with_logits"; }
  void launch(Launch& run) const override {
    const std::int64_t n = run.dst_shape().size();
    run.kernel("losses_bce_with_logits", run.src_dtype(0)).args(run.src(0), run.src(1), run.dst(), n).over_elements(n);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &x = request.src[0], &t = request.src[1], &dy = request.dy[0];
    const Array wide = as_dtype(x, dy.dtype());
    return {request.wanted[0] ? as_dtype(dy * (sigmoid(wide) - t), x.dtype()) : Array(),
            request.wanted[1] ? as_dtype(-(dy * wide), t.dtype()) : Array()};
  }
};

constexpr double kLeastLog = -100.0;   // of bce_loss, as in PyTorch
constexpr double kLeastSlope = 1e-12;  // p (1 - p) in its gradient, as in PyTorch

// clang-format off
extern const PointwiseRow kDiffers, kNotPositive, kBce, kHuber;
// d^2 / 2 up to #1 = -#0, then straight on. With c = d clipped to both it is c * (d - c / 2), whose gradient is c: it
// has no corner and overflows only where the loss does.
#define SAMEBYTES_CLIPPED "SB_WHERE(SB_TRUTH($0 < #0), (SB_TYPE)(#0), SB_WHERE(SB_TRUTH($0 > #1), (SB_TYPE)(#1), $0))"
const PointwiseRow kHuber{"huber", 1, 2, SAMEBYTES_CLIPPED " * ($0 - " SAMEBYTES_CLIPPED " * REAL_C(0.5))",
  "Mul(Clip($0,#0,#1),Sub($0,Mul(Clip($0,#0,#1),0.5)))", R::same, [](G g) -> Arrays {
  return {g.dy[0] * clip(g.src[0], g.scalars[0].real, g.scalars[1].real)}; }};
#undef SAMEBYTES_CLIPPED
const PointwiseRow kDiffers{"differs", 1, 1, "SB_TRUTH($0 != #0)", "Not(Equal($0,#0))", R::truth, nullptr};
const PointwiseRow kNotPositive{"not_positive", 1, 0, "SB_TRUTH($0 <= SB_ZERO)", "LessOrEqual($0,0)", R::truth, nullptr};
const PointwiseRow kBce{"bce_loss", 2, 0,
  "-($1 * SB_WHERE(SB_TRUTH(sb_log($0) < -REAL_C(100.0)), (SB_TYPE)(-REAL_C(100.0)), sb_log($0))"
  " + (REAL_C(1.0) - $1) * SB_WHERE(SB_TRUTH(sb_log1p(-$0) < -REAL_C(100.0)), (SB_TYPE)(-REAL_C(100.0)), sb_log1p(-$0)))", nullptr, R::same,
  [](G g) -> Arrays {
    const Array &p = g.src[0], &t = g.src[1], &dy = g.dy[0];
    Arrays result(2);
    if (g.wanted[0]) result[0] = dy * (p - t) / clip(p * (1.0 - p), {.low = kLeastSlope});
    if (g.wanted[1]) result[1] = dy * (clip(log(1.0 - p), {.low = kLeastLog}) - clip(log(p), {.low = kLeastLog}));
    return result;
  }};
// clang-format on

Array huber_of(const Array& d, double delta) { return apply_row<kHuber>({d}, {-delta, delta}); }

}  // namespace

Array reduce_loss(const Array& losses, Reduction reduction) {
  return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

Dtype check_pair(const char* op, const Array& a, const char* a_name, const Array& b, const char* b_name) {
  require(a.defined() && is_floating(a.dtype()), op, "needs floating arrays", a, a_name);
  require(b.defined() && is_floating(b.dtype()), op, "needs floating arrays", b, b_name);
  if (a.shape() != b.shape())
    throw ArgumentError(std::string(op) + ": the shapes differ: " + a_name + " is " + describe(a) + ", " + b_name +
                        " is " + describe(b));
  return a.dtype() == f64 || b.dtype() == f64 ? f64 : f32;
}

Array check_signs(const char* op, const Array& target, const Array& like, const char* like_name, Dtype dtype) {
  require(target.defined(), op, "needs a target", target, "target");
  if (target.shape() != like.shape())
    throw ArgumentError(std::string(op) + ": the shapes differ: " + like_name + " is " + describe(like) +
                        ", target is " + describe(target));
  return as_dtype(target, dtype);
}

Array differs(const Array& a, double value) { return apply_row<kDiffers>({a}, {value}); }

}  // namespace detail

using detail::as_dtype;
using detail::check_pair;
using detail::reduce_loss;
using detail::require;

const detail::CastRow kBceWithLogitsCast{"bce_with_logits", CastRule::keep_f32};
Array bce_with_logits(const Input& logits, const Input& target, Reduction reduction) {
  if (const detail::Casts cast(kBceWithLogitsCast); cast) return bce_with_logits(cast(logits), cast(target), reduction);
  const Dtype dtype = check_pair("bce_with_logits", logits, "logits", target, "target");
  const Dtype inside = logits.dtype() == target.dtype() ? logits.dtype() : dtype;
  const Array inputs[] = {as_dtype(logits, inside), as_dtype(target, inside)};
  static const auto op = detail::make_op<detail::BceWithLogits>();
  return reduce_loss(detail::make_array(op, logits.shape(), dtype, inputs), reduction);
}

const detail::CastRow kBceLossCast{"bce_loss", CastRule::keep_f32};
Array bce_loss(const Input& probability, const Input& target, Reduction reduction) {
  if (const detail::Casts cast(kBceLossCast); cast) return bce_loss(cast(probability), cast(target), reduction);
  const Dtype dtype = check_pair("bce_loss", probability, "probability", target, "target");
  return reduce_loss(detail::apply_row<detail::kBce>({as_dtype(probability, dtype), as_dtype(target, dtype)}),
                     reduction);
}

const detail::CastRow kKlDivCast{"kl_div", CastRule::keep_f32};
Array kl_div(const Input& log_probability, const Input& target, const KlDivOptions& options) {
  if (const detail::Casts cast(kKlDivCast); cast) return kl_div(cast(log_probability), cast(target), options);
  const Dtype dtype = check_pair("kl_div", log_probability, "log_probability", target, "target");
  Array x = as_dtype(log_probability, dtype), t = as_dtype(target, dtype), losses;
  if (options.log_target) {
    losses = exp(t) * (t - x);
  } else {  // 0 where t is 0, in the gradient too: log 1 and x = 0 stand for what is not looked at
    const Array nothing = detail::apply_row<detail::kNotPositive>({t});
    losses = t * (log(masked_fill(t, nothing, 1.0)) - masked_fill(x, nothing, 0.0));
  }
  if (options.batch_mean && options.reduction == Reduction::mean) {
    require(losses.shape().rank() >= 1, "kl_div", "a batch mean needs at least one axis", target, "target");
    return sum(losses) / static_cast<double>(losses.shape()[0]);
  }
  return reduce_loss(losses, options.reduction);
}

const detail::CastRow kGaussianNllLossCast{"gaussian_nll_loss", CastRule::keep_f32};
Array gaussian_nll_loss(const Input& mean, const Input& target, const Input& var, const GaussianNllOptions& options) {
  if (const detail::Casts cast(kGaussianNllLossCast); cast)
    return gaussian_nll_loss(cast(mean), cast(target), cast(var), options);
  constexpr const char* kOp = "gaussian_nll_loss";
  Dtype dtype = check_pair(kOp, mean, "mean", target, "target");
  Shape narrow = mean.shape();
  if (narrow.rank() > 0) narrow[-1] = 1;
  require(
      var.defined() && is_floating(var.dtype()) && (var.shape() == mean.shape() || var.shape() == narrow), kOp,
      ("var must be floating, of the shape of mean " + detail::describe(mean) + " or with a last axis of 1").c_str(),
      var, "var");
  if (!(options.eps >= 0.0))
    throw ArgumentError("gaussian_nll_loss: eps must be 0 or more, got " + std::to_string(options.eps));
  if (var.dtype() == f64) dtype = f64;
  const Array v = as_dtype(var, dtype);
  const Array bounded = v + stop_gradient(clip(v, {.low = options.eps}) - v);
  const Array d = as_dtype(mean, dtype) - as_dtype(target, dtype);
  Array losses = (log(bounded) + square(d) / bounded) * 0.5;
  if (options.full) losses = losses + 0.5 * std::log(2.0 * std::numbers::pi);
  return reduce_loss(losses, options.reduction);
}

const detail::CastRow kMseLossCast{"mse_loss", CastRule::keep_f32};
Array mse_loss(const Input& a, const Input& b, Reduction reduction) {
  if (const detail::Casts cast(kMseLossCast); cast) return mse_loss(cast(a), cast(b), reduction);
  const Dtype dtype = check_pair("mse_loss", a, "a", b, "b");
  return reduce_loss(square(as_dtype(a, dtype) - as_dtype(b, dtype)), reduction);
}

const detail::CastRow kL1LossCast{"l1_loss", CastRule::keep_f32};
Array l1_loss(const Input& a, const Input& b, Reduction reduction) {
  if (const detail::Casts cast(kL1LossCast); cast) return l1_loss(cast(a), cast(b), reduction);
  const Dtype dtype = check_pair("l1_loss", a, "a", b, "b");
  return reduce_loss(abs(as_dtype(a, dtype) - as_dtype(b, dtype)), reduction);
}

const detail::CastRow kSmoothL1LossCast{"smooth_l1_loss", CastRule::keep_f32};
Array smooth_l1_loss(const Input& a, const Input& b, const SmoothL1Options& options) {
  if (const detail::Casts cast(kSmoothL1LossCast); cast) return smooth_l1_loss(cast(a), cast(b), options);
  const Dtype dtype = check_pair("smooth_l1_loss", a, "a", b, "b");
  if (!(options.beta >= 0.0))
    throw ArgumentError("smooth_l1_loss: beta must be 0 or more, got " + std::to_string(options.beta));
  if (options.beta == 0.0) return l1_loss(a, b, options.reduction);
  const Array d = as_dtype(a, dtype) - as_dtype(b, dtype);
  return reduce_loss(detail::huber_of(d, options.beta) / options.beta, options.reduction);
}

const detail::CastRow kHuberLossCast{"huber_loss", CastRule::keep_f32};
Array huber_loss(const Input& a, const Input& b, const HuberOptions& options) {
  if (const detail::Casts cast(kHuberLossCast); cast) return huber_loss(cast(a), cast(b), options);
  const Dtype dtype = check_pair("huber_loss", a, "a", b, "b");
  if (!(options.delta > 0.0))
    throw ArgumentError("huber_loss: delta must be above 0, got " + std::to_string(options.delta));
  return reduce_loss(detail::huber_of(as_dtype(a, dtype) - as_dtype(b, dtype), options.delta), options.reduction);
}

const detail::CastRow kHingeLossCast{"hinge_loss", CastRule::keep_f32};
Array hinge_loss(const Input& score, const Input& target, const MarginOptions& options) {
  if (const detail::Casts cast(kHingeLossCast); cast) return hinge_loss(cast(score), target, options);
  require(score.defined() && is_floating(score.dtype()), "hinge_loss", "needs floating arrays", score, "score");
  const Dtype dtype = score.dtype() == f64 ? f64 : f32;
  const Array t = detail::check_signs("hinge_loss", target, score, "score", dtype);
  return reduce_loss(relu(options.margin - t * as_dtype(score, dtype)), options.reduction);
}

const detail::CastRow kHingeEmbeddingLossCast{"hinge_embedding_loss", CastRule::keep_f32};
Array hinge_embedding_loss(const Input& distance, const Input& target, const MarginOptions& options) {
  if (const detail::Casts cast(kHingeEmbeddingLossCast); cast)
    return hinge_embedding_loss(cast(distance), target, options);
  require(distance.defined() && is_floating(distance.dtype()), "hinge_embedding_loss", "needs floating arrays",
          distance, "distance");
  const Dtype dtype = distance.dtype() == f64 ? f64 : f32;
  const Array t = detail::check_signs("hinge_embedding_loss", target, distance, "distance", dtype);
  const Array d = as_dtype(distance, dtype);
  return reduce_loss(where(detail::differs(t, 1.0), detail::above_zero(options.margin - d), d), options.reduction);
}

const detail::CastRow kMarginRankingLossCast{"margin_ranking_loss", CastRule::keep_f32};
Array margin_ranking_loss(const Input& first, const Input& second, const Input& target, const MarginOptions& options) {
  if (const detail::Casts cast(kMarginRankingLossCast); cast)
    return margin_ranking_loss(cast(first), cast(second), target, options);
  const Dtype dtype = check_pair("margin_ranking_loss", first, "first", second, "second");
  const Array t = detail::check_signs("margin_ranking_loss", target, first, "first", dtype);
  const Array d = as_dtype(first, dtype) - as_dtype(second, dtype);
  return reduce_loss(detail::above_zero(options.margin - t * d), options.reduction);
}

}  // namespace samebytes
