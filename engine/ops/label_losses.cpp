// Losses of class labels other than cross-entropy. The value of a row's own class is gathered; if the other classes
// count, the label is compared with the class numbers, which gives a mask of the row's columns.
#include <cmath>
#include <string>

#include "graph/autocast.h"
#include "graph/op.h"
#include "ops/indexing.h"
#include "ops/losses.h"
#include "ops/moved_axis.h"
#include "ops/sizes.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

using R = PointwiseRow::Result;
using G = const GradientRequest&;
using Arrays = std::vector<Array>;

// clang-format off
extern const PointwiseRow kMarginOver;
// How far the scores $0 of other classes ($2: truth, the own class) are above the row's own score $1 less #0.
const PointwiseRow kMarginOver{"margin_over", 3, 1, "SB_WHERE($2, SB_ZERO, SB_WHERE(SB_TRUTH($0 - $1 + #0 < SB_ZERO), SB_ZERO, $0 - $1 + #0))",
  "Where($2,0,Relu(Add(Sub($0,$1),#0)))", R::same, [](G g) -> Arrays {
  const Array dx = relu_gradient(g.dy[0], g.dst[0]);
  return {dx, g.wanted[1] ? -dx : Array(), Array()}; }};
// clang-format on

// Labels of the rows of `scores` [..., C].
class Labels {
 public:
  // Throws ArgumentError unless labels and weights fit scores.
  Labels(const char* op, const Array& scores, const char* name, const Array& target, const Array& weight,
         std::optional<std::int32_t> ignored = {});

  Dtype dtype() const { return dtype_; }
  // Truth [..., C]: the class of the row.
  Array own() const { return equal(places_, arange(0, static_cast<double>(classes_), 1, i32)); }
  // The value of a [..., C] in the row's class; NaN if the label is no class.
  Array pick(const Array& a) const { return squeeze(pick_kept(a), -1); }
  // The same as [..., 1].
  Array pick_kept(const Array& a) const { return gather_at(a, a.shape().rank() - 1, places_, true); }
  // weight[t] of each row, or an empty handle.
  const Array& weight() const { return weight_; }
  // 0 for ignored rows.
  Array without_ignored(const Array& losses) const;
  // The mean of weighted losses over the sum of the weights of the rows that count.
  Array weighted_mean(const Array& losses) const;

 private:
  Dtype dtype_;
  std::int64_t classes_;
  // places_: labels i32 [..., 1]; counts_: truth, where some rows are ignored
  Array places_, weight_, counts_;
  std::optional<std::int32_t> ignored_;
};

Labels::Labels(const char* op, const Array& scores, const char* name, const Array& target, const Array& weight,
               std::optional<std::int32_t> ignored)
    : ignored_(ignored) {
  require(scores.defined() && is_floating(scores.dtype()) && scores.shape().rank() >= 1, op,
          "needs a floating array [..., C]", scores, name);
  const Shape rows(std::span<const std::int64_t>(scores.shape().begin(), scores.shape().end() - 1));
  require(target.defined() && is_label(target.dtype()) && target.shape() == rows, op,
          ("target must be i32, i64 or u8 " + rows.to_string() + ", " + name + " is " + describe(scores)).c_str(),
          target, "target");
  classes_ = scores.shape().back();
  require(!weight.defined() || (weight.shape() == Shape{classes_} && is_floating(weight.dtype())), op,
          ("class_weight must be floating [" + std::to_string(classes_) + "]").c_str(), weight, "class_weight");
  dtype_ = scores.dtype() == f64 ? f64 : f32;
  const Array numbers = as_i32(target);
  places_ = unsqueeze(numbers, -1);
  if (ignored_) counts_ = differs(astype(target, f32), static_cast<double>(*ignored_));
  if (weight.defined()) {
    weight_ = take(as_dtype(stop_gradient(weight), dtype_), numbers);
    if (ignored_) weight_ = where(counts_, weight_, full({}, 0.0, dtype_));  // the ignored label may be no class
  }
}

Array Labels::without_ignored(const Array& losses) const {
  return ignored_ ? where(counts_, losses, full({}, 0.0, dtype_)) : losses;
}

Array Labels::weighted_mean(const Array& losses) const {
  if (!weight_.defined() && !ignored_) return mean(losses);
  Array weights = weight_;
  if (ignored_) weights = weight_.defined() ? weight_ * astype(counts_, dtype_) : astype(counts_, dtype_);
  return sum(losses) / sum(weights);
}

// q^gamma for q in [0, 1]; the gradient stays finite at 0 for any gamma of 0 or more.
Array focus(const Array& losses, const Array& q, double gamma) {
  constexpr double kLeastProbability = 1e-12;
  if (gamma == 0.0) return losses;
  if (gamma == 1.0) return losses * q;
  if (gamma == 2.0) return losses * square(q);
  return losses * pow(clip(q, {.low = kLeastProbability}), gamma);
}

// Calls `loss` with the axis of the classes last, or returns an empty handle where it is.
template <class Options>
Array with_last_axis(const char* op, const Array& scores, const Array& target, const Options& options,
                     Array (*loss)(const Input&, const Input&, const Options&)) {
  require(scores.defined(), op, "needs an array", scores, "the first");
  if (scores.shape().rank() == 0) return {};
  const int axis = checked_axis(op, scores, options.axis);
  if (axis + 1 == scores.shape().rank()) return {};
  Options last = options;
  last.axis = -1;
  return loss(moved_last(scores, axis), target, last);
}

void check_gamma(const char* op, double gamma) {
  if (!(gamma >= 0.0)) throw ArgumentError(std::string(op) + ": gamma must be 0 or more, got " + std::to_string(gamma));
}

}  // namespace
}  // namespace detail

using detail::as_dtype;
using detail::Labels;
using detail::reduce_loss;

const detail::CastRow kNllLossCast{"nll_loss", CastRule::keep_f32};
Array nll_loss(const Input& log_probability, const Input& target, const NllOptions& options) {
  if (const detail::Casts cast(kNllLossCast); cast) return nll_loss(cast(log_probability), target, options);
  if (Array moved = detail::with_last_axis("nll_loss", log_probability, target, options, nll_loss); moved.defined())
    return moved;
  const Labels labels("nll_loss", log_probability, "log_probability", target, options.class_weight,
                      options.ignore_index);
  Array losses = -as_dtype(labels.pick(log_probability), labels.dtype());
  if (labels.weight().defined()) losses = losses * labels.weight();
  losses = labels.without_ignored(losses);
  return options.reduction == Reduction::mean ? labels.weighted_mean(losses) : reduce_loss(losses, options.reduction);
}

const detail::CastRow kFocalLossCast{"focal_loss", CastRule::keep_f32};
Array focal_loss(const Input& logits, const Input& target, const FocalOptions& options) {
  if (const detail::Casts cast(kFocalLossCast); cast) return focal_loss(cast(logits), target, options);
  if (Array moved = detail::with_last_axis("focal_loss", logits, target, options, focal_loss); moved.defined())
    return moved;
  const Labels labels("focal_loss", logits, "logits", target, options.class_weight);
  detail::check_gamma("focal_loss", options.gamma);
  const Array losses = -labels.pick(log_softmax(as_dtype(logits, labels.dtype())));
  Array focused = detail::focus(losses, 1.0 - exp(-losses), options.gamma);
  if (labels.weight().defined()) focused = focused * labels.weight();
  return reduce_loss(focused, options.reduction);  // NaN where the label is no class, as what pick() gives is
}

const detail::CastRow kSigmoidFocalLossCast{"sigmoid_focal_loss", CastRule::keep_f32};
Array sigmoid_focal_loss(const Input& logits, const Input& target, const SigmoidFocalOptions& options) {
  if (const detail::Casts cast(kSigmoidFocalLossCast); cast)
    return sigmoid_focal_loss(cast(logits), cast(target), options);
  const Dtype dtype = detail::check_pair("sigmoid_focal_loss", logits, "logits", target, "target");
  detail::check_gamma("sigmoid_focal_loss", options.gamma);
  const Array x = as_dtype(logits, dtype), t = as_dtype(target, dtype);
  const Array missed = sigmoid(-x) * t + sigmoid(x) * (1.0 - t);  // 1 - p of the true class
  Array losses = detail::focus(bce_with_logits(x, t, Reduction::none), missed, options.gamma);
  if (options.alpha >= 0.0) losses = losses * (t * options.alpha + (1.0 - t) * (1.0 - options.alpha));
  return reduce_loss(losses, options.reduction);
}

const detail::CastRow kMultiMarginLossCast{"multi_margin_loss", CastRule::keep_f32};
Array multi_margin_loss(const Input& score, const Input& target, const MultiMarginOptions& options) {
  if (const detail::Casts cast(kMultiMarginLossCast); cast) return multi_margin_loss(cast(score), target, options);
  if (Array moved = detail::with_last_axis("multi_margin_loss", score, target, options, multi_margin_loss);
      moved.defined())
    return moved;
  const Labels labels("multi_margin_loss", score, "score", target, options.class_weight);
  if (options.p != 1 && options.p != 2)
    throw ArgumentError("multi_margin_loss: p must be 1 or 2, got " + std::to_string(options.p));
  const Array x = as_dtype(score, labels.dtype());
  Array theirs = detail::apply_row<detail::kMarginOver>({x, labels.pick_kept(x), labels.own()}, {options.margin});
  if (options.p == 2) theirs = square(theirs);
  if (options.reduction == Reduction::mean && !labels.weight().defined()) return mean(theirs);
  Array losses = mean(theirs, {-1});
  if (labels.weight().defined()) losses = losses * labels.weight();
  return reduce_loss(losses, options.reduction);  // NaN where the label is no class, as what pick() gives is
}

}  // namespace samebytes
