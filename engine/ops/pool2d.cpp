// Max, average and global average pooling over the H and W axes of [N, H, W, C]. Kernels: cl/*/pool2d.cl.
// Max pooling keeps the place of each window's largest value, one byte each for windows of up to 256 places; the
// gradients gather.
#include <algorithm>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::Launch;
using detail::Operand;
using detail::require;

// Sizes of one pooling, as the kernels take them.
struct Window {
  int batch, h, w, c, oh, ow, kh, kw, sh, sw, ph, pw;

  bool is_wide() const { return kh * std::int64_t{kw} > 256; }
  Dtype index_dtype() const { return is_wide() ? i32 : u8; }
  Shape src_shape() const { return {batch, h, w, c}; }
  Shape dst_shape() const { return {batch, oh, ow, c}; }

  void hash(detail::Hasher& hasher) const {
    for (int size : {batch, h, w, c, oh, ow, kh, kw, sh, sw, ph, pw}) hasher.add(std::uint64_t(size));
  }

  // Binds `operands`, the geometry and `more`; one work-item per element of the result on a GPU, a block of its rows on
  // a CPU.
  template <class... Operands>
  void launch(Launch& run, const std::string& entry, const Shape& result, std::initializer_list<int> more,
              const Operands&... operands) const {
    const Dtype real = run.dst_dtype(0);
    const std::int64_t rows = result[0] * result[1];
    const std::int64_t row = result[2] * result[3];
    const std::int64_t block = run.constant("pool2d", "POOL2D_BLOCK", real);
    const int rows_per_group = static_cast<int>(std::clamp<std::int64_t>(block / row, 1, rows));
    auto kernel = run.kernel(entry, real);
    kernel.args(operands..., batch, h, w, c, oh, ow, kh, kw, sh, sw, ph, pw, rows_per_group);
    for (int value : more) kernel.args(value);
    if (run.is_cpu())
      kernel.over_tiles((rows + rows_per_group - 1) / rows_per_group);
    else
      kernel.over_elements(result.size());
  }
};

int pooled_size(int size, int kernel, int stride, int pad, bool ceil_mode) {
  const int out = (size + 2 * pad - kernel + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  return ceil_mode && (out - 1) * stride >= size + pad ? out - 1 : out;  // no window starts in the padding at the end
}

Window make_window(const char* op, const Array& src, const Pool2dOptions& o) {
  const Shape& s = src.shape();
  require(s.rank() == 4 && is_floating(src.dtype()), op, "src must be floating [N, H, W, C]", src, "src");
  const int sh = o.stride_h ? o.stride_h : o.kernel_h, sw = o.stride_w ? o.stride_w : o.kernel_w;
  require(o.kernel_h >= 1 && o.kernel_w >= 1 && sh >= 1 && sw >= 1, op, "kernel and stride must be at least 1", src,
          "src");
  const std::string kernel = "kernel " + std::to_string(o.kernel_h) + " x " + std::to_string(o.kernel_w);
  const std::string pad = "pad " + std::to_string(o.pad_h) + " x " + std::to_string(o.pad_w);
  require(o.pad_h >= 0 && o.pad_w >= 0 && 2 * o.pad_h <= o.kernel_h && 2 * o.pad_w <= o.kernel_w, op,
          (pad + " must be at most half of " + kernel).c_str(), src, "src");
  require(s[1] + 2 * o.pad_h >= o.kernel_h && s[2] + 2 * o.pad_w >= o.kernel_w, op,
          (kernel + " must fit in the image with " + pad).c_str(), src, "src");
  const int h = static_cast<int>(s[1]), w = static_cast<int>(s[2]);
  return {static_cast<int>(s[0]),
          h,
          w,
          static_cast<int>(s[3]),
          pooled_size(h, o.kernel_h, sh, o.pad_h, o.ceil_mode),
          pooled_size(w, o.kernel_w, sw, o.pad_w, o.ceil_mode),
          o.kernel_h,
          o.kernel_w,
          sh,
          sw,
          o.pad_h,
          o.pad_w};
}

// Inputs dy, index; result dx.
class MaxPool2dGradient final : public detail::Op {
 public:
  explicit MaxPool2dGradient(const Window& window) : window_(window) {}
  std::string_view name() const override { return "max_pool2d_gradient"; }
  void hash(detail::Hasher& hasher) const override { window_.hash(hasher); }
  void launch(Launch& run) const override {
    window_.launch(run, window_.is_wide() ? "max_pool2d_bwd_wide" : "max_pool2d_bwd", window_.src_shape(), {},
                   run.src(0), run.src(1), run.dst());
  }

 private:
  Window window_;
};

// Input src; results y and, where a gradient may be asked for, index.
class MaxPool2d final : public detail::Op {
 public:
  MaxPool2d(const Window& window, bool with_index) : window_(window), with_index_(with_index) {}
  std::string_view name() const override { return "max_pool2d"; }
  void hash(detail::Hasher& hasher) const override {
    window_.hash(hasher);
    hasher.add(std::uint64_t{with_index_});
  }
  void launch(Launch& run) const override {
    window_.launch(run, window_.is_wide() ? "max_pool2d_fwd_wide" : "max_pool2d_fwd", window_.dst_shape(),
                   {int{with_index_}}, run.src(0), run.dst(0), with_index_ ? run.dst(1) : Launch::none());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array inputs[] = {request.dy[0], request.dst[1]};
    return {detail::make_array(detail::make_op<MaxPool2dGradient>(window_), window_.src_shape(), request.src[0].dtype(),
                               inputs)};
  }

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
    window_.launch(run, "avg_pool2d_bwd", window_.src_shape(), {int{padded_}}, run.src(0), run.dst());
  }

 private:
  Window window_;
  bool padded_;
};

// Input src; result y.
class AvgPool2d final : public detail::Op {
 public:
  AvgPool2d(const Window& window, bool padded) : window_(window), padded_(padded) {}
  std::string_view name() const override { return "avg_pool2d"; }
  void hash(detail::Hasher& hasher) const override {
    window_.hash(hasher);
    hasher.add(std::uint64_t{padded_});
  }
  void launch(Launch& run) const override {
    window_.launch(run, "avg_pool2d_fwd", window_.dst_shape(), {int{padded_}}, run.src(0), run.dst());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array inputs[] = {request.dy[0]};
    return {detail::make_array(detail::make_op<AvgPool2dGradient>(window_, padded_), window_.src_shape(),
                               request.src[0].dtype(), inputs)};
  }

 private:
  Window window_;
  bool padded_;
};

// 16-bit arrays are pooled in f32.
Array widened(const Array& src) { return src.dtype() == f32 || src.dtype() == f64 ? src : astype(src, f32); }
Array narrowed(const Array& y, Dtype dtype) { return y.dtype() == dtype ? y : astype(y, dtype); }

}  // namespace

Array max_pool2d(const Array& src, const Pool2dOptions& options) {
  const Window window = make_window("max_pool2d", src, options);
  const Array wide = widened(src);
  const bool with_index = is_grad_enabled();
  std::vector<detail::Result> results = {{window.dst_shape(), wide.dtype()}};
  if (with_index) results.push_back({window.dst_shape(), window.index_dtype()});
  const Array inputs[] = {wide};
  return narrowed(detail::make_arrays(detail::make_op<MaxPool2d>(window, with_index), results, inputs)[0], src.dtype());
}

Array avg_pool2d(const Array& src, const Pool2dOptions& options) {
  const Window window = make_window("avg_pool2d", src, options);
  const Array inputs[] = {widened(src)};
  return narrowed(detail::make_array(detail::make_op<AvgPool2d>(window, options.count_include_pad), window.dst_shape(),
                                     inputs[0].dtype(), inputs),
                  src.dtype());
}

Array global_avg_pool2d(const Array& src) {
  constexpr const char* kOp = "global_avg_pool2d";
  const Shape& s = src.shape();
  require(s.rank() == 4 && is_floating(src.dtype()), kOp, "src must be floating [N, H, W, C]", src, "src");
  require(s[1] >= 1 && s[2] >= 1, kOp, "the mean needs at least one pixel", src, "src");
  const Array y = avg_pool2d(src, {.kernel_h = static_cast<int>(s[1]), .kernel_w = static_cast<int>(s[2])});
  return reshape(y, Shape{s[0], s[3]});
}

}  // namespace samebytes
