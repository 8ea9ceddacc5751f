// Batch normalisation over the last axis (Ioffe and Szegedy 2015). Kernels: cl/*/batch_norm.cl.
// In training three launches: statistics by parts, their merge (with the running statistics, in place), one pass over
// the elements; the gradient is three launches of the same kinds. In evaluation it is a chain of pointwise ops, so it
// fuses with its neighbours.
#include "ops/batch_norm.h"

#include <string>

#include "graph/op.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::Launch;
using detail::Operand;
using detail::require;

using Layout = detail::ColumnLayout;

// Inputs src, dy, scale, mean, rstd; results dscale, dshift and, where it is wanted, dx.
class BatchNormGradient final : public detail::Op {
 public:
  explicit BatchNormGradient(bool with_dx) : with_dx_(with_dx) {}
  std::string_view name() const override { return "batch_norm_gradient"; }
  void hash(detail::Hasher& hasher) const override { hasher.add(std::uint64_t{with_dx_}); }

  void launch(Launch& run) const override {
    const Dtype real = run.src_dtype(0);
    const Layout at(run, run.src_shape(0).size(), run.src_shape(0).back(), real);
    const Operand part = run.temp(std::int64_t{2} * at.parts * at.wide, real);
    const Operand coef = with_dx_ ? run.temp(std::int64_t{4} * at.coef_row, real) : Launch::none();
    run.kernel("batch_norm_bwd_stats", real)
        .args(run.src(0), run.src(1), run.src(3), part, at.total, at.wide, at.channels, at.rows_per_part)
        .over_tiles(at.parts, at.blocks, 1, Layout::kStatsX, Layout::kStatsY);
    run.kernel("batch_norm_bwd_merge", real)
        .args(part, run.src(2), run.src(3), run.src(4), run.dst(0), run.dst(1), coef, at.total, at.wide, at.channels,
              at.parts, at.span, at.coef_row, int{with_dx_})
        .over_tiles(at.merge_groups, 1, 1, Layout::kMergeX, 1);
    if (with_dx_)
      run.kernel("batch_norm_bwd_apply", real)
          .args(run.src(0), run.src(1), coef, run.dst(2), at.total, at.span, at.coef_row)
          .over_elements(at.total);
  }

 private:
  bool with_dx_;
};

// Inputs src, scale, shift and, where they are updated, running_mean, running_var; results y, mean, rstd and the
// updated statistics.
class BatchNormTrain final : public detail::Op {
 public:
  BatchNormTrain(const BatchNormOptions& options, bool updates) : options_(options), updates_(updates) {}
  std::string_view name() const override { return "batch_norm_train"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(double{options_.eps});
    hasher.add(double{options_.momentum});
    hasher.add(std::uint64_t{updates_});
  }
  int in_place(int result) const override {
    return result >= 3 ? result : -1;
  }  // running statistics are inputs and results 3 and 4
  bool is_state(int input) const override { return input >= 3; }

  void launch(Launch& run) const override {
    const Dtype real = run.src_dtype(0);
    const Layout at(run, run.src_shape(0).size(), run.src_shape(0).back(), real);
    const Operand part = run.temp(std::int64_t{2} * at.parts * at.wide, real);
    const Operand coef = run.temp(std::int64_t{3} * at.coef_row, real);
    run.kernel("batch_norm_stats", real)
        .args(run.src(0), part, at.total, at.wide, at.channels, at.rows_per_part)
        .over_tiles(at.parts, at.blocks, 1, Layout::kStatsX, Layout::kStatsY);
    run.kernel("batch_norm_merge", real)
        .args(run.src(0), part, run.src(1), run.src(2), updates_ ? run.dst(3) : Launch::none(),
              updates_ ? run.dst(4) : Launch::none(), run.dst(1), run.dst(2), coef, at.total, at.wide, at.channels,
              at.parts, at.rows_per_part, at.span, at.coef_row, double{options_.eps}, double{options_.momentum},
              int{updates_})
        .over_tiles(at.merge_groups, 1, 1, Layout::kMergeX, 1);
    run.kernel("batch_norm_apply", real)
        .args(run.src(0), coef, run.dst(0), at.total, at.span, at.coef_row)
        .over_elements(at.total);
  }

  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array& src = request.src[0];
    const Array& scale = request.src[1];
    std::vector<Array> result(request.src.size());
    const Array inputs[] = {src, request.dy[0], scale, request.dst[1], request.dst[2]};
    const bool with_dx = request.wanted[0];
    std::vector<detail::Result> results = {{scale.shape(), src.dtype()}, {scale.shape(), src.dtype()}};
    if (with_dx) results.push_back({src.shape(), src.dtype()});
    const auto d = detail::make_arrays(detail::make_op<BatchNormGradient>(with_dx), results, inputs);
    if (with_dx) result[0] = d[2];
    result[1] = d[0];
    result[2] = d[1];
    return result;
  }

 private:
  BatchNormOptions options_;
  bool updates_;
};

Dtype compute_dtype(Dtype dtype) { return dtype == f64 ? f64 : f32; }

void check_arguments(const char* op, const Array& src, const Array& scale, const Array& shift,
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

Array batch_norm_train(const Array& src, const Array& scale, const Array& shift, const Array& running_mean,
                       const Array& running_var, const BatchNormOptions& options) {
  constexpr const char* kOp = "batch_norm_train";
  check_arguments(kOp, src, scale, shift, running_mean, running_var);
  require(src.shape().rows() >= 2 || src.shape().back() == 0, kOp, "the variance needs at least two values per channel",
          src, "src");
  const bool updates = is_grad_enabled();
  if (updates) {
    require(is_cell(running_mean), kOp, "running statistics are overwritten, so they must be cells", running_mean,
            "running_mean");
    require(is_cell(running_var), kOp, "running statistics are overwritten, so they must be cells", running_var,
            "running_var");
  }
  const Dtype real = compute_dtype(src.dtype());
  std::vector<Array> inputs = {src.dtype() == real ? src : astype(src, real), scale, shift};
  const Shape& per_channel = scale.shape();
  std::vector<detail::Result> results = {{src.shape(), real}, {per_channel, real}, {per_channel, real}};
  if (updates) {
    inputs.insert(inputs.end(), {running_mean, running_var});
    results.insert(results.end(), {{per_channel, real}, {per_channel, real}});
  }
  const Array y = detail::make_arrays(detail::make_op<BatchNormTrain>(options, updates), results, inputs)[0];
  return src.dtype() == real ? y : astype(y, src.dtype());
}

Array batch_norm_eval(const Array& src, const Array& scale, const Array& shift, const Array& running_mean,
                      const Array& running_var, const BatchNormOptions& options) {
  check_arguments("batch_norm_eval", src, scale, shift, running_mean, running_var);
  const Dtype real = compute_dtype(src.dtype());
  const Array wide = src.dtype() == real ? src : astype(src, real);
  const Array y = (wide - running_mean) * (rsqrt(running_var + double{options.eps}) * scale) + shift;
  return src.dtype() == real ? y : astype(y, src.dtype());
}

}  // namespace samebytes
