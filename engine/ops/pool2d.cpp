// Max, average, global and adaptive pooling over the H and W axes of [N, H, W, C], or the L axis of [N, L, C] as an
// image of one row. Kernels: cl/*/pool2d.cl. Max pooling keeps the place of each window's largest value, one byte each
// for windows of up to 256 places; the gradients gather.
#include <algorithm>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/pool_nd.h"
#include "ops/reduce.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "shared/pool2d.h"

namespace samebytes {
namespace {

using detail::Launch;
using detail::Operand;
using detail::require;

// A group of a CPU device makes a block of rows of the result, a work-item of a GPU one element. Of the large windows
// of adaptive pooling, a group's block is the smaller, as each element takes longer.
void share_pooled_rows(const Launch& run, detail::KernelCall& call, const Shape& result, std::int64_t window) {
  constexpr std::int64_t plain_window = 9;
  const std::int64_t rows = result[0] * result[1], row = result[2] * result[3];
  const std::int64_t block = run.constant("pool2d", "POOL2D_BLOCK", run.dst_dtype(0));
  const std::int64_t slower = std::clamp<std::int64_t>(window / plain_window, 1, block);
  const std::int64_t each = std::clamp<std::int64_t>(block / slower / row, 1, rows);
  call.args(static_cast<int>(each)).over_tiles((rows + each - 1) / each);
}
constexpr detail::PerPersonality<void (*)(const Launch&, detail::KernelCall&, const Shape&, std::int64_t)> kSharePooled{
    share_pooled_rows, [](const Launch&, detail::KernelCall& call, const Shape& result, std::int64_t) {
      call.over_elements(result.size());
    }};

// Sizes of one pooling. Strides of 0: the windows of adaptive pooling, of at most kh x kw.
struct Window {
  int batch, h, w, c, oh, ow, kh, kw, sh, sw, ph, pw;
  int ph_end = 0, pw_end = 0;  // behind the image, which oh and ow follow from; adaptive windows have none

  // As ONNX's pooling: windows of adaptive pooling only where they all have one size and do not overlap.
  void write(detail::NodeWriter& to, const char* type, bool padded) const {
    using Ints = detail::NodeWriter::Ints;
    const auto same = [](int in, int out) { return in % out == 0; };
    if (sh == 0 && !(same(h, oh) && same(w, ow))) to.refuse("adaptive windows of several sizes have no operator");
    const int high = sh == 0 ? h / oh : kh, wide = sh == 0 ? w / ow : kw;
    const Ints kernel{high, wide}, strides = sh == 0 ? kernel : Ints{sh, sw};
    const bool is_floor =
        (h + ph + ph_end - high) / strides[0] + 1 == oh && (w + pw + pw_end - wide) / strides[1] + 1 == ow;
    detail::NodeWriter::Attributes attributes{{"kernel_shape", kernel},
                                              {"strides", strides},
                                              {"pads", Ints{ph, pw, ph_end, pw_end}},
                                              {"ceil_mode", std::int64_t{!is_floor}}};
    if (padded) attributes.push_back({"count_include_pad", std::int64_t{1}});
    const auto y = to.put(type, {to.turned(to.in(0), {0, 3, 1, 2})}, attributes);
    to.give(to.turned(y, {0, 2, 3, 1}));
  }

  bool is_wide() const { return kh * std::int64_t{kw} > 256; }
  Dtype index_dtype() const { return is_wide() ? i32 : u8; }
  Shape src_shape() const { return {batch, h, w, c}; }
  Shape dst_shape() const { return {batch, oh, ow, c}; }

  void hash(detail::Hasher& hasher) const {
    for (int size : {batch, h, w, c, oh, ow, kh, kw, sh, sw, ph, pw}) hasher.add(std::uint64_t(size));
  }

  // The first pixel of each window along an axis; it may lie in the padding.
  static Array starts(int in, int out, int stride, int pad) {
    std::vector<std::int32_t> list;
    for (std::int64_t o = 0; o < out; ++o)
      list.push_back(static_cast<std::int32_t>(stride != 0 ? o * stride - pad : o * in / out));
    return array(std::span<const std::int32_t>(list), Shape{out});
  }
  // The pixel of the image, i32 [N, OH OW, C], of each place in its window. Numbers below 2^24 are exact in f32.
  Array places(const Array& index) const {
    const Array at = astype(index, f32), y = floor((at + 0.5) / static_cast<double>(kw));
    const Array x = at - y * static_cast<double>(kw);
    const Array row = astype(y, i32) + reshape(starts(h, oh, sh, ph), {oh, 1, 1});
    const Array column = astype(x, i32) + reshape(starts(w, ow, sw, pw), {ow, 1});
    return reshape(row * full({}, w, i32) + column, {batch, std::int64_t{oh} * ow, c});
  }

  // Binds `operands`, the geometry and `more`.
  template <class... Operands>
  void launch(Launch& run, const std::string& entry, const Shape& result, std::initializer_list<int> more,
              const Operands&... operands) const {
    const Dtype real = run.dst_dtype(0);
    auto kernel = run.kernel(entry, real);
    kernel.args(operands..., detail::pool2d_sizes{batch, h, w, c, oh, ow, kh, kw, sh, sw, ph, pw});
    for (int value : more) kernel.args(value);
    run.pick(kSharePooled)(run, kernel, result, result == dst_shape() ? std::int64_t{kh} * kw : 1);
  }
};

// Sources of one axis are images of one row.
Array as_images(const char* op, const Array& src, int axes) {
  require(src.defined() && src.shape().rank() == axes + 2 && is_floating(src.dtype()), op,
          axes == 1 ? "src must be floating [N, L, C]" : "src must be floating [N, H, W, C]", src, "src");
  const Shape& s = src.shape();
  // Places and sums of two of them are ints in the kernels.
  require(std::all_of(s.begin(), s.end(), [](std::int64_t size) { return size < std::int64_t{1} << 30; }), op,
          "every side must be below 2^30", src, "src");
  return axes == 1 ? reshape(src, Shape{s[0], 1, s[1], s[2]}) : src;
}
Array as_sequences(const Array& y) { return reshape(y, Shape{y.shape()[0], y.shape()[2], y.shape()[3]}); }

Window make_window(const char* op, const Array& src, const detail::PoolWindows& w) {
  detail::check_pooling(op, src, w);
  const Shape& s = src.shape();
  const auto last = static_cast<std::size_t>(w.axes - 1);
  const bool is_row = w.axes == 1;
  const auto size = [&](int axis) { return static_cast<int>(detail::pooled_size(w, axis, s[axis + 1])); };
  return {static_cast<int>(s[0]),      is_row ? 1 : static_cast<int>(s[1]),
          static_cast<int>(s[w.axes]), static_cast<int>(s.back()),
          is_row ? 1 : size(0),        size(w.axes - 1),
          is_row ? 1 : w.kernel[0],    w.kernel[last],
          is_row ? 1 : w.stride[0],    w.stride[last],
          is_row ? 0 : w.pad[0],       w.pad[last],
          is_row ? 0 : w.pad_end[0],   w.pad_end[last]};
}

// The largest of an axis' adaptive windows.
int largest_window(int in, int out) { return in % out == 0 ? in / out : std::min(in, (in - 1) / out + 2); }

Window adaptive_window(const char* op, const Array& src, int out_h, int out_w, int axes) {
  require(out_h >= 1 && out_w >= 1, op,
          ("the result must have at least one place, got " +
           (axes == 1 ? std::to_string(out_w) : std::to_string(out_h) + " x " + std::to_string(out_w)))
              .c_str(),
          src, "src");
  const Shape& s = src.shape();
  const int h = axes == 1 ? 1 : static_cast<int>(s[1]), w = static_cast<int>(s[axes]);
  require(h >= 1 && w >= 1, op, "src must have at least one place", src, "src");
  const int kh = largest_window(h, out_h), kw = largest_window(w, out_w);
  constexpr std::int64_t most = std::int64_t{1} << 31;  // places of a window, and windows of a place, are ints
  require(std::int64_t{kh} * kw < most && std::int64_t{out_h} * out_w < most, op,
          "a window and the result must have fewer than 2^31 places", src, "src");
  // Windows of one size that do not overlap need no rule of their own.
  const bool is_even = h % out_h == 0 && w % out_w == 0;
  return {static_cast<int>(s[0]), h, w, static_cast<int>(s.back()), out_h, out_w, kh, kw, is_even ? kh : 0,
          is_even ? kw : 0,       0, 0};
}

Array avg_pool(const Array& images, const Window& window, bool padded);

// Inputs dy, index; result dx.
class MaxPool2dGradient final : public detail::Op {
 public:
  explicit MaxPool2dGradient(const Window& window) : window_(window) {}
  std::string_view name() const override { return "max_pool2d_gradient"; }
  void hash(detail::Hasher& hasher) const override { window_.hash(hasher); }
  void launch(Launch& run) const override {
    window_.launch(run, window_.is_wide() ? "pool2d_max_bwd_wide" : "pool2d_max_bwd", window_.src_shape(), {},
                   run.src(0), run.src(1), run.dst());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array& g = request.dy[0];
    const Array pixels = reshape(g, {window_.batch, std::int64_t{window_.h} * window_.w, window_.c});
    return {reshape(gather(pixels, 1, window_.places(request.src[1])), window_.dst_shape()), Array()};
  }

 private:
  Window window_;
};

// Input src; results y and, where a gradient may be asked for, index.
class MaxPool2d final : public detail::Op, public detail::Written {
 public:
  MaxPool2d(const Window& window, bool with_index) : window_(window), with_index_(with_index) {}
  std::string_view name() const override { return "max_pool2d"; }
  void hash(detail::Hasher& hasher) const override {
    window_.hash(hasher);
    hasher.add(std::uint64_t{with_index_});
  }
  void launch(Launch& run) const override {
    window_.launch(run, window_.is_wide() ? "pool2d_max_fwd_wide" : "pool2d_max_fwd", window_.dst_shape(),
                   {int{with_index_}}, run.src(0), run.dst(0), with_index_ ? run.dst(1) : Launch::none());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array inputs[] = {request.dy[0], request.dst[1]};
    return {detail::make_array(detail::make_op<MaxPool2dGradient>(window_), window_.src_shape(), request.src[0].dtype(),
                               inputs)};
  }
  void write(detail::NodeWriter& w) const override { window_.write(w, "MaxPool", false); }

 private:
  Window window_;
  bool with_index_;
};

// Input dy; result dx.
class AvgPool2dGradient final : public detail::Op {
 public:
  AvgPool2dGradient(const Window& window, bool padded) : window_(window), padded_(padded) {}
  std::string_view name() const override { return "avg_pool2d_gradient"; }
  void hash(detail::Hasher& hasher) const override {
    window_.hash(hasher);
    hasher.add(std::uint64_t{padded_});
  }
  void launch(Launch& run) const override {
    window_.launch(run, "pool2d_avg_bwd", window_.src_shape(), {int{padded_}}, run.src(0), run.dst());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    return {avg_pool(request.dy[0], window_, padded_)};
  }

 private:
  Window window_;
  bool padded_;
};

// Input src; result y.
class AvgPool2d final : public detail::Op, public detail::Written {
 public:
  AvgPool2d(const Window& window, bool padded) : window_(window), padded_(padded) {}
  std::string_view name() const override { return "avg_pool2d"; }
  void hash(detail::Hasher& hasher) const override {
    window_.hash(hasher);
    hasher.add(std::uint64_t{padded_});
  }
  void launch(Launch& run) const override {
    window_.launch(run, "pool2d_avg_fwd", window_.dst_shape(), {int{padded_}}, run.src(0), run.dst());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array inputs[] = {request.dy[0]};
    return {detail::make_array(detail::make_op<AvgPool2dGradient>(window_, padded_), window_.src_shape(),
                               request.src[0].dtype(), inputs)};
  }
  void write(detail::NodeWriter& w) const override { window_.write(w, "AveragePool", padded_); }

 private:
  Window window_;
  bool padded_;
};

Array max_pool(const Array& images, const Window& window) {
  const bool with_index = is_grad_enabled();
  std::vector<detail::Result> results = {{window.dst_shape(), images.dtype()}};
  if (with_index) results.push_back({window.dst_shape(), window.index_dtype()});
  const Array inputs[] = {images};
  return detail::make_arrays(detail::make_op<MaxPool2d>(window, with_index), results, inputs)[0];
}

Array avg_pool(const Array& images, const Window& window, bool padded) {
  const Array inputs[] = {images};
  return detail::make_array(detail::make_op<AvgPool2d>(window, padded), window.dst_shape(), images.dtype(), inputs);
}

template <class Options>
Array max_pool(const char* op, const Array& src, const Options& options) {
  const detail::PoolWindows windows = detail::pool_windows(options);
  if (windows.has_gaps()) return detail::max_pool_nd(op, src, windows).values;
  const Window window = make_window(op, src, windows);
  if (windows.axes == 1) return as_sequences(max_pool(as_images(op, src, 1), window));
  return max_pool(src, window);
}

template <class Options>
Array avg_pool(const char* op, const Array& src, const Options& options) {
  const detail::PoolWindows windows = detail::pool_windows(options);
  // The kernel's divisors know padding of even sides.
  const bool is_counted = windows.divisor == 0 && (windows.pad == windows.pad_end || !windows.count_include_pad);
  if (windows.has_gaps() || !is_counted) return detail::avg_pool_nd(op, src, windows);
  const Window window = make_window(op, src, windows);
  if (windows.axes == 1) return as_sequences(avg_pool(as_images(op, src, 1), window, options.count_include_pad));
  return avg_pool(src, window, options.count_include_pad);
}

}  // namespace

Array max_pool1d(const Input& src, const Pool1dOptions& options) { return max_pool("max_pool1d", src, options); }

Array avg_pool1d(const Input& src, const Pool1dOptions& options) { return avg_pool("avg_pool1d", src, options); }

Array global_avg_pool1d(const Input& src) {
  constexpr const char* kOp = "global_avg_pool1d";
  require(src.defined() && src.shape().rank() == 3 && is_floating(src.dtype()), kOp, "src must be floating [N, L, C]",
          src, "src");
  require(src.shape()[1] >= 1, kOp, "the mean needs at least one place", src, "src");
  return mean(src, {1});
}

Array max_pool2d(const Input& src, const Pool2dOptions& options) { return max_pool("max_pool2d", src, options); }

Array avg_pool2d(const Input& src, const Pool2dOptions& options) { return avg_pool("avg_pool2d", src, options); }

Array global_avg_pool2d(const Input& src) {
  constexpr const char* kOp = "global_avg_pool2d";
  as_images(kOp, src, 2);
  const Shape& s = src.shape();
  require(s[1] >= 1 && s[2] >= 1, kOp, "the mean needs at least one pixel", src, "src");
  return detail::mean_over(src, 0b110);
}

Array adaptive_avg_pool1d(const Input& src, int out) {
  const Array images = as_images("adaptive_avg_pool1d", src, 1);
  return as_sequences(avg_pool(images, adaptive_window("adaptive_avg_pool1d", src, 1, out, 1), false));
}

Array adaptive_max_pool1d(const Input& src, int out) {
  const Array images = as_images("adaptive_max_pool1d", src, 1);
  return as_sequences(max_pool(images, adaptive_window("adaptive_max_pool1d", src, 1, out, 1)));
}

Array adaptive_avg_pool2d(const Input& src, int out_h, int out_w) {
  const Array images = as_images("adaptive_avg_pool2d", src, 2);
  return avg_pool(images, adaptive_window("adaptive_avg_pool2d", src, out_h, out_w, 2), false);
}

Array adaptive_max_pool2d(const Input& src, int out_h, int out_w) {
  const Array images = as_images("adaptive_max_pool2d", src, 2);
  return max_pool(images, adaptive_window("adaptive_max_pool2d", src, out_h, out_w, 2));
}

}  // namespace samebytes
