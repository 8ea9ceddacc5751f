// Cross-entropy of soft-max as PyTorch defines it: one kernel for the losses of the rows, one for their mean or sum
// (the first does both where one work-group has all rows), one for the gradient of the logits. The forward kernel keeps
// max and sum of each row, so the gradient reads the logits once. Where the gradient's own upstream gradient is there
// before the loss, the first kernel makes losses and gradient.
#include <limits>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "ops/dtypes.h"
#include "ops/rows.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

struct Target {
  bool has_weight = false;
  bool has_ignored = false;
  std::int32_t ignored = 0;
  float smoothing = 0;
  Reduction reduction = Reduction::mean;

  void hash(Hasher& hasher) const {
    hasher.add(std::uint64_t{has_weight} | std::uint64_t{has_ignored} << 1 |
               static_cast<std::uint64_t>(reduction) << 2);
    hasher.add(static_cast<std::uint64_t>(ignored));
    hasher.add(static_cast<double>(smoothing));
  }
  // The divisor of the mean is known only when all labels have been looked at.
  bool counts_rows() const { return reduction == Reduction::mean && (has_weight || has_ignored); }
};

// The target as the kernels take it: labels_i32, labels_u8, probabilities; two of them absent.
struct TargetOperands {
  Operand labels_i32, labels_u8, probabilities;
};
TargetOperands target_operands(const Launch& run, int input) {
  TargetOperands operands;
  const Dtype dtype = run.src_dtype(input);
  (dtype == i32 ? operands.labels_i32 : dtype == u8 ? operands.labels_u8 : operands.probabilities) = run.src(input);
  return operands;
}

// Inputs: dy, logits, target, statistics, the denominator unless Reduction::none, the class weights if any.
class CrossEntropyBackward final : public Op {
 public:
  explicit CrossEntropyBackward(const Target& target) : target_(target) {}
  std::string_view name() const override { return "cross_entropy_backward"; }
  int may_overwrite(int) const override { return 1; }  // the logits, which may be the largest array of a model
  void hash(Hasher& hasher) const override { target_.hash(hasher); }

  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const RowShare share = share_rows(run, shape.rows(), shape.back());
    const TargetOperands target = target_operands(run, 2);
    const bool is_none = target_.reduction == Reduction::none;
    const Operand denominator = is_none ? Launch::none() : run.src(4);
    const Operand weight = target_.has_weight ? run.src(is_none ? 4 : 5) : Launch::none();
    run.kernel("cross_entropy_bwd", run.dst_dtype())
        .args(run.src(1), target.labels_i32, target.labels_u8, target.probabilities, weight, run.src(3), run.src(0),
              denominator, run.dst(), shape.rows(), shape.back(), share.rows_per_group, int{is_none},
              int{target_.has_ignored}, int{target_.ignored}, static_cast<double>(target_.smoothing))
        .over_rows(share.groups, share.group);
  }

 private:
  Target target_;
};

// Inputs: logits, target, the class weights if any. Results: the loss, statistics [rows, 2], the denominator [1] unless
// none.
class CrossEntropy final : public Op {
 public:
  explicit CrossEntropy(const Target& target) : target_(target) {}
  std::string_view name() const override { return "cross_entropy"; }
  void hash(Hasher& hasher) const override { target_.hash(hasher); }

  bool makes_gradient(const Node& self, const Node& later) const override {
    return dynamic_cast<const CrossEntropyBackward*>(later.op.get()) != nullptr &&
           later.inputs[1].node == self.inputs[0].node && later.inputs[2].node == self.inputs[1].node;
  }

  void launch(Launch& run) const override {
    const Shape& shape = run.src_shape(0);
    const Dtype dtype = run.src_dtype(0), real = real_of(dtype);
    const std::int64_t rows = shape.rows();
    const RowShare share = share_rows(run, rows, shape.back());
    const TargetOperands target = target_operands(run, 1);
    const bool is_none = target_.reduction == Reduction::none, is_mean = target_.reduction == Reduction::mean;
    const Operand weight = target_.has_weight ? run.src(2) : Launch::none();
    const Operand losses = is_none ? run.dst(0) : run.temp(rows, real);
    const Operand row_weights = run.temp(rows, real);
    const bool is_whole = share.groups == 1 && !is_none;  // one work-group adds up the losses as well
    const Operand total = is_whole ? run.dst(0) : Launch::none();
    const Operand total_weight = is_whole ? run.dst(2) : Launch::none();
    const GradientBeside& gradient = run.gradient();
    const bool counts_first = gradient.result.kind != Operand::Kind::none && target_.counts_rows();
    if (counts_first)
      run.kernel("cross_entropy_denominator", dtype)
          .args(target.labels_i32, target.labels_u8, weight, run.dst(2), rows, shape.back(), int{target_.has_ignored},
                int{target_.ignored})
          .over_rows(1, 256);
    run.kernel("cross_entropy_fwd", dtype)
        .args(run.src(0), target.labels_i32, target.labels_u8, target.probabilities, weight, losses, row_weights,
              run.dst(1), total, counts_first ? Launch::none() : total_weight, gradient.dy,
              counts_first ? run.dst(2) : Launch::none(), gradient.result, rows, shape.back(), share.rows_per_group,
              int{is_mean}, int{is_none}, is_mean ? static_cast<double>(rows) : 1.0, int{target_.has_ignored},
              int{target_.ignored}, static_cast<double>(target_.smoothing))
        .over_rows(share.groups, share.group);
    if (is_none || is_whole) return;
    run.kernel("cross_entropy_total", dtype)
        .args(losses, row_weights, run.dst(0), run.dst(2), rows, int{is_mean})
        .over_rows(1, 256);
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    std::vector<Array> result(request.src.size());
    const Array &dy = request.dy[0], &logits = request.src[0], &target = request.src[1];
    if (!dy) return result;  // only the statistics matter to the loss, and they carry no gradient
    const bool is_none = target_.reduction == Reduction::none;
    std::vector<Array> inputs{dy, logits, target, request.dst[1]};
    if (!is_none) inputs.push_back(request.dst[2]);
    if (target_.has_weight) inputs.push_back(request.src[2]);
    if (request.wanted[0])
      result[0] = make_array(make_op<CrossEntropyBackward>(target_), logits.shape(), logits.dtype(), inputs);
    if (is_floating(target.dtype()) && request.wanted[1]) {
      Array g = log_softmax(as_dtype(logits, target.dtype())) * (static_cast<double>(target_.smoothing) - 1.0);
      if (target_.has_weight) g = g * request.src[2];
      result[1] = g * (is_none ? unsqueeze(dy, -1) : dy / reshape(request.dst[2], dy.shape()));
    }
    return result;
  }

 private:
  Target target_;
};

}  // namespace
}  // namespace detail

Array cross_entropy(const Array& logits, const Array& target, const CrossEntropyOptions& options) {
  if (const detail::Casts cast("cross_entropy"); cast) return cross_entropy(cast(logits), target, options);
  using detail::describe;
  detail::require(logits && is_floating(logits.dtype()) && logits.shape().rank() >= 1 && logits.shape().back() > 0,
                  "cross_entropy", "needs floating logits of at least one class", logits, "logits");
  detail::require(static_cast<bool>(target), "cross_entropy", "needs a target", target, "target");
  const bool is_labels = target.dtype() == i32 || target.dtype() == u8;
  Shape rows;
  for (int i = 0; i + 1 < logits.shape().rank(); ++i) rows.push_back(logits.shape()[i]);
  if (!is_labels && !is_floating(target.dtype()))
    throw ArgumentError("cross_entropy: target must be i32 or u8 labels or floating probabilities, target is " +
                        describe(target));
  if (target.shape() != (is_labels ? rows : logits.shape()))
    throw ArgumentError("cross_entropy: target must be " + (is_labels ? rows : logits.shape()).to_string() +
                        (is_labels ? " for labels" : " for probabilities") + ", logits is " + describe(logits) +
                        ", target is " + describe(target));
  if (!(options.label_smoothing >= 0.0f && options.label_smoothing < 1.0f))
    throw ArgumentError("cross_entropy: label_smoothing must be in [0, 1), " + std::to_string(options.label_smoothing) +
                        " came");
  if (options.ignore_index && !is_labels)
    throw ArgumentError("cross_entropy: ignore_index needs labels, target is " + describe(target));
  const Array& weight = options.class_weight;
  if (weight && (weight.shape() != Shape{logits.shape().back()} || !is_floating(weight.dtype())))
    throw ArgumentError("cross_entropy: class_weight must be floating [" + std::to_string(logits.shape().back()) +
                        "], class_weight is " + describe(weight));

  const Dtype dtype = detail::real_of(logits.dtype());  // of all but the logits
  if (logits.size() == 0) {
    if (options.reduction == Reduction::none) return full(rows, 0.0, dtype);
    return full({}, options.reduction == Reduction::sum ? 0.0 : std::numeric_limits<double>::quiet_NaN(), dtype);
  }
  const detail::Target kind{static_cast<bool>(weight), options.ignore_index.has_value(),
                            options.ignore_index.value_or(0), options.label_smoothing, options.reduction};
  std::vector<Array> inputs{logits, is_labels ? target : detail::as_dtype(target, dtype)};
  if (weight) inputs.push_back(detail::as_dtype(stop_gradient(weight), dtype));
  std::vector<detail::Result> results{{options.reduction == Reduction::none ? rows : Shape{}, dtype},
                                      {Shape{logits.shape().rows(), 2}, dtype}};
  if (options.reduction != Reduction::none) results.push_back({Shape{1}, dtype});
  return detail::make_arrays(detail::make_op<detail::CrossEntropy>(kind), results, inputs)[0];
}

}  // namespace samebytes
