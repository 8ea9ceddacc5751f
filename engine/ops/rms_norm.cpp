// Root-mean-square normalisation over the last axis (Zhang and Sennrich 2019). Kernels: cl/*/rms_norm.cl.
// One launch forward; backward one for both gradients and one that adds the parts of that of scale.
#include <algorithm>
#include <string>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/as_value.h"
#include "ops/dtypes.h"
#include "ops/formula.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "shared/norm.h"

namespace samebytes {
namespace {

using detail::Launch;
using detail::Operand;
using detail::require;

// The local size that the GPU kernels require.
constexpr int kRmsNormItems = 64;

// Inputs src, dy, rstd and, with RMS_NORM_SCALE, scale; results dx (RMS_NORM_DSRC) and dscale (RMS_NORM_DSCALE).
class RmsNormGradient final : public detail::Op {
 public:
  explicit RmsNormGradient(int flags) : Op({.is_flat = {2}}), flags_(flags) {}  // rstd is a function of src here
  std::string_view name() const override { return "rms_norm_gradient"; }
  void hash(detail::Hasher& hasher) const override { hasher.add(std::uint64_t(flags_)); }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const std::int64_t rows = run.src_shape(0).rows();
    const int columns = static_cast<int>(run.src_shape(0).back());
    const std::int64_t most = std::min(rows, run.constant("rms_norm", "RMS_NORM_PARTS", real));
    const int rows_per_part = static_cast<int>((rows + most - 1) / most);
    const int parts = static_cast<int>((rows + rows_per_part - 1) / rows_per_part);
    const bool with_dscale = flags_ & detail::RMS_NORM_DSCALE;
    const Operand part = with_dscale ? run.temp(std::int64_t{1} * parts * columns, real) : Launch::none();
    run.kernel("rms_norm_bwd", dtype)
        .args(run.src(0), run.src(1), flags_ & detail::RMS_NORM_SCALE ? run.src(3) : Launch::none(), run.src(2),
              flags_ & detail::RMS_NORM_DSRC ? run.dst(0) : Launch::none(), part, rows, columns, rows_per_part, flags_)
        .over_tiles(parts, 1, 1, kRmsNormItems, 1);
    if (with_dscale) {
      const std::int64_t block = run.constant("rms_norm", "RMS_NORM_CHANNELS", real);
      run.kernel("rms_norm_reduce", real)
          .args(part, run.dst(flags_ & detail::RMS_NORM_DSRC ? 1 : 0), columns, parts)
          .over_tiles((columns + block - 1) / block, 1, 1, kRmsNormItems, 1);
    }
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    return detail::formula_gradient(request, [this](std::span<const Array> in) {
      const Dtype dtype = in[0].dtype(), real = detail::real_of(dtype);
      const Array x = detail::as_dtype(in[0], real), dy = detail::as_dtype(in[1], real);
      const Array rstd = detail::rstd_of(mean(square(x), {-1}, true), unsqueeze(in[2], -1));
      const Array y = x * rstd, g = flags_ & detail::RMS_NORM_SCALE ? dy * in[3] : dy;
      std::vector<Array> results;
      if (flags_ & detail::RMS_NORM_DSRC)
        results.push_back(detail::as_dtype(rstd * (g - y * mean(g * y, {-1}, true)), dtype));
      if (flags_ & detail::RMS_NORM_DSCALE) results.push_back(sum_to(dy * y, Shape{x.shape().back()}));
      return results;
    });
  }

 private:
  int flags_;
};

// Inputs src and, by flags, scale; results y, rstd.
class RmsNorm final : public detail::Op, public detail::Written {
 public:
  RmsNorm(int flags, double eps) : flags_(flags), eps_(eps) {}
  std::string_view name() const override { return "rms_norm"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(std::uint64_t(flags_));
    hasher.add(eps_);
  }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const std::int64_t rows = run.src_shape(0).rows();
    const std::int64_t block = run.constant("rms_norm", "RMS_NORM_ROWS", real);
    run.kernel("rms_norm_fwd", dtype)
        .args(run.src(0), flags_ & detail::RMS_NORM_SCALE ? run.src(1) : Launch::none(), run.dst(0), run.dst(1),
              static_cast<int>(run.src_shape(0).back()), eps_, flags_)
        .cpu_args(rows)
        .over_tiles((rows + block - 1) / block, 1, 1, kRmsNormItems, 1);
  }

  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array& src = request.src[0];
    std::vector<Array> result(request.src.size());
    const bool with_dx = request.wanted[0];
    const bool with_dscale = (flags_ & detail::RMS_NORM_SCALE) && request.wanted[1];
    if (src.size() == 0) {  // nothing is launched for an empty dx, and sums over no rows are zero
      for (std::size_t i = 0; i < result.size(); ++i) result[i] = zeros(request.src[i].shape(), request.src[i].dtype());
      return result;
    }
    std::vector<Array> inputs = {src, request.dy[0], request.dst[1]};
    if (flags_ & detail::RMS_NORM_SCALE) inputs.push_back(request.src[1]);
    std::vector<detail::Result> results;
    if (with_dx) results.push_back({src.shape(), src.dtype()});
    if (with_dscale) results.push_back({Shape{src.shape().back()}, detail::real_of(src.dtype())});
    const int flags = (flags_ & detail::RMS_NORM_SCALE) | (with_dx ? detail::RMS_NORM_DSRC : 0) |
                      (with_dscale ? detail::RMS_NORM_DSCALE : 0);
    const auto d = detail::make_arrays(detail::make_op<RmsNormGradient>(flags), results, inputs);
    if (with_dx) result[0] = d[0];
    if (with_dscale) result[1] = d.back();
    return result;
  }
  void write(detail::NodeWriter& w) const override {  // newer opsets have an operator for it
    const Dtype dtype = w.dtype(0);
    const auto x = w.in(0), mean = w.put("ReduceMean", {w.put("Mul", {x, x}), w.ints({-1})});
    const auto y = w.put("Div", {x, w.put("Sqrt", {w.put("Add", {mean, w.number(eps_, dtype)})})});
    w.give(w.count() > 1 ? w.put("Mul", {y, w.cast(w.in(1), w.dtype(1), dtype)}) : y);
  }

 private:
  int flags_;
  double eps_;
};

// The distance from 1 to the next number of this type.
double epsilon_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 0x1p-10;
    case Dtype::bf16: return 0x1p-7;
    case Dtype::f64: return 0x1p-52;
    default: return 0x1p-23;
  }
}

}  // namespace

const detail::CastRow kRmsNormCast{"rms_norm", CastRule::as_given};
Array rms_norm(const Input& src, const Input& scale, std::optional<float> eps) {
  if (const detail::Casts cast(kRmsNormCast); cast) return rms_norm(cast(src), scale, eps);
  constexpr const char* kOp = "rms_norm";
  require(src.defined() && src.shape().rank() >= 1 && is_floating(src.dtype()), kOp,
          "src must be floating with at least one axis", src, "src");
  const Dtype real = src.dtype() == f64 ? f64 : f32;
  std::vector<Array> inputs = {src};
  if (scale.defined()) {
    const std::string need =
        "the last axis of src " + detail::describe(src) + " needs one value each, of " + std::string(name_of(real));
    require(scale.shape() == Shape{src.shape().back()} && scale.dtype() == real, kOp, need.c_str(), scale, "scale");
    inputs.push_back(scale);
  }
  if (src.shape().back() == 0) {  // rows of nothing, which gradients may pass all the same
    const Array y = detail::as_value(src);
    return scale.defined() ? y * detail::as_dtype(scale, src.dtype()) : y;
  }
  detail::require_ints(kOp, "values of a row", {src.shape().back()});
  const Shape rows(std::span<const std::int64_t>(src.shape().begin(), src.shape().end() - 1));
  const detail::Result results[] = {{src.shape(), src.dtype()}, {rows, real}};
  const double added = eps ? double{*eps} : epsilon_of(src.dtype());
  return detail::make_arrays(detail::make_op<RmsNorm>(scale.defined() ? detail::RMS_NORM_SCALE : 0, added), results,
                             inputs)[0];
}

}  // namespace samebytes
