// Products and convolutions of 8-bit integers with frozen weights. Kernels: cl/*/int8.cl; layouts: cl/shared/int8.h.
// Over 400 lines because what packs weights, what multiplies them and what writes them into a file share their layout.
#include "samebytes/ops/int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/conv.h"
#include "ops/dtypes.h"
#include "ops/int8.h"
#include "ops/inverse.h"
#include "ops/sizes.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "shared/gemm.h"
#include "shared/int8.h"

namespace samebytes {
namespace detail {
namespace {

constexpr std::int64_t kMostProducts = 65536;  // of a sum: 255 * 127 of them fit 31 bits
constexpr std::int64_t kPartValues = 1 << 15;  // of a range, for one group
constexpr std::int64_t kMostParts = 64;
constexpr std::int64_t kQuantiseValues = 1 << 13;  // of a group of a CPU device, at least one line
constexpr std::int64_t kSpare = 64;                // bytes behind q that whole copies may read

std::int64_t padded(std::int64_t n, std::int64_t step) { return ceil_div(n, step) * step; }

// Where byte p of channel j stands in panels of `fours` fours.
std::size_t place_of(std::int64_t j, std::int64_t p, std::int64_t fours) {
  return static_cast<std::size_t>(((j / INT8_PANEL * fours + p / 4) * INT8_PANEL + j % INT8_PANEL) * 4 + p % 4);
}

// Where the convolution's windows lie; of a linear layer all 1 and 0.
struct Windows {
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1;
  bool is_point() const { return stride_h == 1 && stride_w == 1 && pad_h == 0 && pad_w == 0; }
};

// How a group of each personality takes part: rows and columns of the result.
struct Tile {
  std::int64_t rows, columns;
};
Tile cpu_tile(const Launch& run, std::int64_t rows, std::int64_t columns) {
  // Sums are exact, so the sharing may follow from the cores. Columns are cut last: each group gathers its own rows.
  constexpr std::int64_t kGroupsOfACore = 4;
  Tile tile{std::min(padded(rows, INT8_ROWS), run.constant("int8", "INT8_GROUP_ROWS")),
            std::min(padded(columns, INT8_COLUMNS), run.constant("int8", "INT8_GROUP_COLUMNS"))};
  const auto groups = [&] { return ceil_div(rows, tile.rows) * ceil_div(columns, tile.columns); };
  const std::int64_t enough = kGroupsOfACore * static_cast<std::int64_t>(run.cores());
  while (groups() < enough && (tile.rows > INT8_ROWS || tile.columns > INT8_COLUMNS)) {
    std::int64_t& side = tile.rows > INT8_ROWS ? tile.rows : tile.columns;
    side = padded(side / 2, INT8_ROWS);
  }
  return tile;
}
void cpu_product(const Launch& run, KernelCall& call, std::int64_t rows, std::int64_t columns) {
  const Tile tile = cpu_tile(run, rows, columns);
  call.args(i32_of(tile.rows), i32_of(tile.columns))
      .over_tiles(ceil_div(rows, tile.rows), ceil_div(columns, tile.columns));
}
void gpu_product(const Launch& run, KernelCall& call, std::int64_t rows, std::int64_t columns) {
  const std::int64_t tile = run.constant("int8", "INT8_TILE");
  call.over_tiles(ceil_div(rows, tile), ceil_div(columns, tile));
}
constexpr PerPersonality<void (*)(const Launch&, KernelCall&, std::int64_t, std::int64_t)> kProduct{cpu_product,
                                                                                                    gpu_product};
constexpr PerPersonality<std::int64_t> kQuantiseLines{kQuantiseValues, 1};  // values of a group, at least one line
constexpr PerPersonality<int> kRangeItems{1, 256};                          // INT8_ITEMS

// x [images, H, W, C] or [rows, K], panels, totals, scales, perhaps bias -> [images, OH, OW, N] or [rows, N].
class Int8Product final : public Op, public Written {
 public:
  Int8Product(const Windows& windows, int kernel_h, int kernel_w, const std::optional<Int8Range>& range)
      : Op({.is_flat = {1, 2}, .takes_epilogue = true, .takes_activation = true}),
        windows_(windows),
        kernel_h_(kernel_h),
        kernel_w_(kernel_w),
        range_(range) {}
  std::string_view name() const override { return "int8_product"; }
  void hash(Hasher& hasher) const override {
    for (const int value : {windows_.stride_h, windows_.stride_w, windows_.pad_h, windows_.pad_w, windows_.dilation_h,
                            windows_.dilation_w, kernel_h_, kernel_w_})
      hasher.add(static_cast<std::uint64_t>(value));
    hasher.add(std::uint64_t{range_.has_value()});
    if (range_)
      hasher.add(std::uint64_t{std::bit_cast<std::uint32_t>(range_->low)} << 32 |
                 std::bit_cast<std::uint32_t>(range_->high));
  }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    Cost cost;
    cost.flops = 2.0 * static_cast<double>(dst[0].size()) * static_cast<double>(src[0].back() * kernel_h_ * kernel_w_);
    cost.bytes = 4.0 * static_cast<double>(dst[0].size() + src[0].size()) + static_cast<double>(src[1].size());
    return cost;
  }

  void launch(Launch& run) const override {
    const int8_sizes s = sizes_of(run);
    const std::int64_t ranges = ceil_div(s.rows, s.rows_of_range);
    const bool in_place = s.row_bytes != 0;
    const std::int64_t bytes = in_place ? padded(s.rows, INT8_ROWS) * s.row_bytes : run.src_shape(0).size() + kSpare;
    const Operand q = run.temp(bytes, u8), scales = run.temp(2 * ranges, f32);
    launch_quantise(run, s, q, scales, ranges);
    const Epilogue& e = run.epilogue();
    const Operand bias = run.optional_src(4);
    int flags = (e.relu ? GEMM_RELU : 0) | (e.hard_swish ? GEMM_HARD_SWISH : 0) | (e.relu6 ? GEMM_RELU6 : 0);
    if (bias.kind != Operand::Kind::none) flags |= GEMM_BIAS;
    if (e.residual.kind != Operand::Kind::none) flags |= GEMM_RESIDUAL;
    KernelCall call = run.kernel("int8_product");
    call.args(q, scales, run.src(1), run.src(2), run.src(3), bias, e.residual, run.dst(), s, flags);
    run.pick(kProduct)(run, call, s.rows, s.n);
  }

  // As ONNX Runtime quantises: pairs of QuantizeLinear and DequantizeLinear around a floating operator.
  void write(NodeWriter& w) const override {
    if (!range_)
      w.refuse("a range for each row or image is not one of a file; quantize() with a calibration gives those");
    const float low = std::min(range_->low, 0.0F), high = std::max(range_->high, 0.0F), step = (high - low) / 255.0F;
    const auto scale = w.number(step > 0 ? step : 1, f32);
    const auto zero = w.number(step > 0 ? std::clamp(std::nearbyint(-low / step), 0.0F, 255.0F) : 0, u8);
    const bool is_image = w.shape(0).rank() == 4;
    const auto x = is_image ? w.turned(w.in(0), {0, 3, 1, 2}) : w.in(0);
    const auto weight =
        w.put("DequantizeLinear", {w.bytes(weight_of(w), weight_shape(w)), w.in(3)}, {{"axis", std::int64_t{0}}});
    std::vector<NodeWriter::Name> inputs{
        w.put("DequantizeLinear", {w.put("QuantizeLinear", {x, scale, zero}), scale, zero}), weight};
    if (w.count() > 4) inputs.push_back(w.in(4));
    if (!is_image) return w.give(w.put("Gemm", inputs, {{"transB", std::int64_t{1}}}));
    const Windows& v = windows_;
    const auto end = [&](int axis, int kernel, int stride, int pad, int dilation) {
      const std::int64_t in = w.shape(0)[axis], out = w.result()[axis];
      const std::int64_t read = (out - 1) * stride + std::int64_t{kernel - 1} * dilation + 1;
      return conv_size(in, kernel, stride, pad, dilation) == out ? std::int64_t{pad}
                                                                 : std::max<std::int64_t>(read - in - pad, 0);
    };
    const NodeWriter::Ints strides{v.stride_h, v.stride_w}, dilations{v.dilation_h, v.dilation_w},
        pads{v.pad_h, v.pad_w, end(1, kernel_h_, v.stride_h, v.pad_h, v.dilation_h),
             end(2, kernel_w_, v.stride_w, v.pad_w, v.dilation_w)};
    const auto y = w.put("Conv", inputs, {{"strides", strides}, {"pads", pads}, {"dilations", dilations}});
    w.give(w.turned(y, {0, 2, 3, 1}));
  }

 private:
  // W as ONNX has weights: [N, K], or [N, C, kh, kw].
  Shape weight_shape(const NodeWriter& w) const {
    const std::int64_t n = w.result().back(), c = w.shape(0).back();
    return w.shape(0).rank() == 4 ? Shape{n, c, kernel_h_, kernel_w_} : Shape{n, c};
  }
  std::vector<std::int8_t> weight_of(const NodeWriter& w) const {
    const auto panels = w.array(1).to_vector<std::uint8_t>();
    const std::int64_t n = w.result().back(), c = w.shape(0).back(), taps = std::int64_t{kernel_h_} * kernel_w_;
    const std::int64_t fours = padded(taps * c, INT8_K) / 4;
    std::vector<std::int8_t> values;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < c; ++i)
        for (std::int64_t t = 0; t < taps; ++t)
          values.push_back(static_cast<std::int8_t>(panels[place_of(j, t * c + i, fours)]));
    return values;
  }

  int8_sizes sizes_of(const Launch& run) const {
    const Shape &x = run.src_shape(0), &y = run.dst_shape();
    int8_sizes s{};
    s.n = i32_of(y.back());
    s.rows = i32_of(y.size() / y.back());
    s.c = i32_of(x.back());
    s.k = s.c * kernel_h_ * kernel_w_;
    s.padded_k = i32_of(padded(s.k, INT8_K));
    s.kernel_h = kernel_h_;
    s.kernel_w = kernel_w_;
    s.h = s.w = s.out_h = s.out_w = 1;
    if (x.rank() == 4) {
      s.h = i32_of(x[1]);
      s.w = i32_of(x[2]);
      s.out_h = i32_of(y[1]);
      s.out_w = i32_of(y[2]);
    }
    s.stride_h = windows_.stride_h;
    s.stride_w = windows_.stride_w;
    s.pad_h = windows_.pad_h;
    s.pad_w = windows_.pad_w;
    s.dilation_h = windows_.dilation_h;
    s.dilation_w = windows_.dilation_w;
    const bool is_point = kernel_h_ == 1 && kernel_w_ == 1 && windows_.is_point() && s.out_h == s.h && s.out_w == s.w;
    s.row_bytes = is_point ? s.padded_k : 0;
    s.rows_of_range = range_ ? s.rows : s.out_h * s.out_w;
    return s;
  }

  void launch_quantise(Launch& run, const int8_sizes& s, Operand q, Operand scales, std::int64_t ranges) const {
    const std::int64_t values = run.src_shape(0).size();
    int8_lines l{};
    l.length = s.row_bytes != 0 ? s.c : s.w * s.c;
    l.lines = i32_of(values / l.length);
    l.pitch = s.row_bytes != 0 ? s.row_bytes : l.length;
    l.lines_of_range = i32_of(l.lines / ranges);
    l.is_given = range_ ? 1 : 0;
    l.low = range_ ? range_->low : 0;
    l.high = range_ ? range_->high : 0;
    Operand ends = Launch::none();
    if (!range_ && l.lines_of_range > 1) {
      const std::int64_t span = values / ranges;
      l.parts = i32_of(std::clamp<std::int64_t>(ceil_div(span, kPartValues), 1, kMostParts));
      ends = run.temp(2 * ranges * l.parts, f32);
      run.kernel("int8_ranges")
          .args(run.src(0), ends, span, l.parts)
          .prepares()
          .over_tiles(ranges * l.parts, 1, 1, run.pick(kRangeItems), 1);
    }
    l.lines_per_group = i32_of(std::max<std::int64_t>(1, run.pick(kQuantiseLines) / l.length));
    run.kernel("int8_quantise")
        .args(run.src(0), ends, q, scales, l)
        .prepares()
        .over_tiles(ceil_div(l.lines, l.lines_per_group), 1, 1, run.pick(kRangeItems), 1);
  }

  Windows windows_;
  int kernel_h_, kernel_w_;
  std::optional<Int8Range> range_;
};

void check(const char* op, const Array& x, const Int8Weight& weight, const Array& bias,
           const std::optional<Int8Range>& range, int rank) {
  require(x.defined() && is_floating(x.dtype()), op, "x must be floating", x, "x");
  if (!weight.panels.defined() || weight.shape.rank() != rank)
    throw ArgumentError(std::string(op) + ": expected the weight of a " + (rank == 2 ? "product" : "convolution") +
                        " with " + std::to_string(rank) + " axes, got " +
                        (weight.panels.defined() ? weight.shape.to_string() : std::string("an empty one")));
  const std::int64_t out = rank == 2 ? weight.shape[0] : weight.shape.back();
  if (bias.defined())
    require(is_floating(bias.dtype()) && bias.shape() == Shape{out}, op, "bias must be floating [N]", bias, "bias");
  if (range && !(std::isfinite(range->low) && std::isfinite(range->high) && range->low <= range->high))
    throw ArgumentError(std::string(op) + ": the range must be finite and not end before it begins, got " +
                        std::to_string(range->low) + " to " + std::to_string(range->high));
}

Array product(const Array& x, const Int8Weight& weight, const Array& bias, const Windows& windows, const Shape& dst,
              const std::optional<Int8Range>& range) {
  const Shape& w = weight.shape;
  const int rank = w.rank();
  const int kernel_h = rank == 4 ? i32_of(w[0]) : 1, kernel_w = rank == 2 ? 1 : i32_of(w[rank - 3]);
  std::vector<Array> inputs{as_dtype(x, f32), weight.panels, weight.totals, weight.scales};
  if (bias.defined()) inputs.push_back(as_dtype(bias, f32));
  const auto op = make_op<Int8Product>(windows, kernel_h, kernel_w, range);
  return as_dtype(make_array(op, dst, f32, inputs), x.dtype());
}

Array nothing(const Shape& dst, Dtype dtype, const Array& bias) {
  const Array zero = zeros(dst, dtype);
  return bias.defined() ? zero + as_dtype(bias, dtype) : zero;
}

// Rows of K values as panels.
Int8Weight packed(std::span<const std::int8_t> values, std::span<const float> scales, const Shape& shape) {
  const std::int64_t n = shape.rank() == 2 ? shape[0] : shape.back(), k = shape.size() / std::max<std::int64_t>(n, 1);
  const std::int64_t fours = padded(k, INT8_K) / 4;
  std::vector<std::uint8_t> panels(static_cast<std::size_t>(padded(n, INT8_COLUMNS) * fours * 4));
  std::vector<std::int32_t> totals(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t p = 0; p < k; ++p) {
      const std::int8_t value = values[static_cast<std::size_t>(j * k + p)];
      panels[place_of(j, p, fours)] = static_cast<std::uint8_t>(value);
      totals[static_cast<std::size_t>(j)] += value;
    }
  }
  const auto bytes = static_cast<std::int64_t>(panels.size());
  return {.panels = array(std::span<const std::uint8_t>(panels), {bytes}),
          .totals = array(std::span<const std::int32_t>(totals), {n}),
          .scales = array(scales, {n}),
          .shape = shape};
}

void check_shape(const Shape& shape) {
  if (shape.rank() < 2 || shape.rank() > 4)
    throw ArgumentError("int8_weight: expected a weight [N, K], [kw, C, N] or [kh, kw, C, N], got " +
                        shape.to_string());
  const std::int64_t n = shape.rank() == 2 ? shape[0] : shape.back(), k = n > 0 ? shape.size() / n : 0;
  if (k > kMostProducts)
    throw ArgumentError("int8_weight: a sum must have at most " + std::to_string(kMostProducts) + " products, " +
                        shape.to_string() + " gives " + std::to_string(k));
}

}  // namespace

std::optional<Int8Call> replaceable_int8(const Array& a) {
  if (a.node().use_count() != 1) return std::nullopt;
  const Node& node = *a.node();
  if (!node.op || node.has_value || !dynamic_cast<const Int8Product*>(node.op.get())) return std::nullopt;
  for (const Edge& edge : node.inputs)
    if (edge.node->base().version != edge.version) return std::nullopt;
  Int8Call call{node.op, a.shape(), {}};
  for (const Edge& edge : node.inputs) call.inputs.emplace_back(edge.node);
  return call;
}
Array Int8Call::with(const Array& scales, const Array& bias) const {
  const std::vector<Array> all{inputs[0], inputs[1], inputs[2], scales, bias};
  return make_array(op, shape, f32, all);
}

}  // namespace detail

bool Int8Weight::is_of(const Input& weight) const { return weight.node()->base().version == version; }
void Int8Weight::note(const Input& copy) { version = copy.node()->base().version; }

Int8Weight int8_weight(const Input& weight) {
  using detail::require;
  require(weight.defined() && is_floating(weight.dtype()), "int8_weight", "the weight must be floating", weight, "it");
  const Shape shape = weight.shape();
  detail::check_shape(shape);
  const NoGrad no_grad;
  const std::vector<float> values = detail::as_dtype(weight, f32).to_vector<float>();
  const bool is_linear = shape.rank() == 2;
  const auto n = static_cast<std::size_t>(is_linear ? shape[0] : shape.back()), k = n > 0 ? values.size() / n : 0;
  const auto value = [&](std::size_t j, std::size_t p) { return values[is_linear ? j * k + p : p * n + j]; };
  std::vector<std::int8_t> whole(values.size());
  std::vector<float> scales(n);
  constexpr float kMost = 127;
  for (std::size_t j = 0; j < n; ++j) {
    float most = 0;
    for (std::size_t p = 0; p < k; ++p) {
      if (!std::isfinite(value(j, p)))
        throw ArgumentError("int8_weight: channel " + std::to_string(j) + " of the weight " + shape.to_string() +
                            " has a value that is not finite");
      most = std::max(most, std::fabs(value(j, p)));
    }
    scales[j] = most / kMost;
    const float inverse = detail::inverse_of(scales[j]);
    for (std::size_t p = 0; p < k; ++p)
      whole[j * k + p] = static_cast<std::int8_t>(std::clamp(std::nearbyint(value(j, p) * inverse), -kMost, kMost));
  }
  Int8Weight made = detail::packed(whole, scales, shape);
  made.note(weight);
  return made;
}

Int8Weight int8_weight(std::span<const std::int8_t> values, std::span<const float> scales, const Shape& shape) {
  detail::check_shape(shape);
  const std::int64_t n = shape.rank() == 2 ? shape[0] : shape.back();
  if (static_cast<std::int64_t>(values.size()) != shape.size() ||
      (scales.size() != 1 && static_cast<std::int64_t>(scales.size()) != n))
    throw ArgumentError("int8_weight: expected " + std::to_string(shape.size()) + " values and " + std::to_string(n) +
                        " scales or one for " + shape.to_string() + ", got " + std::to_string(values.size()) + " and " +
                        std::to_string(scales.size()));
  for (const std::int8_t value : values)
    if (value == std::numeric_limits<std::int8_t>::min())
      throw ArgumentError("int8_weight: values must be at least -127, got -128");
  std::vector<float> each(scales.begin(), scales.end());
  each.resize(static_cast<std::size_t>(n), each.empty() ? 0.0F : each.front());
  return detail::packed(values, each, shape);
}

Array Int8Weight::values() const {
  const bool is_linear = shape.rank() == 2;
  const std::int64_t n = is_linear ? shape[0] : shape.back(), k = n > 0 ? shape.size() / n : 0;
  const std::int64_t fours = detail::padded(k, detail::INT8_K) / 4;
  const auto bytes = panels.to_vector<std::uint8_t>();
  const auto each = scales.to_vector<float>();
  std::vector<float> all(static_cast<std::size_t>(shape.size()));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t p = 0; p < k; ++p) {
      const auto byte = static_cast<std::int8_t>(bytes[detail::place_of(j, p, fours)]);
      all[static_cast<std::size_t>(is_linear ? j * k + p : p * n + j)] =
          static_cast<float>(byte) * each[static_cast<std::size_t>(j)];
    }
  return array(std::span<const float>(all), shape);
}

const detail::CastRow kInt8LinearCast{"int8_linear", CastRule::keep_f32};
Array int8_linear(const Input& x, const Int8Weight& weight, const Input& bias, const std::optional<Int8Range>& range) {
  constexpr const char* kOp = "int8_linear";
  if (const detail::Casts cast(kInt8LinearCast); cast)
    return int8_linear(cast(x), weight, bias.defined() ? cast(bias) : Array{}, range);
  detail::check(kOp, x, weight, bias, range, 2);
  const std::int64_t out = weight.shape[0], in = weight.shape[1];
  if (x.shape().rank() < 1 || x.shape().back() != in)
    throw ArgumentError(std::string(kOp) + ": x must have " + std::to_string(in) + " values in its last axis, x is " +
                        x.shape().to_string());
  Shape dst = x.shape();
  dst[-1] = out;
  if (x.size() == 0 || out == 0) return detail::nothing(dst, x.dtype(), bias);
  const std::int64_t rows = x.size() / in;
  detail::require_ints(kOp, "rows and columns", {rows, out});
  return reshape(detail::product(reshape(x, {rows, in}), weight, bias, {}, {rows, out}, range), dst);
}

const detail::CastRow kInt8ConvCast{"int8_conv2d", CastRule::keep_f32};
Array int8_conv2d(const Input& x, const Int8Weight& weight, const Input& bias, const Conv2dOptions& o,
                  const std::optional<Int8Range>& range) {
  constexpr const char* kOp = "int8_conv2d";
  if (const detail::Casts cast(kInt8ConvCast); cast)
    return int8_conv2d(cast(x), weight, bias.defined() ? cast(bias) : Array{}, o, range);
  detail::check(kOp, x, weight, bias, range, 4);
  const Shape &s = x.shape(), &w = weight.shape;
  if (s.rank() != 4 || s.back() != w[2])
    throw ArgumentError(std::string(kOp) + ": x must be [N, H, W, " + std::to_string(w[2]) + "], x is " +
                        s.to_string());
  if (o.groups != 1) throw ArgumentError(std::string(kOp) + ": groups must be 1, got " + std::to_string(o.groups));
  const detail::ConvAttributes a{.axes = 2,
                                 .stride = {1, o.stride_h, o.stride_w},
                                 .pad = {0, o.pad_h, o.pad_w},
                                 .dilation = {1, o.dilation_h, o.dilation_w}};
  const int end_h = o.pad_end_h.value_or(o.pad_h), end_w = o.pad_end_w.value_or(o.pad_w);
  detail::check_conv_attributes(kOp, a);
  detail::check_conv_option(kOp, "pad_end_h", end_h, 0);
  detail::check_conv_option(kOp, "pad_end_w", end_w, 0);
  const std::int64_t h = detail::conv_size(s[1] + end_h - o.pad_h, w[0], o.stride_h, o.pad_h, o.dilation_h),
                     width = detail::conv_size(s[2] + end_w - o.pad_w, w[1], o.stride_w, o.pad_w, o.dilation_w);
  const std::string both = "x is " + s.to_string() + ", weight is " + w.to_string();
  if (w[0] < 1 || w[1] < 1 || h < 1 || width < 1)
    throw ArgumentError(std::string(kOp) + ": the kernel must fit into the padded image, " + both);
  const Shape dst{s[0], h, width, w.back()};
  detail::check_conv_size(kOp, s, both);
  detail::check_conv_size(kOp, dst, both);
  detail::check_conv_reach(kOp, s, dst, w, a, both);
  if (x.size() == 0 || w.size() == 0) return detail::nothing(dst, x.dtype(), bias);
  return detail::product(x, weight, bias, {o.stride_h, o.stride_w, o.pad_h, o.pad_w, o.dilation_h, o.dilation_w}, dst,
                         range);
}

Array int8_conv1d(const Input& x, const Int8Weight& weight, const Input& bias, const Conv1dOptions& o,
                  const std::optional<Int8Range>& range) {
  detail::check("int8_conv1d", x, weight, bias, range, 3);
  const Shape &s = x.shape(), &w = weight.shape;
  if (s.rank() != 3 || s.back() != w[1])
    throw ArgumentError("int8_conv1d: x must be [N, L, " + std::to_string(w[1]) + "], x is " + s.to_string());
  Int8Weight line = weight;
  line.shape = {1, w[0], w[1], w[2]};
  const Array y = int8_conv2d(
      reshape(x, {s[0], 1, s[1], s[2]}), line, bias,
      {.stride_w = o.stride, .pad_w = o.pad, .dilation_w = o.dilation, .groups = o.groups, .pad_end_w = o.pad_end},
      range);
  return reshape(y, {y.shape()[0], y.shape()[2], y.shape()[3]});
}

}  // namespace samebytes
