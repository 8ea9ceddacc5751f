// Layer normalisation over the last axis (Ba, Kiros and Hinton 2016). Kernels: cl/*/layer_norm.cl.
// One launch forward; backward one for all gradients and one that adds the parts of those of scale and shift.
#include <algorithm>
#include <string>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/as_value.h"
#include "ops/dtypes.h"
#include "ops/formula.h"
#include "ops/moved_axis.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "shared/norm.h"

namespace samebytes {
namespace {

using detail::Launch;
using detail::Operand;
using detail::require;

// The local sizes that the GPU kernels require.
constexpr int kLayerNormItems = 64;

// Inputs src, dy, mean, rstd and, with LAYER_NORM_SCALE, scale; results dx (LAYER_NORM_DSRC) and dscale, dshift
// (LAYER_NORM_DSCALE).
class LayerNormGradient final : public detail::Op {
 public:
  // mean and rstd are functions of src here.
  explicit LayerNormGradient(int flags) : Op({.is_flat = {2, 3}}), flags_(flags) {}
  std::string_view name() const override { return "layer_norm_gradient"; }
  void hash(detail::Hasher& hasher) const override { hasher.add(std::uint64_t(flags_)); }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const std::int64_t rows = run.src_shape(0).rows();
    const int columns = static_cast<int>(run.src_shape(0).back());
    const std::int64_t most = std::min(rows, run.constant("layer_norm", "LAYER_NORM_PARTS", real));
    const int rows_per_part = static_cast<int>((rows + most - 1) / most);
    const int parts = static_cast<int>((rows + rows_per_part - 1) / rows_per_part);
    const bool with_dscale = flags_ & detail::LAYER_NORM_DSCALE;
    const Operand part = with_dscale ? run.temp(std::int64_t{2} * parts * columns, real) : Launch::none();
    int result = 0;
    const Operand dx = flags_ & detail::LAYER_NORM_DSRC ? run.dst(result++) : Launch::none();
    run.kernel("layer_norm_bwd", dtype)
        .args(run.src(0), run.src(1), flags_ & detail::LAYER_NORM_SCALE ? run.src(4) : Launch::none(), run.src(2),
              run.src(3), dx, part, rows, columns, rows_per_part, flags_)
        .over_tiles(parts, 1, 1, kLayerNormItems, 1);
    if (with_dscale) {
      const std::int64_t block = run.constant("layer_norm", "LAYER_NORM_CHANNELS", real);
      run.kernel("layer_norm_reduce", real)
          .args(part, run.dst(result), run.dst(result + 1), columns, parts)
          .over_tiles((columns + block - 1) / block, 1, 1, kLayerNormItems, 1);
    }
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    return detail::formula_gradient(request, [this](std::span<const Array> in) {
      const Dtype dtype = in[0].dtype(), real = detail::real_of(dtype);
      const Array x = detail::as_dtype(in[0], real), dy = detail::as_dtype(in[1], real);
      const Array centred = x - mean(x, {-1}, true),
                  rstd = detail::rstd_of(mean(square(centred), {-1}, true), unsqueeze(in[3], -1));
      const Array y = centred * rstd, g = flags_ & detail::LAYER_NORM_SCALE ? dy * in[4] : dy;
      std::vector<Array> results;
      if (flags_ & detail::LAYER_NORM_DSRC)
        results.push_back(detail::as_dtype(rstd * (g - mean(g, {-1}, true) - y * mean(g * y, {-1}, true)), dtype));
      const Shape columns{x.shape().back()};
      if (flags_ & detail::LAYER_NORM_DSCALE)
        results.insert(results.end(), {sum_to(dy * y, columns), sum_to(dy, columns)});
      return results;
    });
  }

 private:
  int flags_;
};

// Inputs src and, by flags, scale, shift; results y, mean, rstd.
class LayerNorm final : public detail::Op, public detail::Written {
 public:
  LayerNorm(int flags, float eps) : flags_(flags), eps_(eps) {}
  std::string_view name() const override { return "layer_norm"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(std::uint64_t(flags_));
    hasher.add(double{eps_});
  }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const std::int64_t rows = run.src_shape(0).rows();
    const std::int64_t block = run.constant("layer_norm", "LAYER_NORM_ROWS", real);
    run.kernel("layer_norm_fwd", dtype)
        .args(run.src(0), flags_ & detail::LAYER_NORM_SCALE ? run.src(1) : Launch::none(),
              flags_ & detail::LAYER_NORM_SHIFT ? run.src(flags_ & detail::LAYER_NORM_SCALE ? 2 : 1) : Launch::none(),
              run.dst(0), run.dst(1), run.dst(2), static_cast<int>(run.src_shape(0).back()), double{eps_}, flags_)
        .cpu_args(rows)
        .over_tiles((rows + block - 1) / block, 1, 1, kLayerNormItems, 1);
  }

  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array& src = request.src[0];
    std::vector<Array> result(request.src.size());
    const int scale_at = flags_ & detail::LAYER_NORM_SCALE ? 1 : 0;
    const int shift_at = flags_ & detail::LAYER_NORM_SHIFT ? scale_at + 1 : 0;
    const bool with_dx = request.wanted[0];
    const bool with_dscale = (scale_at && request.wanted[scale_at]) || (shift_at && request.wanted[shift_at]);
    if (src.size() == 0) {  // nothing is launched for an empty dx, and sums over no rows are zero
      for (std::size_t i = 0; i < result.size(); ++i) result[i] = zeros(request.src[i].shape(), request.src[i].dtype());
      return result;
    }
    if (!with_dx && !with_dscale) return result;
    std::vector<Array> inputs = {src, request.dy[0], request.dst[1], request.dst[2]};
    if (scale_at) inputs.push_back(request.src[scale_at]);
    std::vector<detail::Result> results;
    if (with_dx) results.push_back({src.shape(), src.dtype()});
    if (with_dscale) results.insert(results.end(), 2, {Shape{src.shape().back()}, detail::real_of(src.dtype())});
    const int flags = (flags_ & detail::LAYER_NORM_SCALE) | (with_dx ? detail::LAYER_NORM_DSRC : 0) |
                      (with_dscale ? detail::LAYER_NORM_DSCALE : 0);
    const auto d = detail::make_arrays(detail::make_op<LayerNormGradient>(flags), results, inputs);
    if (with_dx) result[0] = d[0];
    if (scale_at && with_dscale) result[scale_at] = d[with_dx ? 1 : 0];
    if (shift_at && with_dscale) result[shift_at] = d[with_dx ? 2 : 1];
    return result;
  }
  void write(detail::NodeWriter& w) const override {
    const Dtype dtype = w.dtype(0);
    const std::int64_t n = w.shape(0).back();
    std::vector<detail::NodeWriter::Name> inputs{w.in(0)};
    for (std::size_t i = 1; i < w.count(); ++i) inputs.push_back(w.cast(w.in(i), w.dtype(i), dtype));
    if (!(flags_ & detail::LAYER_NORM_SCALE))
      inputs.insert(inputs.begin() + 1, w.numbers(std::vector<double>(static_cast<std::size_t>(n), 1.0), {n}, dtype));
    w.give(w.put("LayerNormalization", inputs, {{"axis", std::int64_t{-1}}, {"epsilon", double{eps_}}}));
  }

 private:
  int flags_;
  float eps_;
};

}  // namespace

const detail::CastRow kLayerNormCast{"layer_norm", CastRule::as_given};
Array layer_norm(const Input& src, const Input& scale, const Input& shift, float eps, int axis) {
  if (const detail::Casts cast(kLayerNormCast); cast) return layer_norm(cast(src), scale, shift, eps, axis);
  constexpr const char* kOp = "layer_norm";
  require(src.shape().rank() >= 1 && is_floating(src.dtype()), kOp, "src must be floating with at least one axis", src,
          "src");
  axis = detail::checked_axis(kOp, src, axis);
  if (axis + 1 < src.shape().rank())
    return detail::last_moved_to(layer_norm(detail::moved_last(src, axis), scale, shift, eps), axis);
  const Dtype real = src.dtype() == f64 ? f64 : f32;
  const std::string need =
      "the last axis of src " + detail::describe(src) + " needs one value each, of " + std::string(name_of(real));
  std::vector<Array> inputs = {src};
  int flags = 0;
  const auto add = [&](const Array& array, const char* name, int flag) {
    if (!array.defined()) return;
    require(array.shape() == Shape{src.shape().back()} && array.dtype() == real, kOp, need.c_str(), array, name);
    inputs.push_back(array);
    flags |= flag;
  };
  add(scale, "scale", detail::LAYER_NORM_SCALE);
  add(shift, "shift", detail::LAYER_NORM_SHIFT);
  if (src.shape().back() == 0) {  // rows of nothing, which gradients may pass all the same
    Array y = detail::as_value(src);
    if (scale.defined()) y = y * detail::as_dtype(scale, src.dtype());
    return shift.defined() ? y + detail::as_dtype(shift, src.dtype()) : y;
  }
  detail::require_ints(kOp, "values of a row", {src.shape().back()});
  const Shape rows(std::span<const std::int64_t>(src.shape().begin(), src.shape().end() - 1));
  const detail::Result results[] = {{src.shape(), src.dtype()}, {rows, real}, {rows, real}};
  return detail::make_arrays(detail::make_op<LayerNorm>(flags, eps), results, inputs)[0];
}

}  // namespace samebytes
