// Batch normalisation over the last axis (Ioffe and Szegedy 2015). Kernels: cl/*/batch_norm.cl.
// Training takes two launches for the statistics: partial sums, then their merge (with the running statistics, in
// place). The work on each element is pointwise in both directions, so it fuses with its neighbours: an activation, a
// residual, a dropout mask. The gradient takes two launches for its sums; if a ReLU follows, they compute its mask
// themselves and store nothing for it. Evaluation is a chain of pointwise ops or, without gradients, part of the
// convolution before it.
#include "ops/batch_norm.h"

#include <string>

#include "graph/autocast.h"
#include "graph/op.h"
#include "ops/conv.h"
#include "ops/dtypes.h"
#include "ops/formula.h"
#include "ops/int8.h"
#include "ops/pointwise.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::ColumnLayout;
using detail::GradientRequest;
using detail::Launch;
using detail::Operand;
using detail::PointwiseRow;
using detail::require;

using Arrays = std::vector<Array>;

// Inputs src, dy, mean, rstd, scale and, if masked, shift; results dscale, dshift and, if dx is wanted, its three
// factors per channel (see the kernel). masked: dy is the gradient behind a ReLU of the normalised values.
class BatchNormSums final : public detail::Op {
 public:
  // mean and rstd are functions of src here; shift only decides where a ReLU is open.
  BatchNormSums(bool with_dx, bool masked) : Op({.is_flat = {2, 3, 5}}), with_dx_(with_dx), masked_(masked) {}
  std::string_view name() const override { return "batch_norm_gradient"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(std::uint64_t{with_dx_});
    hasher.add(std::uint64_t{masked_});
  }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const ColumnLayout at(run, run.src_shape(0).size(), run.src_shape(0).back(), real);
    const Operand part = run.temp(std::int64_t{2} * at.parts * at.wide, real);
    const auto if_masked = [&](int input) { return masked_ ? run.src(input) : Launch::none(); };
    const auto if_dx = [&](int result) { return with_dx_ ? run.dst(result) : Launch::none(); };
    run.kernel("batch_norm_bwd_stats", dtype)
        .args(run.src(0), run.src(1), run.src(2), if_masked(3), if_masked(4), if_masked(5), part, at.total, at.wide,
              at.channels, at.rows_per_part, int{masked_})
        .over_tiles(at.parts, at.blocks, 1, ColumnLayout::kStatsX, ColumnLayout::kStatsY);
    run.kernel("batch_norm_bwd_merge", real)
        .args(part, run.src(4), run.src(3), run.dst(0), run.dst(1), if_dx(2), if_dx(3), if_dx(4), at.total, at.wide,
              at.channels, at.parts, int{with_dx_})
        .over_tiles(at.merge_groups, 1, 1, ColumnLayout::kMergeX, 1);
  }
  Arrays gradient(const GradientRequest& request) const override {
    return detail::formula_gradient(request, [this](std::span<const Array> in) {
      const Dtype real = detail::real_of(in[0].dtype());
      const std::int64_t channels = in[0].shape().back(), rows = in[0].size() / channels;
      const auto columns = [&](const Array& a) { return reshape(detail::as_dtype(a, real), {rows, channels}); };
      const Array x = columns(in[0]), centred = x - mean(x, {0});
      const Array rstd = detail::rstd_of(mean(square(centred), {0}), in[3]), y = centred * rstd, &scale = in[4];
      Array dy = columns(in[1]);
      if (masked_) {
        const Array open = greater((x - in[2]) * (in[3] * scale) + in[5], zeros({}, real));
        dy = where(open, dy, zeros({}, real));
      }
      const Array dscale = sum(dy * y, {0}), dshift = sum(dy, {0});
      Arrays results{dscale, dshift};
      if (with_dx_) {
        const Array factor = scale * rstd, share = factor / static_cast<double>(rows);
        results.insert(results.end(), {factor, -(share * rstd * dscale), -(share * dshift)});
      }
      return results;
    });
  }

 private:
  bool with_dx_, masked_;
};

// Inputs src and, if they are updated, running_mean, running_var; results mean, rstd and the updated statistics.
class BatchNormStats final : public detail::Op {
 public:
  // Running statistics are inputs 1 and 2, results 2 and 3.
  BatchNormStats(const BatchNormOptions& options, bool updates)
      : Op({.is_state = detail::InputSet::from(1), .in_place = {.result = 2, .input = 1}}),
        options_(options),
        updates_(updates) {}
  std::string_view name() const override { return "batch_norm_train"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(double{options_.eps});
    hasher.add(double{options_.momentum});
    hasher.add(std::uint64_t{updates_});
  }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const ColumnLayout at(run, run.src_shape(0).size(), run.src_shape(0).back(), real);
    const Operand part = run.temp(std::int64_t{2} * at.parts * at.wide, real);
    run.kernel("batch_norm_stats", dtype)
        .args(run.src(0), part, at.total, at.wide, at.channels, at.rows_per_part)
        .over_tiles(at.parts, at.blocks, 1, ColumnLayout::kStatsX, ColumnLayout::kStatsY);
    run.kernel("batch_norm_merge", dtype)
        .args(run.src(0), part, updates_ ? run.dst(2) : Launch::none(), updates_ ? run.dst(3) : Launch::none(),
              run.dst(0), run.dst(1), at.total, at.wide, at.channels, at.parts, at.rows_per_part, double{options_.eps},
              double{options_.momentum}, int{updates_})
        .over_tiles(at.merge_groups, 1, 1, ColumnLayout::kMergeX, 1);
  }

 private:
  BatchNormOptions options_;
  bool updates_;
};

// The gradient of dx: dy and src by element, the factors by channel. The mean's gradient flows directly to src.
Arrays dx_gradient(const GradientRequest& request) {
  const Array &g = request.dy[0], &dy = request.src[0], &src = request.src[1], &mean_of_src = request.src[2];
  const Array &a = request.src[3], &b = request.src[4];
  const Shape per_channel = a.shape();
  const auto wide = [&](const Array& v) { return detail::as_dtype(v, a.dtype()); };
  Arrays result(6);
  if (request.wanted[0]) result[0] = wide(g) * a;
  if (request.wanted[1]) {
    const Array flow = wide(g) * b;
    const std::int64_t rows = src.size() / src.shape().back();
    result[1] = flow - sum_to(flow, per_channel) / static_cast<double>(rows);
  }
  if (request.wanted[3]) result[3] = sum_to(wide(g) * wide(dy), per_channel);
  if (request.wanted[4]) result[4] = sum_to(wide(g) * (wide(src) - mean_of_src), per_channel);
  if (request.wanted[5]) result[5] = sum_to(wide(g), per_channel);
  return result;
}

// dx of dy, src, mean and the three factors.
const PointwiseRow kGradientRow{
    "batch_norm_dx", 6,    0, "FMA($3, $0, FMA($4, $1 - $2, $5))", nullptr, PointwiseRow::Result::same,
    dx_gradient,     0b100};

Arrays train_gradient(const GradientRequest& request);

// y of src, mean, rstd, scale, shift. Its gradient is that of the whole normalisation, statistics included.
const PointwiseRow kNormaliseRow{"batch_norm",
                                 5,
                                 0,
                                 "FMA($0 - $1, $2 * $3, $4)",
                                 "Add(Mul(Sub($0,$1),Mul($2,$3)),$4)",
                                 PointwiseRow::Result::same,
                                 train_gradient,
                                 0b110};

// A pointwise node of values [..., C] and values per channel [C].
template <const PointwiseRow& kRow>
Array per_channel(const Shape& shape, Dtype dtype, std::initializer_list<Array> operands) {
  static const detail::OpPtr op = detail::make_op<detail::Pointwise>(kRow);
  return detail::make_array(op, shape, dtype, std::span<const Array>(operands.begin(), operands.size()));
}

Arrays train_gradient(const GradientRequest& request) {
  const Array &src = request.src[0], &mean = request.src[1], &rstd = request.src[2], &scale = request.src[3];
  const Array& dy = request.dy[0];
  const bool with_dx = request.wanted[0];
  const Array before_relu = detail::relu_gradient_source(dy, request.dst[0]);
  const bool masked = before_relu.defined();
  std::vector<detail::Result> results(with_dx ? 5 : 2, {scale.shape(), scale.dtype()});
  Arrays inputs = {src, masked ? before_relu : dy, mean, rstd, scale};
  if (masked) inputs.push_back(request.src[4]);
  const Arrays d = detail::make_arrays(detail::make_op<BatchNormSums>(with_dx, masked), results, inputs);
  Arrays result(5);
  if (with_dx) result[0] = per_channel<kGradientRow>(src.shape(), src.dtype(), {dy, src, mean, d[2], d[3], d[4]});
  result[3] = d[0];
  result[4] = d[1];
  return result;
}

Dtype compute_dtype(Dtype dtype) { return dtype == f64 ? f64 : f32; }

void check_batch_norm(const char* op, const Array& src, const Array& scale, const Array& shift,
                      const Array& running_mean, const Array& running_var) {
  require(src.shape().rank() >= 1 && is_floating(src.dtype()), op,
          "src must be floating with channels in its last axis", src, "src");
  const Shape per_channel{src.shape().back()};
  const Dtype dtype = compute_dtype(src.dtype());
  const std::string need =
      "each channel of src " + detail::describe(src) + " needs one value, of " + std::string(name_of(dtype));
  const auto check = [&](const Array& array, const char* name) {
    require(array.shape() == per_channel && array.dtype() == dtype, op, need.c_str(), array, name);
  };
  check(scale, "scale");
  check(shift, "shift");
  check(running_mean, "running_mean");
  check(running_var, "running_var");
}

}  // namespace

const detail::CastRow kBatchNormTrainCast{"batch_norm_train", CastRule::as_given};
Array batch_norm_train(const Input& src, const Input& scale, const Input& shift, const Input& running_mean,
                       const Input& running_var, const BatchNormOptions& options) {
  if (const detail::Casts cast(kBatchNormTrainCast); cast)
    return batch_norm_train(cast(src), scale, shift, running_mean, running_var, options);
  constexpr const char* kOp = "batch_norm_train";
  check_batch_norm(kOp, src, scale, shift, running_mean, running_var);
  if (const BatchNormFunction* const function = detail::batch_norm_function)  // may combine more values than these
    return (*function)({src, scale, shift, running_mean, running_var, options});
  require(src.shape().rows() >= 2 || src.shape().back() == 0, kOp, "the variance needs at least two values per channel",
          src, "src");
  const bool updates = is_grad_enabled() && !detail::keeps_statistics;
  if (updates) {
    require(is_cell(running_mean), kOp, "running statistics are overwritten, so they must be cells", running_mean,
            "running_mean");
    require(is_cell(running_var), kOp, "running statistics are overwritten, so they must be cells", running_var,
            "running_var");
  }
  const Dtype real = compute_dtype(src.dtype());
  Arrays inputs = {src};
  if (updates) inputs.insert(inputs.end(), {running_mean, running_var});
  const std::vector<detail::Result> results(updates ? 4 : 2, {scale.shape(), real});
  const Arrays moments = detail::make_arrays(detail::make_op<BatchNormStats>(options, updates), results, inputs);
  return per_channel<kNormaliseRow>(src.shape(), src.dtype(), {src, moments[0], moments[1], scale, shift});
}

const detail::CastRow kBatchNormEvalCast{"batch_norm_eval", CastRule::as_given};
Array batch_norm_eval(const Input& src, const Input& scale, const Input& shift, const Input& running_mean,
                      const Input& running_var, const BatchNormOptions& options) {
  if (const detail::Casts cast(kBatchNormEvalCast); cast)
    return batch_norm_eval(cast(src), scale, shift, running_mean, running_var, options);
  check_batch_norm("batch_norm_eval", src, scale, shift, running_mean, running_var);
  const Dtype real = compute_dtype(src.dtype());
  // Folds the norm into the preceding convolution: weights times a factor per channel, and another bias. If no gradient
  // is needed, two launches over the weights replace a pass over the images.
  if (const auto conv = is_grad_enabled() || src.dtype() != real ? std::nullopt : detail::replaceable_conv(src)) {
    const auto factor = [&](const Shape& shape) {  // a new node for each shape, so that each product is one launch
      return rsqrt(broadcast_to(running_var, shape) + double{options.eps}) * broadcast_to(scale, shape);
    };
    const Array centre = conv->bias.defined() ? conv->bias - running_mean : -running_mean;
    return conv_forward(conv->src, conv->weight * factor(conv->weight.shape()), centre * factor(scale.shape()) + shift,
                        src.shape(), conv->attributes);
  }
  if (const auto int8 = is_grad_enabled() || real != f32 ? std::nullopt : detail::replaceable_int8(src)) {
    const Array factor = rsqrt(running_var + double{options.eps}) * scale;
    const Array centre = int8->inputs.size() > 4 ? int8->inputs[4] - running_mean : -running_mean;
    return int8->with(int8->inputs[3] * factor, centre * factor + shift);
  }
  const Array wide = src.dtype() == real ? src.array() : astype(src, real);
  const Array y = (wide - running_mean) * (rsqrt(running_var + double{options.eps}) * scale) + shift;
  return src.dtype() == real ? y : astype(y, src.dtype());
}

}  // namespace samebytes
