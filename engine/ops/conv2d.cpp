// Two-dimensional convolution, channels last, and its three gradients (kernels: cl/*/conv2d.cl; the bias gradient is a
// sum over pixels). Weights are packed into panels before the forward pass and the input gradient; the weight gradient
// sums a number of parts that the shape gives.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "graph/launch.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

constexpr int kBias = 2;  // CONV2D_BIAS of conv2d.cl

// Functions of the shape only, so results do not change with the number of threads.
constexpr std::int64_t kEnoughGroups = 16;    // below it tiles are made smaller
constexpr std::int64_t kWantedGroups = 24;    // rows per group are chosen for as many
constexpr std::int64_t kMostRowTiles = 32;    // of the register tile, per group
constexpr std::int64_t kMostFilterRows = 64;  // input channels per group of the weight gradient
constexpr std::int64_t kMostFilterColumns = 128;
constexpr std::int64_t kEnoughGpuGroups = 256;
constexpr std::int64_t kGpuFilterPixels = 512;  // output pixels of a part of the weight gradient, at least

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Geometry2d {
  std::int64_t n, h, w, c, oh, ow, co, kh, kw;
  Conv2dOptions o;
  std::int64_t ci_group() const { return c / o.groups; }
  std::int64_t co_group() const { return co / o.groups; }
};

Geometry2d geometry_of(const Shape& src, const Shape& weight, const Shape& dst, const Conv2dOptions& options) {
  return {src[0], src[1], src[2], src[3], dst[1], dst[2], dst[3], weight[0], weight[1], options};
}

std::int64_t out_size(std::int64_t in, std::int64_t kernel, int stride, int pad, int dilation) {
  const std::int64_t span = dilation * (kernel - 1) + 1;
  return in + 2 * pad < span ? 0 : (in + 2 * pad - span) / stride + 1;
}

int i32(std::int64_t v) { return static_cast<int>(v); }

void add_geometry(KernelCall& call, const Geometry2d& g, int flags) {
  call.args(i32(g.n), i32(g.h), i32(g.w), i32(g.c), i32(g.oh), i32(g.ow), i32(g.co), i32(g.kh), i32(g.kw), g.o.stride_h,
            g.o.stride_w, g.o.pad_h, g.o.pad_w, g.o.dilation_h, g.o.dilation_w, g.o.groups, flags);
}

// Rows and columns of the result per group: `rows` pixels by `columns` channels, `others` times over.
struct Tiles {
  std::int64_t m, n;
};
Tiles plan_tiles(const Launch& run, std::int64_t rows, std::int64_t columns, std::int64_t others, Dtype real) {
  if (!run.is_cpu())
    return {run.constant("conv2d", "CONV2D_TILE_M", real), run.constant("conv2d", "CONV2D_TILE_N", real)};
  const std::int64_t mr = run.constant("conv2d", "CONV2D_MR", real), nr = run.constant("conv2d", "CONV2D_NR", real);
  const std::int64_t each = std::clamp<std::int64_t>(ceil_div(rows, mr) * others / kWantedGroups, 1, kMostRowTiles);
  Tiles t{each * mr, ceil_div(columns, nr) * nr};
  while (t.n > nr && ceil_div(rows, t.m) * ceil_div(columns, t.n) * others < kEnoughGroups)
    t.n = ceil_div(t.n / nr, 2) * nr;
  return t;
}

// Panels of the weights for the forward pass, or transposed for the input gradient.
Operand launch_pack(Launch& run, Operand weight, const Geometry2d& g, bool transposed, Dtype real) {
  const std::int64_t nr = run.constant("conv2d", "CONV2D_NR", real), taps = g.kh * g.kw;
  const std::int64_t columns = transposed ? g.ci_group() : g.co_group(),
                     depth = transposed ? g.co_group() : g.ci_group();
  const std::int64_t panels = ceil_div(columns, nr);
  const Operand packed = run.temp(g.o.groups * panels * taps * depth * nr + depth, real);
  run.kernel("conv2d_pack_weights", real)
      .args(weight, packed, i32(taps), i32(g.ci_group()), i32(g.co_group()), g.o.groups, transposed ? 1 : 0)
      .over_tiles(taps, panels, g.o.groups, 256, 1);
  return packed;
}

Cost conv_cost(const Shape& weight, const Shape& dst, std::span<const Shape> src, std::span<const Shape> results) {
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(weight.size()) * static_cast<double>(dst[0] * dst[1] * dst[2]);
  for (const Shape& s : src) cost.bytes += 4.0 * static_cast<double>(s.size());
  for (const Shape& s : results) cost.bytes += 4.0 * static_cast<double>(s.size());
  return cost;
}

class Conv2dOp : public Op {
 public:
  explicit Conv2dOp(const Conv2dOptions& options) : options_(options) {}
  void hash(Hasher& hasher) const override {
    const auto& o = options_;
    for (const int v : {o.stride_h, o.stride_w, o.pad_h, o.pad_w, o.dilation_h, o.dilation_w, o.groups})
      hasher.add(static_cast<std::uint64_t>(v));
  }

 protected:
  Conv2dOptions options_;
};

// dy [N, OH, OW, K], weight -> dx of the shape of src
class Conv2dInput final : public Conv2dOp {
 public:
  using Conv2dOp::Conv2dOp;
  std::string_view name() const override { return "conv2d_bwd_input"; }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(src[1], src[0], src, dst);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const Geometry2d g = geometry_of(run.dst_shape(), run.src_shape(1), run.src_shape(0), options_);
    const Operand packed = launch_pack(run, run.src(1), g, true, real);
    // The cpu kernel takes the input pixels phase by phase, so that a stride wastes no work.
    const std::int64_t phases = run.is_cpu() ? options_.stride_h * options_.stride_w : 1;
    const std::int64_t rows =
        run.is_cpu() ? g.n * ceil_div(g.h, options_.stride_h) * ceil_div(g.w, options_.stride_w) : g.n * g.h * g.w;
    const Tiles t = plan_tiles(run, rows, g.ci_group(), phases * options_.groups, real);
    KernelCall call = run.kernel("conv2d_bwd_input", real);
    call.args(run.src(0), packed, run.dst());
    add_geometry(call, g, 0);
    call.args(i32(t.m), i32(t.n))
        .over_tiles(ceil_div(rows, t.m) * ceil_div(g.ci_group(), t.n), phases, options_.groups);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
};

// src, dy -> gradient of the weight [kh, kw, C / groups, K]
class Conv2dFilter final : public Conv2dOp {
 public:
  using Conv2dOp::Conv2dOp;
  std::string_view name() const override { return "conv2d_bwd_filter"; }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(dst[0], src[1], src, dst);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const Geometry2d g = geometry_of(run.src_shape(0), run.dst_shape(), run.src_shape(1), options_);
    const std::int64_t rows = g.n * g.oh, taps = g.kh * g.kw;
    Tiles t{};
    std::int64_t step, wanted, others;
    if (run.is_cpu()) {
      const std::int64_t mr = run.constant("conv2d", "CONV2D_FILTER_MR", real),
                         nr = run.constant("conv2d", "CONV2D_NR", real);
      t = {std::min(ceil_div(g.ci_group(), mr) * mr, kMostFilterRows),
           std::min(ceil_div(g.co_group(), nr) * nr, kMostFilterColumns)};
      others = ceil_div(g.ci_group(), t.m) * ceil_div(g.co_group(), t.n);
      step = std::max<std::int64_t>(1, run.constant("conv2d", "CONV2D_FILTER_PIXELS", real) / g.ow);
      wanted = ceil_div(kEnoughGroups, std::min(kEnoughGroups, others * options_.groups));
    } else {
      t = {run.constant("conv2d", "CONV2D_FILTER_TILE_M", real), run.constant("conv2d", "CONV2D_FILTER_TILE_N", real)};
      others = ceil_div(taps * g.ci_group(), t.m) * ceil_div(g.co_group(), t.n);
      step = std::max<std::int64_t>(1, kGpuFilterPixels / g.ow);
      wanted = ceil_div(kEnoughGpuGroups, others * options_.groups);
    }
    const std::int64_t blocks = ceil_div(rows, step);
    const std::int64_t rows_per_split = ceil_div(blocks, std::clamp<std::int64_t>(wanted, 1, blocks)) * step;
    const std::int64_t splits = ceil_div(rows, rows_per_split), total = run.dst_shape().size();
    const Operand part = splits > 1 ? run.temp(splits * total, real) : run.dst();
    KernelCall call = run.kernel("conv2d_bwd_filter", real);
    call.args(run.src(0), run.src(1), part);
    add_geometry(call, g, 0);
    call.args(i32(rows_per_split), i32(t.m), i32(t.n)).over_tiles(splits, others, options_.groups);
    if (splits > 1)
      run.kernel("conv2d_bwd_filter_reduce", real)
          .args(part, run.dst(), total, i32(splits), 0)
          .over_tiles(ceil_div(total, run.constant("conv2d", "CONV2D_REDUCE_BLOCK", real)), 1, 1, 256, 1);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
};

class Conv2d final : public Conv2dOp {
 public:
  using Conv2dOp::Conv2dOp;
  std::string_view name() const override { return "conv2d"; }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(src[1], dst[0], src, dst);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const Geometry2d g = geometry_of(run.src_shape(0), run.src_shape(1), run.dst_shape(), options_);
    const Operand packed = launch_pack(run, run.src(1), g, false, real);
    const std::int64_t rows = g.n * g.oh * g.ow;
    const Tiles t = plan_tiles(run, rows, g.co_group(), options_.groups, real);
    const bool has_bias = run.src_count() > 2;
    KernelCall call = run.kernel("conv2d_fwd", real);
    call.args(run.src(0), packed, has_bias ? run.src(2) : Launch::none(), run.dst());
    add_geometry(call, g, has_bias ? kBias : 0);
    call.args(i32(t.m), i32(t.n)).over_tiles(ceil_div(rows, t.m) * ceil_div(g.co_group(), t.n), 1, options_.groups);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
};

// The three passes are the partial derivatives of one trilinear form, so the gradient of each is made of the other two.
Array bwd_input(const Array& dy, const Array& weight, const Shape& src, const Conv2dOptions& options) {
  const std::array<Array, 2> inputs{dy, weight};
  return make_array(make_op<Conv2dInput>(options), src, dy.dtype(), inputs);
}
Array bwd_filter(const Array& src, const Array& dy, const Shape& weight, const Conv2dOptions& options) {
  const std::array<Array, 2> inputs{src, dy};
  return make_array(make_op<Conv2dFilter>(options), weight, dy.dtype(), inputs);
}

std::vector<Array> Conv2d::gradient(const GradientRequest& g) const {
  std::vector<Array> result(g.src.size());
  if (g.wanted[0]) result[0] = bwd_input(g.dy[0], g.src[1], g.src[0].shape(), options_);
  if (g.wanted[1]) result[1] = bwd_filter(g.src[0], g.dy[0], g.src[1].shape(), options_);
  if (g.src.size() > 2 && g.wanted[2]) result[2] = sum(g.dy[0], {0, 1, 2});
  return result;
}

std::vector<Array> Conv2dInput::gradient(const GradientRequest& g) const {  // of (dy, weight) -> dx
  std::vector<Array> result(2);
  if (g.wanted[0]) result[0] = conv2d(g.dy[0], g.src[1], {}, options_);
  if (g.wanted[1]) result[1] = bwd_filter(g.dy[0], g.src[0], g.src[1].shape(), options_);
  return result;
}

std::vector<Array> Conv2dFilter::gradient(const GradientRequest& g) const {  // of (src, dy) -> dw
  std::vector<Array> result(2);
  if (g.wanted[0]) result[0] = bwd_input(g.src[1], g.dy[0], g.src[0].shape(), options_);
  if (g.wanted[1]) result[1] = conv2d(g.src[0], g.dy[0], {}, options_);
  return result;
}

void check_options(const Conv2dOptions& o) {
  const auto positive = [](int v, const char* name) {
    if (v < 1)
      throw ArgumentError(std::string("conv2d: ") + name + " must be 1 or more, " + std::to_string(v) + " came");
  };
  positive(o.stride_h, "stride_h");
  positive(o.stride_w, "stride_w");
  positive(o.dilation_h, "dilation_h");
  positive(o.dilation_w, "dilation_w");
  positive(o.groups, "groups");
  if (o.pad_h < 0 || o.pad_w < 0)
    throw ArgumentError("conv2d: pad_h and pad_w must be 0 or more, " + std::to_string(o.pad_h) + " and " +
                        std::to_string(o.pad_w) + " came");
}

Dtype widest(const Array& src, const Array& weight, const Array& bias) {
  const auto wider = [](Dtype a, Dtype b) {
    return a == b ? a : a == Dtype::f64 || b == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  };
  const Dtype dtype = wider(src.dtype(), weight.dtype());
  return bias ? wider(dtype, bias.dtype()) : dtype;
}

Array as(const Array& a, Dtype dtype) { return !a || a.dtype() == dtype ? a : astype(a, dtype); }

}  // namespace
}  // namespace detail

Array conv2d(const Array& src, const Array& weight, const Array& bias, const Conv2dOptions& options) {
  using detail::require;
  require(src && is_floating(src.dtype()) && src.shape().rank() == 4, "conv2d", "src must be floating [N, H, W, C]",
          src, "src");
  require(weight && is_floating(weight.dtype()) && weight.shape().rank() == 4, "conv2d",
          "weight must be floating [kh, kw, C / groups, K]", weight, "weight");
  detail::check_options(options);
  const Shape &s = src.shape(), &w = weight.shape();
  const std::string both = "src is " + detail::describe(src) + ", weight is " + detail::describe(weight);
  if (s[3] % options.groups != 0 || w[3] % options.groups != 0)
    throw ArgumentError("conv2d: the channels must divide into " + std::to_string(options.groups) + " groups, " + both);
  if (w[2] * options.groups != s[3])
    throw ArgumentError("conv2d: weight must have " + std::to_string(s[3] / options.groups) +
                        " input channels per group, " + both);
  if (bias)
    require(is_floating(bias.dtype()) && bias.shape() == Shape{w[3]}, "conv2d", "bias must be floating [K]", bias,
            "bias");
  const Shape dst{s[0], detail::out_size(s[1], w[0], options.stride_h, options.pad_h, options.dilation_h),
                  detail::out_size(s[2], w[1], options.stride_w, options.pad_w, options.dilation_w), w[3]};
  if (w[0] < 1 || w[1] < 1 || dst[1] < 1 || dst[2] < 1)
    throw ArgumentError("conv2d: the kernel must fit into the padded image, " + both);
  // Pixel and channel indices are ints in the kernels, offsets within fourteen images, too.
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 16;
  if (s[0] * s[1] * s[2] > most * 16 || dst[0] * dst[1] * dst[2] > most * 16 || s[1] * s[2] * s[3] > most ||
      dst[1] * dst[2] * dst[3] > most)
    throw ArgumentError("conv2d: an image of more than 2^27 values or a batch of more than 2^31 pixels is too large, " +
                        both);

  const Dtype dtype = detail::widest(src, weight, bias), real = detail::real_of(dtype);
  if (dtype != real || src.dtype() != real || weight.dtype() != real || (bias && bias.dtype() != real)) {
    // 16-bit operands are widened; the result is rounded once.
    return detail::as(conv2d(detail::as(src, real), detail::as(weight, real), detail::as(bias, real), options), dtype);
  }
  if (src.size() == 0 || weight.size() == 0) {
    const Array nothing = zeros(dst, dtype);
    return bias ? nothing + bias : nothing;
  }
  std::vector<Array> inputs{src, weight};
  if (bias) inputs.push_back(bias);
  return detail::make_array(detail::make_op<detail::Conv2d>(options), dst, dtype, inputs);
}

}  // namespace samebytes
