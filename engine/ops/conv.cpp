// Convolution of one to three axes, channels last, and its gradients (kernels: cl/*/conv.cl, cl/*/conv_filter.cl;
// groups of few channels: grouped.cpp; the bias gradient is a sum over pixels). Weights are packed into panels before
// the forward pass and the input gradient; the weight gradient sums a number of parts that the shape gives.
#include "ops/conv.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "ops/conv_geometry.h"
#include "samebytes/ops.h"

namespace samebytes::detail {
namespace {

// Functions of the shape only, so results do not change with the number of threads.
constexpr std::int64_t kEnoughGroups = 16;    // below it tiles are made smaller
constexpr std::int64_t kWantedGroups = 24;    // rows per group are chosen for as many
constexpr std::int64_t kMostRowTiles = 32;    // of the register tile, per group
constexpr std::int64_t kMostFilterRows = 64;  // input channels per group of the weight gradient
constexpr std::int64_t kMostFilterColumns = 128;
constexpr std::int64_t kEnoughGpuGroups = 256;
constexpr std::int64_t kGpuFilterPixels = 512;  // output pixels of a part of the weight gradient, at least
constexpr std::int64_t kLongestStrip = 384;     // pixels of a line that the weight gradient takes in one piece

int i32(std::int64_t v) { return static_cast<int>(v); }

// Rows and columns of the result per group: `rows` pixels by `columns` channels, `others` times over.
struct Tiles {
  std::int64_t m, n;
};
Tiles plan_tiles(const Launch& run, std::int64_t rows, std::int64_t columns, std::int64_t others, Dtype real) {
  if (!run.is_cpu()) return {run.constant("conv", "CONV_TILE_M", real), run.constant("conv", "CONV_TILE_N", real)};
  const std::int64_t mr = run.constant("conv", "CONV_MR", real), nr = run.constant("conv", "CONV_NR", real);
  const std::int64_t each = std::clamp<std::int64_t>(ceil_div(rows, mr) * others / kWantedGroups, 1, kMostRowTiles);
  Tiles t{each * mr, ceil_div(columns, nr) * nr};
  while (t.n > nr && ceil_div(rows, t.m) * ceil_div(columns, t.n) * others < kEnoughGroups)
    t.n = ceil_div(t.n / nr, 2) * nr;
  return t;
}

// How many neighbouring groups a cpu kernel takes as one: as many as fill half a panel, which is one vector of output
// channels. The products with the zeros between them cost no more than the empty lanes would.
std::int64_t bundle_of(const Launch& run, const ConvGeometry& g, std::int64_t columns, Dtype real) {
  if (!run.is_cpu() || g.groups() == 1) return 1;
  std::int64_t bundle = std::clamp<std::int64_t>(run.constant("conv", "CONV_NR", real) / 2 / columns, 1, g.groups());
  while (g.groups() % bundle != 0) --bundle;
  return bundle;
}

// Panels of the weights for the forward pass, or transposed for the input gradient.
Operand launch_pack(Launch& run, Operand weight, const ConvGeometry& g, std::int64_t bundle, bool transposed,
                    Dtype real) {
  const std::int64_t nr = run.constant("conv", "CONV_NR", real);
  const std::int64_t columns = bundle * (transposed ? g.c_group() : g.k_group()),
                     depth = bundle * (transposed ? g.k_group() : g.c_group());
  const std::int64_t panels = ceil_div(columns, nr), bundles = g.groups() / bundle;
  const Operand packed = run.temp(bundles * panels * g.taps() * depth * nr + depth, real);
  run.kernel("conv_pack_weights", real)
      .args(weight, packed, i32(g.taps()), i32(g.c_group()), i32(g.k_group()), g.a.groups, i32(bundle),
            transposed ? 1 : 0)
      .over_tiles(g.taps(), panels, bundles, 256, 1);
  return packed;
}

Cost conv_cost(const Shape& weight, const Shape& dst, std::span<const Shape> src, std::span<const Shape> results) {
  Cost cost;
  const std::int64_t pixels = dst.back() > 0 ? dst.size() / dst.back() : 0;
  cost.flops = 2.0 * static_cast<double>(weight.size()) * static_cast<double>(pixels);
  for (const Shape& s : src) cost.bytes += 4.0 * static_cast<double>(s.size());
  for (const Shape& s : results) cost.bytes += 4.0 * static_cast<double>(s.size());
  return cost;
}

class ConvOp : public Op {
 public:
  ConvOp(const ConvAttributes& attributes, const char* suffix)
      : a_(attributes), name_("conv" + std::to_string(attributes.axes) + "d" + suffix) {}
  std::string_view name() const override { return name_; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(a_.axes));
    for (const auto& values : {a_.stride, a_.pad, a_.dilation})
      for (int axis = 0; axis < 3; ++axis) hasher.add(static_cast<std::uint64_t>(values[axis]));
    hasher.add(static_cast<std::uint64_t>(a_.groups));
  }

 protected:
  ConvAttributes a_;

 private:
  std::string name_;
};

// dy, weight and perhaps bias -> dx
class ConvInput final : public ConvOp {
 public:
  explicit ConvInput(const ConvAttributes& attributes) : ConvOp(attributes, "_bwd_input") {}
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(src[1], src[0], src, dst);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const ConvGeometry g(run.dst_shape(), run.src_shape(1), run.src_shape(0), a_);
    const bool has_bias = run.src_count() > 2;
    const Operand bias = has_bias ? run.src(2) : Launch::none();
    if (is_grouped(run, g)) return launch_grouped_bwd_input(run, g, bias);
    const std::int64_t bundle = bundle_of(run, g, g.c_group(), real);
    const ConvGeometry b = g.bundled(bundle);
    const Operand packed = launch_pack(run, run.src(1), g, bundle, true, real);
    // The cpu kernel takes the input pixels phase by phase, so that a stride wastes no work.
    const std::int64_t phases = run.is_cpu() ? b.phases() : 1;
    const std::int64_t rows = run.is_cpu() ? b.phase_pixels() : b.in_pixels();
    const Tiles t = plan_tiles(run, rows, b.c_group(), phases * b.groups(), real);
    KernelCall call = run.kernel("conv_bwd_input", real);
    call.args(run.src(0), packed, bias, run.dst());
    b.add_to(call, has_bias ? kConvBias : 0);
    call.args(i32(t.m), i32(t.n)).over_tiles(ceil_div(rows, t.m) * ceil_div(b.c_group(), t.n), phases, b.groups());
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
};

// src, dy -> gradient of the weight
class ConvFilter final : public ConvOp {
 public:
  explicit ConvFilter(const ConvAttributes& attributes) : ConvOp(attributes, "_bwd_filter") {}
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(dst[0], src[1], src, dst);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const ConvGeometry whole(run.src_shape(0), run.dst_shape(), run.src_shape(1), a_);
    if (is_grouped(run, whole)) return launch_grouped_bwd_filter(run, whole);
    const std::int64_t bundle = bundle_of(run, whole, whole.k_group(), real);
    const ConvGeometry g = whole.bundled(bundle);
    const std::int64_t ow = g.out[2], strip = ceil_div(ow, ceil_div(ow, kLongestStrip));
    const std::int64_t strips = g.n * g.out[0] * g.out[1] * ceil_div(ow, strip);
    Tiles t{};
    std::int64_t step, wanted, others;
    if (run.is_cpu()) {
      const std::int64_t mr = run.constant("conv_filter", "CONV_FILTER_MR", real),
                         nr = run.constant("conv_filter", "CONV_FILTER_NR", real);
      t = {std::min(ceil_div(g.c_group(), mr) * mr, kMostFilterRows),
           std::min(ceil_div(g.k_group(), nr) * nr, kMostFilterColumns)};
      others = ceil_div(g.c_group(), t.m) * ceil_div(g.k_group(), t.n);
      step = std::max<std::int64_t>(1, run.constant("conv_filter", "CONV_FILTER_PIXELS", real) / strip);
      wanted = ceil_div(kEnoughGroups, std::min(kEnoughGroups, others * g.groups()));
    } else {
      t = {run.constant("conv_filter", "CONV_FILTER_TILE_M", real),
           run.constant("conv_filter", "CONV_FILTER_TILE_N", real)};
      others = ceil_div(g.taps() * g.c_group(), t.m) * ceil_div(g.k_group(), t.n);
      step = std::max<std::int64_t>(1, kGpuFilterPixels / strip);
      wanted = ceil_div(kEnoughGpuGroups, others * g.groups());
    }
    const std::int64_t blocks = ceil_div(strips, step);
    const std::int64_t strips_per_split = ceil_div(blocks, std::clamp<std::int64_t>(wanted, 1, blocks)) * step;
    const std::int64_t splits = ceil_div(strips, strips_per_split), total = run.dst_shape().size() * bundle;
    const Operand part = splits > 1 || bundle > 1 ? run.temp(splits * total, real) : run.dst();
    KernelCall call = run.kernel("conv_filter_bwd", real);
    call.args(run.src(0), run.src(1), part);
    g.add_to(call, 0);
    call.args(i32(strip), i32(strips_per_split), i32(t.m), i32(t.n)).over_tiles(splits, others, g.groups());
    if (bundle > 1)
      run.kernel("conv_filter_unbundle", real)
          .args(part, run.dst(), i32(g.taps()), i32(whole.c_group()), i32(g.k), i32(whole.k_group()), i32(bundle),
                i32(splits))
          .over_tiles(g.taps() * whole.c_group(), 1, 1, 64, 1);
    else if (splits > 1)
      launch_filter_reduce(run, part, splits);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
};

// src, weight and perhaps bias -> dst
class Conv final : public ConvOp {
 public:
  explicit Conv(const ConvAttributes& attributes) : ConvOp(attributes, "") {}
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(src[1], dst[0], src, dst);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const ConvGeometry g(run.src_shape(0), run.src_shape(1), run.dst_shape(), a_);
    const bool has_bias = run.src_count() > 2;
    const Operand bias = has_bias ? run.src(2) : Launch::none();
    if (is_grouped(run, g)) return launch_grouped_fwd(run, g, bias);
    const std::int64_t bundle = bundle_of(run, g, g.k_group(), real), rows = g.out_pixels();
    const ConvGeometry b = g.bundled(bundle);
    const Operand packed = launch_pack(run, run.src(1), g, bundle, false, real);
    const Tiles t = plan_tiles(run, rows, b.k_group(), b.groups(), real);
    KernelCall call = run.kernel("conv_fwd", real);
    call.args(run.src(0), packed, bias, run.dst());
    b.add_to(call, has_bias ? kConvBias : 0);
    call.args(i32(t.m), i32(t.n)).over_tiles(ceil_div(rows, t.m) * ceil_div(b.k_group(), t.n), 1, b.groups());
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
};

// The gradient of a bias: the sum over everything but the channels.
Array sum_of_pixels(const Array& dy) {
  return sum(reshape(dy, Shape{dy.size() / dy.shape().back(), dy.shape().back()}), {0});
}

std::vector<Array> Conv::gradient(const GradientRequest& g) const {
  std::vector<Array> result(g.src.size());
  if (g.wanted[0]) result[0] = conv_bwd_input(g.dy[0], g.src[1], {}, g.src[0].shape(), a_);
  if (g.wanted[1]) result[1] = conv_bwd_filter(g.src[0], g.dy[0], g.src[1].shape(), a_);
  if (g.src.size() > 2 && g.wanted[2]) result[2] = sum_of_pixels(g.dy[0]);
  return result;
}

std::vector<Array> ConvInput::gradient(const GradientRequest& g) const {  // of (dy, weight, bias) -> dx
  std::vector<Array> result(g.src.size());
  if (g.wanted[0]) result[0] = conv_forward(g.dy[0], g.src[1], {}, g.src[0].shape(), a_);
  if (g.wanted[1]) result[1] = conv_bwd_filter(g.dy[0], g.src[0], g.src[1].shape(), a_);
  if (g.src.size() > 2 && g.wanted[2]) result[2] = sum_of_pixels(g.dy[0]);
  return result;
}

std::vector<Array> ConvFilter::gradient(const GradientRequest& g) const {  // of (src, dy) -> dw
  std::vector<Array> result(2);
  if (g.wanted[0]) result[0] = conv_bwd_input(g.src[1], g.dy[0], {}, g.src[0].shape(), a_);
  if (g.wanted[1]) result[1] = conv_forward(g.src[0], g.dy[0], {}, g.src[1].shape(), a_);
  return result;
}

std::vector<Array> with_bias(const Array& a, const Array& b, const Array& bias) {
  std::vector<Array> inputs{a, b};
  if (bias) inputs.push_back(bias);
  return inputs;
}

}  // namespace

void launch_filter_reduce(Launch& run, Operand part, std::int64_t splits) {
  const Dtype real = run.dst_dtype();
  const std::int64_t total = run.dst_shape().size();
  run.kernel("conv_filter_reduce", real)
      .args(part, run.dst(), total, i32(splits), 0)
      .over_tiles(ceil_div(total, run.constant("conv_filter", "CONV_FILTER_REDUCE_BLOCK", real)), 1, 1, 256, 1);
}

std::int64_t conv_size(std::int64_t in, std::int64_t kernel, int stride, int pad, int dilation) {
  const std::int64_t span = dilation * (kernel - 1) + 1, padded = in + 2 * std::int64_t{pad};
  return padded < span ? 0 : (padded - span) / stride + 1;
}

Array conv_forward(const Array& src, const Array& weight, const Array& bias, const Shape& dst,
                   const ConvAttributes& a) {
  return make_array(make_op<Conv>(a), dst, src.dtype(), with_bias(src, weight, bias));
}

Array conv_bwd_input(const Array& dy, const Array& weight, const Array& bias, const Shape& src,
                     const ConvAttributes& a) {
  return make_array(make_op<ConvInput>(a), src, dy.dtype(), with_bias(dy, weight, bias));
}

Array conv_bwd_filter(const Array& src, const Array& dy, const Shape& weight, const ConvAttributes& a) {
  return make_array(make_op<ConvFilter>(a), weight, dy.dtype(), with_bias(src, dy, {}));
}

}  // namespace samebytes::detail
