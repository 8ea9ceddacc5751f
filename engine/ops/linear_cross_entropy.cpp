// A linear layer and the cross-entropy of its results as one op, in chunks of rows: a temporary holds the logits of a
// chunk, the gradient overwrites them, and the products for x and for the weight read it there, so that [N, V] never
// exists as a whole. The launches are those of gemm and cross_entropy. If the upstream gradient exists before the loss
// runs, one pass computes loss and gradients (plan/loss_gradient.h); otherwise the gradients recompute the logits.
#include <algorithm>
#include <limits>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "ops/cross_entropy.h"
#include "ops/dtypes.h"
#include "ops/gemm.h"
#include "ops/indexing.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

// The default size of a chunk's logits: small compared with a weight, with enough rows for a product to reach its
// speed.
constexpr std::int64_t kChunkBytes = std::int64_t{32} << 20;
constexpr std::int64_t kLeastChunkRows = 64;

struct Head {
  CrossEntropyRule rule;
  std::int64_t chunk_rows = 1;
  bool has_bias = false;

  void hash(Hasher& hasher) const {
    rule.hash(hasher);
    hasher.add(static_cast<std::uint64_t>(chunk_rows) << 1 | std::uint64_t{has_bias});
  }
};

// Which gradients a node computes; these are its results, in this order.
struct Wanted {
  bool x = false, weight = false, bias = false;
};

// The operands of all rows; operands of unwanted gradients are none.
struct HeadOperands {
  Operand x{}, weight{}, bias{};
  CrossEntropyOperands entropy{};  // logits and gradient are set for each chunk
  Operand dx{}, dweight{}, dbias{};
};

// Records the chunks: logits, then losses (of the forward pass) and the gradient of the logits in their place, then the
// products of that.
void record_chunks(Launch& run, const Head& head, const HeadOperands& o, bool is_forward, const Shape& x,
                   std::int64_t classes, Dtype dtype) {
  const std::int64_t rows = x[0], width = x[1], most = std::min(head.chunk_rows, rows);
  const bool has_gradient = o.entropy.dy.kind != Operand::Kind::none;
  const Operand logits = run.temp(most * classes, dtype);
  Operand ones = Launch::none();
  if (o.dbias.kind != Operand::Kind::none) {
    ones = run.temp(most, dtype);
    run.kernel("fill_real", dtype).args(ones, most, 1.0).over_elements(most);
  }
  const std::int64_t dy_step = head.rule.reduction == Reduction::none ? 1 : 0;
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t n = std::min(most, rows - first);
    const bool adds = first > 0;
    launch_gemm(run, o.x.from(first * width), o.weight, o.bias, logits,
                {.m = n, .n = classes, .k = width, .a_row = width, .a_col = 1, .b_row = 1, .b_col = width}, dtype);
    CrossEntropyOperands part = o.entropy;
    part.target = part.target.from_row(first);
    part.logits = logits;
    part.statistics = part.statistics.from(2 * first);
    part.dy = part.dy.from(dy_step * first);
    if (has_gradient) part.gradient = logits;
    if (is_forward) {
      part.losses = part.losses.from(first);
      part.row_weights = part.row_weights.from(first);
      record_cross_entropy(run, head.rule, part, n, classes, static_cast<double>(rows), dtype);
    } else {
      record_cross_entropy_gradient(run, head.rule, part, n, classes, dtype);
    }
    if (o.dx.kind != Operand::Kind::none)
      launch_gemm(run, logits, o.weight, Launch::none(), o.dx.from(first * width),
                  {.m = n, .n = width, .k = classes, .a_row = classes, .a_col = 1, .b_row = width, .b_col = 1}, dtype);
    if (o.dweight.kind != Operand::Kind::none)
      launch_gemm(run, logits, o.x.from(first * width), Launch::none(), o.dweight,
                  {.m = classes, .n = width, .k = n, .a_row = 1, .a_col = classes, .b_row = width, .b_col = 1}, dtype,
                  adds);
    if (o.dbias.kind != Operand::Kind::none)
      launch_gemm(run, ones, logits, Launch::none(), o.dbias,
                  {.m = 1, .n = classes, .k = n, .a_row = n, .a_col = 1, .b_row = classes, .b_col = 1}, dtype, adds);
  }
}

double flops_of(const Shape& x, const Shape& weight, int products) {
  return 2.0 * products * static_cast<double>(x.size()) * static_cast<double>(weight[0]);
}

// Inputs: dy, x, weight, labels, statistics, the denominator unless Reduction::none, the bias and the class weights if
// any.
class LinearCrossEntropyBackward final : public Op {
 public:
  LinearCrossEntropyBackward(const Head& head, const Wanted& wanted, bool is_late)
      : Op({.runs_late = is_late}), head_(head), wanted_(wanted), is_late_(is_late) {}
  std::string_view name() const override { return "linear_cross_entropy_backward"; }
  void hash(Hasher& hasher) const override {
    head_.hash(hasher);
    hasher.add(std::uint64_t{wanted_.x} | std::uint64_t{wanted_.weight} << 1 | std::uint64_t{wanted_.bias} << 2 |
               std::uint64_t{is_late_} << 3);
  }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    Cost cost = Op::cost(src, dst);
    cost.flops = flops_of(src[1], src[2], int{wanted_.x} + int{wanted_.weight});
    return cost;
  }

  // Where the results of this node are, of which the first one is `first`.
  void set_results(HeadOperands& operands, Operand first) const {
    auto next = [&, k = 0](bool is_wanted) mutable {
      return is_wanted ? Operand{first.kind, first.index + k++} : Launch::none();
    };
    operands.dx = next(wanted_.x);
    operands.dweight = next(wanted_.weight);
    operands.dbias = next(wanted_.bias);
  }

  void launch(Launch& run) const override {
    HeadOperands operands{.x = run.src(1), .weight = run.src(2)};
    operands.entropy.target = target_operands(run, 3);
    operands.entropy.statistics = run.src(4);
    operands.entropy.dy = run.src(0);
    int next = 5;
    if (head_.rule.reduction != Reduction::none) operands.entropy.denominator = run.src(next++);
    if (head_.has_bias) operands.bias = run.src(next++);
    if (head_.rule.has_weight) operands.entropy.class_weight = run.src(next++);
    set_results(operands, run.dst(0));
    record_chunks(run, head_, operands, false, run.src_shape(1), run.src_shape(2)[0], run.src_dtype(1));
  }

 private:
  Head head_;
  Wanted wanted_;
  bool is_late_;
};

// Inputs: x [N, D], weight [V, D], labels [N], the bias and the class weights if any. Results: the loss, statistics
// [N, 2], the denominator [1] unless none.
class LinearCrossEntropy final : public Op {
 public:
  LinearCrossEntropy(const Head& head, bool makes_weight_late) : head_(head), makes_weight_late_(makes_weight_late) {}
  std::string_view name() const override { return "linear_cross_entropy"; }
  void hash(Hasher& hasher) const override { head_.hash(hasher); }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    Cost cost = Op::cost(src, dst);
    cost.flops = flops_of(src[0], src[1], 1);
    return cost;
  }

  bool makes_gradient(const Node& self, const Node& later) const override {
    const auto* const op = dynamic_cast<const LinearCrossEntropyBackward*>(later.op.get());
    if (!op || op->traits().runs_late) return false;
    for (std::size_t i = 0; i < 3; ++i)
      if (later.inputs[i + 1].node != self.inputs[i].node) return false;
    return true;
  }

  void launch(Launch& run) const override {
    const Shape& x = run.src_shape(0);
    const std::int64_t rows = x[0], classes = run.src_shape(1)[0];
    const Dtype dtype = run.src_dtype(0), real = real_of(dtype);
    const CrossEntropyRule& rule = head_.rule;
    const bool is_none = rule.reduction == Reduction::none;
    const GradientBeside& beside = run.gradient();
    HeadOperands operands{.x = run.src(0), .weight = run.src(1)};
    int next = 3;
    if (head_.has_bias) operands.bias = run.src(next++);
    CrossEntropyOperands& entropy = operands.entropy;
    entropy.target = target_operands(run, 2);
    if (rule.has_weight) entropy.class_weight = run.src(next++);
    entropy.losses = is_none ? run.dst(0) : run.temp(rows, real);
    entropy.row_weights = run.temp(rows, real);
    entropy.statistics = run.dst(1);
    if (beside.node) {
      entropy.dy = beside.dy;
      static_cast<const LinearCrossEntropyBackward&>(*beside.node->op).set_results(operands, beside.result);
      if (rule.counts_rows()) {
        entropy.denominator = run.dst(2);
        record_cross_entropy_denominator(run, rule, entropy.target, entropy.class_weight, run.dst(2), rows, classes,
                                         dtype);
      }
    }
    record_chunks(run, head_, operands, true, x, classes, dtype);
    if (!is_none)
      record_cross_entropy_total(run, rule, entropy.losses, entropy.row_weights, run.dst(0), run.dst(2), rows, dtype);
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    std::vector<Array> result(request.src.size());
    if (!request.dy[0].defined()) return result;  // only the statistics affect the loss, and they carry no gradient
    std::vector<Array> inputs{request.dy[0]};
    inputs.insert(inputs.end(), request.src.begin(), request.src.begin() + 3);
    inputs.push_back(request.dst[1]);
    if (head_.rule.reduction != Reduction::none) inputs.push_back(request.dst[2]);
    inputs.insert(inputs.end(), request.src.begin() + 3, request.src.end());
    const auto make = [&](const Wanted& wanted, bool is_late) {
      std::vector<Result> results;
      std::vector<std::size_t> places;
      for (const auto& [is_wanted, place] :
           {std::pair{wanted.x, std::size_t{0}}, std::pair{wanted.weight, std::size_t{1}},
            std::pair{wanted.bias, std::size_t{3}}})
        if (is_wanted) {
          results.push_back({request.src[place].shape(), request.src[place].dtype()});
          places.push_back(place);
        }
      if (results.empty()) return;
      const std::vector<Array> made =
          make_arrays(make_op<LinearCrossEntropyBackward>(head_, wanted, is_late), results, inputs);
      for (std::size_t i = 0; i < made.size(); ++i) result[places[i]] = made[i];
    };
    const Wanted wanted{request.wanted[0], request.wanted[1], head_.has_bias && request.wanted[3]};
    if (makes_weight_late_) {
      make({wanted.x, false, false}, false);
      make({false, wanted.weight, wanted.bias}, true);
    } else {
      make(wanted, false);
    }
    return result;
  }

 private:
  Head head_;
  bool makes_weight_late_;
};

std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t classes, Dtype dtype, std::int64_t chunks) {
  if (chunks == 0) {
    const std::int64_t row = classes * static_cast<std::int64_t>(bytes_of(dtype));
    chunks = (rows + std::max(kLeastChunkRows, kChunkBytes / row) - 1) / std::max(kLeastChunkRows, kChunkBytes / row);
  }
  return (rows + chunks - 1) / chunks;
}

}  // namespace
}  // namespace detail

const detail::CastRow kLinearCrossEntropyCast{"linear_cross_entropy", CastRule::lower};
Array linear_cross_entropy(const Input& x, const Input& weight, const Input& labels,
                           const LinearCrossEntropyOptions& options) {
  constexpr const char* kOp = "linear_cross_entropy";
  if (const detail::Casts cast(kLinearCrossEntropyCast); cast) {
    LinearCrossEntropyOptions lower = options;
    lower.bias = cast(options.bias);
    return linear_cross_entropy(cast(x), cast(weight), labels, lower);
  }
  using detail::describe;
  detail::require(x.defined() && is_floating(x.dtype()) && x.shape().rank() >= 1, kOp,
                  "x must be floating with one axis or more", x, "x");
  detail::require(weight.defined() && is_floating(weight.dtype()) && weight.shape().rank() == 2 && weight.size() > 0,
                  kOp, "weight must be floating [classes, in]", weight, "weight");
  const std::int64_t classes = weight.shape()[0], in = weight.shape()[1];
  if (x.shape().back() != in)
    throw ArgumentError(std::string(kOp) + ": x must have " + std::to_string(in) + " values in its last axis, x is " +
                        describe(x) + ", weight is " + describe(weight));
  const Array& bias = options.bias;
  if (bias.defined())
    detail::require(is_floating(bias.dtype()) && bias.shape() == Shape{classes}, kOp, "bias must be floating [classes]",
                    bias, "bias");
  Shape rows;
  for (int i = 0; i + 1 < x.shape().rank(); ++i) rows.push_back(x.shape()[i]);
  detail::require(labels.defined() && detail::is_label(labels.dtype()), kOp, "needs i32, i64 or u8 labels", labels,
                  "labels");
  if (labels.shape() != rows)
    throw ArgumentError(std::string(kOp) + ": labels must be " + rows.to_string() + ", x is " + describe(x) +
                        ", labels is " + describe(labels));
  detail::check_cross_entropy_options(kOp, options.label_smoothing, options.class_weight, classes);
  if (options.chunks < 0)
    throw ArgumentError(std::string(kOp) + ": chunks must be 0 or more, got " + std::to_string(options.chunks));

  Dtype dtype = detail::wider(x.dtype(), weight.dtype());
  if (bias.defined()) dtype = detail::wider(dtype, bias.dtype());
  const Dtype real = detail::real_of(dtype);  // of the loss
  if (x.size() == 0) {
    if (options.reduction == Reduction::none) return full(rows, 0.0, real);
    const Array nothing = detail::as_dtype(x, real);
    return options.reduction == Reduction::sum ? sum(nothing) : mean(nothing);
  }
  const std::int64_t n = labels.size();
  const detail::Head head{{options.class_weight.defined(), options.ignore_index.has_value(),
                           options.ignore_index.value_or(0), options.label_smoothing, options.reduction},
                          detail::rows_of_chunk(n, classes, dtype, std::min(options.chunks, n)),
                          bias.defined()};
  std::vector<Array> inputs{reshape(detail::as_dtype(x, dtype), {n, in}), detail::as_dtype(weight, dtype),
                            reshape(labels.dtype() == i64 ? detail::as_i32(labels) : labels.array(), {n})};
  if (bias.defined()) inputs.push_back(detail::as_dtype(bias, dtype));
  if (options.class_weight.defined()) inputs.push_back(detail::as_dtype(stop_gradient(options.class_weight), real));
  std::vector<detail::Result> results{{options.reduction == Reduction::none ? Shape{n} : Shape{}, real},
                                      {Shape{n, 2}, real}};
  if (options.reduction != Reduction::none) results.push_back({Shape{1}, real});
  const Array loss = detail::make_arrays(
      detail::make_op<detail::LinearCrossEntropy>(head, options.late_weight_gradient), results, inputs)[0];
  return options.reduction == Reduction::none && rows.rank() != 1 ? reshape(loss, rows) : loss;
}

}  // namespace samebytes
