// Group normalisation (Wu and He 2018) and instance normalisation (Ulyanov et al. 2016). Kernels: cl/*/group_norm.cl,
// and the statistics of cl/*/batch_norm.cl for each image. Forward three launches: statistics by parts, their merge to
// groups, one pass over the elements; one more updates running statistics in place. The gradient is three launches of
// the same kinds, and two sums over the images for those of scale and shift.
#include <string>

#include "graph/autocast.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/batch_norm.h"
#include "ops/dtypes.h"
#include "ops/formula.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "shared/norm.h"

namespace samebytes {
namespace {

using detail::ColumnLayout;
using detail::Launch;
using detail::Operand;
using detail::require;

// The local size that the GPU kernels require.
constexpr int kGroupNormItems = 64;

// Channels of a group of group_norm_running.
constexpr detail::PerPersonality<std::int64_t (*)(const Launch&, Dtype)> kRunningBlock{
    [](const Launch& run, Dtype real) -> std::int64_t { return run.device().vector_width(real); },
    [](const Launch&, Dtype) -> std::int64_t { return kGroupNormItems; }};

// src [N, ..., C] as N images.
struct Images {
  std::int64_t count;
  ColumnLayout at;
  Images(const Launch& run, const Shape& shape, Dtype real)
      : count(shape[0]), at(run, shape.size() / shape[0], shape.back(), real, shape[0]) {}
  // Work-groups of a merge kernel.
  std::int64_t mergers(const Launch& run, int groups, Dtype real) const {
    return run.constant("group_norm", "GROUP_NORM_EACH", real) != 0 ? count * groups : count;
  }
};

// Inputs src, dy, mean, rstd and, with GROUP_NORM_SCALE, scale; results dscale, dshift [N, C] and, with
// GROUP_NORM_DSRC, dx.
class GroupNormGradient final : public detail::Op {
 public:
  // mean and rstd are functions of src here.
  GroupNormGradient(int groups, int flags) : Op({.is_flat = {2, 3}}), groups_(groups), flags_(flags) {}
  std::string_view name() const override { return "group_norm_gradient"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(std::uint64_t(groups_));
    hasher.add(std::uint64_t(flags_));
  }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const Images images(run, run.src_shape(0), real);
    const ColumnLayout& at = images.at;
    const bool with_dx = flags_ & detail::GROUP_NORM_DSRC;
    const Operand part = run.temp(images.count * 2 * at.parts * at.wide, real);
    const Operand coef = with_dx ? run.temp(images.count * 4 * at.coef_row, real) : Launch::none();
    run.kernel("batch_norm_bwd_stats", dtype)
        .args(run.src(0), run.src(1), run.src(2), Launch::none(), Launch::none(), Launch::none(), part, at.total,
              at.wide, at.channels, at.rows_per_part, 0)
        .over_tiles(at.parts, at.blocks, images.count, ColumnLayout::kStatsX, ColumnLayout::kStatsY);
    run.kernel("group_norm_bwd_merge", real)
        .args(part, flags_ & detail::GROUP_NORM_SCALE ? run.src(4) : Launch::none(), run.src(2), run.src(3), run.dst(0),
              run.dst(1), coef, at.total, at.wide, at.channels, groups_, at.parts, at.coef_row, flags_)
        .over_tiles(images.mergers(run, groups_, real), 1, 1, kGroupNormItems, 1);
    if (with_dx) {
      const std::int64_t all = run.src_shape(0).size();
      run.kernel("group_norm_bwd_apply", dtype)
          .args(run.src(0), run.src(1), coef, run.dst(2), all, at.total, at.span, at.coef_row)
          .over_elements(all);
    }
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    return detail::formula_gradient(request, [this](std::span<const Array> in) {
      const Shape& shape = in[0].shape();
      const Dtype dtype = in[0].dtype(), real = detail::real_of(dtype);
      const std::int64_t images = shape[0], channels = shape.back(), each = channels / groups_;
      const std::int64_t pixels = shape.size() / images / channels;
      const auto apart = [&](const Array& a) {
        return reshape(detail::as_dtype(a, real), {images, pixels, groups_, each});
      };
      const auto over_group = [](const Array& a) { return mean(a, {1, 3}, true); };
      const Array x = apart(in[0]), dy = apart(in[1]), centred = x - over_group(x);
      const Array statistic = slice(reshape(in[3], {images, 1, groups_, each}), 3, 0, 1);  // the same in a group
      const Array rstd = detail::rstd_of(over_group(square(centred)), statistic);
      const Array y = centred * rstd;
      const Shape per_image{images, channels};
      std::vector<Array> results{reshape(sum(dy * y, {1}), per_image), reshape(sum(dy, {1}), per_image)};
      if (flags_ & detail::GROUP_NORM_DSRC) {
        const Array g = flags_ & detail::GROUP_NORM_SCALE ? dy * reshape(in[4], {groups_, each}) : dy;
        results.push_back(reshape(detail::as_dtype(rstd * (g - over_group(g) - y * over_group(g * y)), dtype), shape));
      }
      return results;
    });
  }

 private:
  int groups_, flags_;
};

// Inputs src, by flags scale and shift, and where they are updated running_mean, running_var; results y, mean, rstd
// [N, C] and the updated statistics.
class GroupNorm final : public detail::Op, public detail::Written {
 public:
  GroupNorm(const char* name, int groups, int flags, double eps, double momentum, bool updates)
      : Op(traits_of(flags)),
        name_(name),
        groups_(groups),
        flags_(flags),
        eps_(eps),
        momentum_(momentum),
        updates_(updates) {}
  std::string_view name() const override { return name_; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(std::uint64_t(groups_));
    hasher.add(std::uint64_t(flags_));
    hasher.add(eps_);
    hasher.add(momentum_);
    hasher.add(std::uint64_t{updates_});
  }
  detail::OpPtr without_state() const override {
    return detail::make_op<GroupNorm>(name_, groups_, flags_, eps_, momentum_, false);
  }

  void launch(Launch& run) const override {
    const Dtype dtype = run.src_dtype(0), real = detail::real_of(dtype);
    const Images images(run, run.src_shape(0), real);
    const ColumnLayout& at = images.at;
    const std::int64_t all = run.src_shape(0).size();
    const Operand part = run.temp(images.count * 2 * at.parts * at.wide, real);
    const Operand coef = run.temp(images.count * 3 * at.coef_row, real);
    const Operand m2 = run.temp(images.count * at.channels, real);
    run.kernel("batch_norm_stats", dtype)
        .args(run.src(0), part, at.total, at.wide, at.channels, at.rows_per_part)
        .over_tiles(at.parts, at.blocks, images.count, ColumnLayout::kStatsX, ColumnLayout::kStatsY);
    run.kernel("group_norm_merge", dtype)
        .args(run.src(0), part, flags_ & detail::GROUP_NORM_SCALE ? run.src(1) : Launch::none(),
              flags_ & detail::GROUP_NORM_SHIFT ? run.src(flags_ & detail::GROUP_NORM_SCALE ? 2 : 1) : Launch::none(),
              run.dst(1), run.dst(2), m2, coef, at.total, at.wide, at.channels, groups_, at.parts, at.rows_per_part,
              at.coef_row, eps_, flags_)
        .over_tiles(images.mergers(run, groups_, real), 1, 1, kGroupNormItems, 1);
    if (updates_) {
      const std::int64_t block = run.pick(kRunningBlock)(run, real);
      run.kernel("group_norm_running", real)
          .args(run.dst(1), m2, run.dst(3), run.dst(4), static_cast<int>(images.count), at.channels,
                static_cast<int>(at.total / at.channels), momentum_)
          .over_tiles((at.channels + block - 1) / block, 1, 1, kGroupNormItems, 1);
    }
    run.kernel("group_norm_apply", dtype)
        .args(run.src(0), coef, run.dst(0), all, at.total, at.span, at.coef_row)
        .over_elements(all);
  }

  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array& src = request.src[0];
    std::vector<Array> result(request.src.size());
    const int scale_at = flags_ & detail::GROUP_NORM_SCALE ? 1 : 0;
    const int shift_at = flags_ & detail::GROUP_NORM_SHIFT ? scale_at + 1 : 0;
    const bool with_dx = request.wanted[0];
    std::vector<Array> inputs = {src, request.dy[0], request.dst[1], request.dst[2]};
    if (scale_at) inputs.push_back(request.src[static_cast<std::size_t>(scale_at)]);
    const Shape per_image{src.shape()[0], src.shape().back()};
    const Dtype real = detail::real_of(src.dtype());
    std::vector<detail::Result> results = {{per_image, real}, {per_image, real}};
    if (with_dx) results.push_back({src.shape(), src.dtype()});
    const int flags = (flags_ & detail::GROUP_NORM_SCALE) | (with_dx ? detail::GROUP_NORM_DSRC : 0);
    const auto d = detail::make_arrays(detail::make_op<GroupNormGradient>(groups_, flags), results, inputs);
    if (with_dx) result[0] = d[2];
    if (scale_at && request.wanted[scale_at]) result[static_cast<std::size_t>(scale_at)] = sum(d[0], {0});
    if (shift_at && request.wanted[shift_at]) result[static_cast<std::size_t>(shift_at)] = sum(d[1], {0});
    return result;
  }
  // Channels first, groups as the channels of InstanceNormalization.
  void write(detail::NodeWriter& w) const override {
    if (updates_) w.refuse("it updates running statistics; write the model in evaluation mode");
    const Dtype dtype = w.dtype(0);
    const Shape& shape = w.shape(0);
    const int rank = shape.rank();
    detail::NodeWriter::Ints first{0, rank - 1}, last{0};
    Shape turned{shape[0], shape.back()};
    for (int i = 1; i < rank - 1; ++i) {
      first.push_back(i);
      last.push_back(i + 1);
      turned.push_back(shape[i]);
    }
    last.push_back(1);
    const Shape grouped{shape[0], groups_, shape.size() / shape[0] / groups_};
    const std::vector<double> one(static_cast<std::size_t>(groups_), 1.0), zero(static_cast<std::size_t>(groups_), 0.0);
    const auto flat = w.reshaped(w.turned(w.in(0), first), grouped);
    const auto y =
        w.put("InstanceNormalization", {flat, w.numbers(one, {groups_}, dtype), w.numbers(zero, {groups_}, dtype)},
              {{"epsilon", eps_}});
    auto result = w.turned(w.reshaped(y, turned), last);
    const bool has_scale = flags_ & detail::GROUP_NORM_SCALE, has_shift = flags_ & detail::GROUP_NORM_SHIFT;
    if (has_scale) result = w.put("Mul", {result, w.cast(w.in(1), w.dtype(1), dtype)});
    const std::size_t shift = has_scale ? 2 : 1;
    if (has_shift) result = w.put("Add", {result, w.cast(w.in(shift), w.dtype(shift), dtype)});
    w.give(result);
  }

 private:
  // Running statistics are the last two inputs and results 3 and 4.
  static detail::OpTraits traits_of(int flags) {
    const int first_state = 1 + (flags & detail::GROUP_NORM_SCALE ? 1 : 0) + (flags & detail::GROUP_NORM_SHIFT ? 1 : 0);
    return {.is_state = detail::InputSet::from(first_state), .in_place = {.result = 3, .input = first_state}};
  }

  const char* name_;
  int groups_, flags_;
  double eps_, momentum_;
  bool updates_;
};

struct Statistics {
  Array mean, var;
  float momentum = 0;
};

Array normalise(const char* op, const Array& src, std::int64_t groups, const Array& scale, const Array& shift,
                float eps, const Statistics& running) {
  const Dtype real = src.dtype() == f64 ? f64 : f32;
  const Shape per_channel{src.shape().back()};
  const std::string need =
      "each channel of src " + detail::describe(src) + " needs one value, of " + std::string(name_of(real));
  std::vector<Array> inputs = {src};
  int flags = 0;
  const auto add = [&](const Array& array, const char* name, int flag) {
    if (!array.defined()) return;
    require(array.shape() == per_channel && array.dtype() == real, op, need.c_str(), array, name);
    inputs.push_back(array);
    flags |= flag;
  };
  add(scale, "scale", detail::GROUP_NORM_SCALE);
  add(shift, "shift", detail::GROUP_NORM_SHIFT);
  const bool updates = running.mean.defined() && is_grad_enabled() && !detail::keeps_statistics;
  if (running.mean.defined()) {
    const auto check = [&](const Array& array, const char* name) {
      require(array.defined() && array.shape() == per_channel && array.dtype() == real, op, need.c_str(), array, name);
      require(is_cell(array), op, "running statistics are overwritten, so they must be cells", array, name);
      if (updates) inputs.push_back(array);
    };
    check(running.mean, "running_mean");
    check(running.var, "running_var");
  }
  if (src.size() == 0) return src;  // nothing to normalise; the gradients of scale and shift are zero
  const Shape per_image{src.shape()[0], src.shape().back()};
  std::vector<detail::Result> results = {{src.shape(), src.dtype()}, {per_image, real}, {per_image, real}};
  if (updates) results.insert(results.end(), 2, {per_channel, real});
  const auto node =
      detail::make_op<GroupNorm>(op, static_cast<int>(groups), flags, double{eps}, double{running.momentum}, updates);
  return detail::make_arrays(node, results, inputs)[0];
}

}  // namespace

const detail::CastRow kGroupNormCast{"group_norm", CastRule::as_given};
Array group_norm(const Input& src, std::int64_t groups, const Input& scale, const Input& shift, float eps) {
  if (const detail::Casts cast(kGroupNormCast); cast) return group_norm(cast(src), groups, scale, shift, eps);
  constexpr const char* kOp = "group_norm";
  require(src.defined() && src.shape().rank() >= 2 && is_floating(src.dtype()), kOp,
          "src must be floating [N, ..., C] with channels in its last axis", src, "src");
  if (groups < 1 || src.shape().back() % groups != 0)
    throw ArgumentError("group_norm: groups must divide the channels, got " + std::to_string(groups) + ", src is " +
                        detail::describe(src));
  return normalise(kOp, src, groups, scale, shift, eps, {});
}

const detail::CastRow kInstanceNormCast{"instance_norm", CastRule::as_given};
Array instance_norm(const Input& src, const Input& scale, const Input& shift, const Input& running_mean,
                    const Input& running_var, const InstanceNormOptions& options) {
  if (const detail::Casts cast(kInstanceNormCast); cast)
    return instance_norm(cast(src), scale, shift, running_mean, running_var, options);
  constexpr const char* kOp = "instance_norm";
  require(src.defined() && src.shape().rank() >= 2 && is_floating(src.dtype()), kOp,
          "src must be floating [N, ..., C] with channels in its last axis", src, "src");
  const std::int64_t samples = src.shape()[0], channels = src.shape().back();
  require(src.size() == 0 || src.size() / samples / channels >= 2, kOp,
          "the variance needs at least two values per sample and channel", src, "src");
  if (running_mean.defined() != running_var.defined())
    throw ArgumentError("instance_norm: running_mean and running_var come together, running_mean is " +
                        detail::describe(running_mean) + ", running_var is " + detail::describe(running_var));
  return normalise(kOp, src, std::max<std::int64_t>(1, channels), scale, shift, options.eps,
                   {running_mean, running_var, options.momentum});
}

}  // namespace samebytes
