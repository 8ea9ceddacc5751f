// Cross-entropy of soft-max as PyTorch defines it: one kernel for the losses of the rows, one for their mean or sum
// (the first does both if one work-group has all rows), one for the gradient of the logits. The forward kernel keeps
// max and sum of each row, so the gradient reads the logits once. If the upstream gradient exists before the loss runs,
// the first kernel computes losses and gradient.
#include "ops/cross_entropy.h"

#include <limits>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "ops/dtypes.h"
#include "ops/formula.h"
#include "ops/indexing.h"
#include "ops/moved_axis.h"
#include "ops/rows.h"
#include "ops/sizes.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {

void CrossEntropyRule::hash(Hasher& hasher) const {
  hasher.add(std::uint64_t{has_weight} | std::uint64_t{has_ignored} << 1 | static_cast<std::uint64_t>(reduction) << 2);
  hasher.add(static_cast<std::uint64_t>(ignored));
  hasher.add(static_cast<double>(smoothing));
}

TargetOperands TargetOperands::from_row(std::int64_t row) const {
  return {labels_i32.from(row), labels_u8.from(row), probabilities};
}

TargetOperands target_operands(const Launch& run, int input) {
  TargetOperands operands;
  const Dtype dtype = run.src_dtype(input);
  (dtype == i32 ? operands.labels_i32 : dtype == u8 ? operands.labels_u8 : operands.probabilities) = run.src(input);
  return operands;
}

void record_cross_entropy(Launch& run, const CrossEntropyRule& rule, const CrossEntropyOperands& o, std::int64_t rows,
                          std::int64_t classes, double divisor, Dtype dtype) {
  const RowShare share = share_rows(run, rows, classes);
  const bool is_none = rule.reduction == Reduction::none, is_mean = rule.reduction == Reduction::mean;
  run.kernel("cross_entropy_fwd", dtype)
      .args(o.logits, o.target.labels_i32, o.target.labels_u8, o.target.probabilities, o.class_weight, o.losses,
            o.row_weights, o.statistics, o.total, o.total_weight, o.dy, o.denominator, o.gradient, rows, classes,
            share.rows_per_group, int{is_mean}, int{is_none}, is_mean ? divisor : 1.0, int{rule.has_ignored},
            int{rule.ignored}, static_cast<double>(rule.smoothing))
      .over_rows(share.groups, share.group);
}

void record_cross_entropy_gradient(Launch& run, const CrossEntropyRule& rule, const CrossEntropyOperands& o,
                                   std::int64_t rows, std::int64_t classes, Dtype dtype) {
  const RowShare share = share_rows(run, rows, classes);
  run.kernel("cross_entropy_bwd", dtype)
      .args(o.logits, o.target.labels_i32, o.target.labels_u8, o.target.probabilities, o.class_weight, o.statistics,
            o.dy, o.denominator, o.gradient, rows, classes, share.rows_per_group,
            int{rule.reduction == Reduction::none}, int{rule.has_ignored}, int{rule.ignored},
            static_cast<double>(rule.smoothing))
      .over_rows(share.groups, share.group);
}

void record_cross_entropy_denominator(Launch& run, const CrossEntropyRule& rule, const TargetOperands& target,
                                      Operand class_weight, Operand denominator, std::int64_t rows,
                                      std::int64_t classes, Dtype dtype) {
  run.kernel("cross_entropy_denominator", dtype)
      .args(target.labels_i32, target.labels_u8, class_weight, denominator, rows, classes, int{rule.has_ignored},
            int{rule.ignored})
      .over_rows(1, 256);
}

void record_cross_entropy_total(Launch& run, const CrossEntropyRule& rule, Operand losses, Operand row_weights,
                                Operand loss, Operand denominator, std::int64_t rows, Dtype dtype) {
  run.kernel("cross_entropy_total", dtype)
      .args(losses, row_weights, loss, denominator, rows, int{rule.reduction == Reduction::mean})
      .over_rows(1, 256);
}

void check_cross_entropy_options(const char* op, float label_smoothing, const Array& class_weight,
                                 std::int64_t classes) {
  if (!(label_smoothing >= 0.0f && label_smoothing < 1.0f))
    throw ArgumentError(std::string(op) + ": label_smoothing must be in [0, 1), got " +
                        std::to_string(label_smoothing));
  if (class_weight.defined() && (class_weight.shape() != Shape{classes} || !is_floating(class_weight.dtype())))
    throw ArgumentError(std::string(op) + ": class_weight must be floating [" + std::to_string(classes) +
                        "], class_weight is " + describe(class_weight));
}

namespace {

// Inputs: dy, logits, target, statistics, the denominator unless Reduction::none, the class weights if any.
class CrossEntropyBackward final : public Op {
 public:
  // It may overwrite the logits, which may be the largest array of a model. The statistics are a function of the logits
  // here, and the denominator counts rows.
  explicit CrossEntropyBackward(const CrossEntropyRule& rule)
      : Op({.is_flat = rule.reduction != Reduction::none ? InputSet{3, 4} : InputSet{3},
            .may_overwrite = {.result = 0, .input = 1}}),
        rule_(rule) {}
  std::string_view name() const override { return "cross_entropy_backward"; }
  void hash(Hasher& hasher) const override { rule_.hash(hasher); }

  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const bool is_none = rule_.reduction == Reduction::none;
    CrossEntropyOperands operands{.target = target_operands(run, 2), .logits = run.src(1)};
    operands.statistics = run.src(3);
    operands.dy = run.src(0);
    operands.gradient = run.dst();
    if (!is_none) operands.denominator = run.src(4);
    if (rule_.has_weight) operands.class_weight = run.src(is_none ? 4 : 5);
    record_cross_entropy_gradient(run, rule_, operands, shape.rows(), shape.back(), run.dst_dtype());
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    return formula_gradient(request, [this](std::span<const Array> in) -> std::vector<Array> {
      const Dtype dtype = in[1].dtype(), real = real_of(dtype);
      const bool is_none = rule_.reduction == Reduction::none;
      const Array logits = as_dtype(in[1], real), &target = in[2];
      const std::int64_t classes = logits.shape().back();
      const double smoothing = rule_.smoothing;
      const bool is_labels = !is_floating(target.dtype());
      Array q = (is_labels ? one_hot(target, classes, real) : target) * (1.0 - smoothing) +
                smoothing / static_cast<double>(classes);
      if (rule_.has_weight) q = q * in[is_none ? 4 : 5];
      if (is_labels && rule_.has_ignored) {
        const Array ignored = unsqueeze(equal(astype(target, i32), full({}, rule_.ignored, i32)), -1);
        q = masked_fill(q, broadcast_to(ignored, q.shape()), 0.0);
      }
      const Array dy = is_none ? unsqueeze(in[0], -1) : in[0] / stop_gradient(reshape(in[4], in[0].shape()));
      return {as_dtype(dy * (softmax(logits) * sum(q, {-1}, true) - q), dtype)};
    });
  }

 private:
  CrossEntropyRule rule_;
};

// Inputs: logits, target, the class weights if any. Results: the loss, statistics [rows, 2], the denominator [1] unless
// none.
class CrossEntropy final : public Op {
 public:
  explicit CrossEntropy(const CrossEntropyRule& rule) : rule_(rule) {}
  std::string_view name() const override { return "cross_entropy"; }
  void hash(Hasher& hasher) const override { rule_.hash(hasher); }

  bool makes_gradient(const Node& self, const Node& later) const override {
    return dynamic_cast<const CrossEntropyBackward*>(later.op.get()) != nullptr &&
           later.inputs[1].node == self.inputs[0].node && later.inputs[2].node == self.inputs[1].node;
  }

  void launch(Launch& run) const override {
    const Shape& shape = run.src_shape(0);
    const Dtype dtype = run.src_dtype(0), real = real_of(dtype);
    const std::int64_t rows = shape.rows();
    const bool is_none = rule_.reduction == Reduction::none;
    const bool is_whole = share_rows(run, rows, shape.back()).groups == 1 && !is_none;  // it adds up the losses as well
    const GradientBeside& beside = run.gradient();
    const bool counts_first = beside.result.kind != Operand::Kind::none && rule_.counts_rows();
    CrossEntropyOperands operands{.target = target_operands(run, 1), .logits = run.src(0)};
    if (rule_.has_weight) operands.class_weight = run.src(2);
    operands.losses = is_none ? run.dst(0) : run.temp(rows, real);
    operands.row_weights = run.temp(rows, real);
    operands.statistics = run.dst(1);
    if (is_whole) operands.total = run.dst(0);
    if (is_whole && !counts_first) operands.total_weight = run.dst(2);
    operands.dy = beside.dy;
    operands.gradient = beside.result;
    if (counts_first) {
      operands.denominator = run.dst(2);
      record_cross_entropy_denominator(run, rule_, operands.target, operands.class_weight, run.dst(2), rows,
                                       shape.back(), dtype);
    }
    record_cross_entropy(run, rule_, operands, rows, shape.back(), static_cast<double>(rows), dtype);
    if (is_none || is_whole) return;
    record_cross_entropy_total(run, rule_, operands.losses, operands.row_weights, run.dst(0), run.dst(2), rows, dtype);
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    std::vector<Array> result(request.src.size());
    const Array &dy = request.dy[0], &logits = request.src[0], &target = request.src[1];
    if (!dy.defined()) return result;  // only the statistics affect the loss, and they carry no gradient
    const bool is_none = rule_.reduction == Reduction::none;
    std::vector<Array> inputs{dy, logits, target, request.dst[1]};
    if (!is_none) inputs.push_back(request.dst[2]);
    if (rule_.has_weight) inputs.push_back(request.src[2]);
    if (request.wanted[0])
      result[0] = make_array(make_op<CrossEntropyBackward>(rule_), logits.shape(), logits.dtype(), inputs);
    if (is_floating(target.dtype()) && request.wanted[1]) {
      Array g = log_softmax(as_dtype(logits, target.dtype())) * (static_cast<double>(rule_.smoothing) - 1.0);
      if (rule_.has_weight) g = g * request.src[2];
      result[1] = g * (is_none ? unsqueeze(dy, -1) : dy / reshape(request.dst[2], dy.shape()));
    }
    return result;
  }

 private:
  CrossEntropyRule rule_;
};

}  // namespace
}  // namespace detail

const detail::CastRow kCrossEntropyCast{"cross_entropy", CastRule::as_given};
Array cross_entropy(const Input& logits, const Input& target, const CrossEntropyOptions& options) {
  if (const detail::Casts cast(kCrossEntropyCast); cast) return cross_entropy(cast(logits), target, options);
  using detail::describe;
  detail::require(
      logits.defined() && is_floating(logits.dtype()) && logits.shape().rank() >= 1 && logits.shape().back() > 0,
      "cross_entropy", "needs floating logits of at least one class", logits, "logits");
  detail::require(target.defined(), "cross_entropy", "needs a target", target, "target");
  if (const int axis = detail::checked_axis("cross_entropy", logits, options.axis); axis + 1 < logits.shape().rank()) {
    CrossEntropyOptions last = options;
    last.axis = -1;
    const bool is_probability = is_floating(target.dtype()) && target.shape() == logits.shape();
    return cross_entropy(detail::moved_last(logits, axis),
                         is_probability ? detail::moved_last(target, axis) : target.array(), last);
  }
  const bool is_labels = detail::is_label(target.dtype());
  Shape rows;
  for (int i = 0; i + 1 < logits.shape().rank(); ++i) rows.push_back(logits.shape()[i]);
  if (!is_labels && !is_floating(target.dtype()))
    throw ArgumentError("cross_entropy: target must be i32, i64 or u8 labels or floating probabilities, target is " +
                        describe(target));
  if (target.shape() != (is_labels ? rows : logits.shape()))
    throw ArgumentError("cross_entropy: target must be " + (is_labels ? rows : logits.shape()).to_string() +
                        (is_labels ? " for labels" : " for probabilities") + ", logits is " + describe(logits) +
                        ", target is " + describe(target));
  if (options.ignore_index && !is_labels)
    throw ArgumentError("cross_entropy: ignore_index needs labels, target is " + describe(target));
  const Array& weight = options.class_weight;
  detail::check_cross_entropy_options("cross_entropy", options.label_smoothing, weight, logits.shape().back());

  const Dtype dtype = detail::real_of(logits.dtype());  // of all but the logits
  if (logits.size() == 0) {
    if (options.reduction == Reduction::none) return full(rows, 0.0, dtype);
    const Array nothing = detail::as_dtype(logits, dtype);
    return options.reduction == Reduction::sum ? sum(nothing) : mean(nothing);
  }
  const detail::CrossEntropyRule kind{weight.defined(), options.ignore_index.has_value(),
                                      options.ignore_index.value_or(0), options.label_smoothing, options.reduction};
  std::vector<Array> inputs{logits, !is_labels              ? detail::as_dtype(target, dtype)
                                    : target.dtype() == i64 ? detail::as_i32(target)
                                                            : target.array()};
  if (weight.defined()) inputs.push_back(detail::as_dtype(stop_gradient(weight), dtype));
  std::vector<detail::Result> results{{options.reduction == Reduction::none ? rows : Shape{}, dtype},
                                      {Shape{logits.shape().rows(), 2}, dtype}};
  if (options.reduction != Reduction::none) results.push_back({Shape{1}, dtype});
  return detail::make_arrays(detail::make_op<detail::CrossEntropy>(kind), results, inputs)[0];
}

}  // namespace samebytes
