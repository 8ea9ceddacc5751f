// What pooling gives beyond the largest value and the mean: places, their inverse, Lp norms, and windows over volumes.
// The options of one, two and three axes as the one form that all poolings work with.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "graph/op.h"
#include "ops/indexing.h"
#include "ops/pool_nd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

// Strides of 0 are the kernel's sizes; unused axes have windows of one place.
PoolWindows finished(PoolWindows w) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (static_cast<int>(i) >= w.axes) w.kernel[i] = w.dilation[i] = 1;
    if (w.stride[i] == 0) w.stride[i] = w.kernel[i];
  }
  return w;
}

template <class Options>
PoolWindows lp_windows(const char* op, const Options& options, double p) {
  if (!(p > 0) || !std::isfinite(p))
    throw ArgumentError(std::string(op) + ": expected a finite p above 0, got " + std::to_string(p));
  PoolWindows windows = pool_windows(options);
  windows.divisor = 1;
  return windows;
}

Array lp_pool(const char* op, const Array& src, double p, const PoolWindows& windows) {
  check_pooling(op, src, windows);
  const Array power = p == 1 ? abs(src) : p == 2 ? square(src) : pow(abs(src), p);
  Array sums = avg_pool_nd(op, power, windows);
  if (p == 1) return sums;
  const Array is_zero = equal(sums, 0), safe = masked_fill(sums, is_zero, 1.0);
  return masked_fill(p == 2 ? sqrt(safe) : pow(safe, 1 / p), is_zero, 0.0);
}

Array unpooled(const char* op, const Array& src, const Array& indices, std::initializer_list<int> sizes) {
  const auto axes = std::ssize(sizes);
  require(src.defined() && is_floating(src.dtype()) && src.shape().rank() == axes + 2, op,
          ("src must be floating with " + std::to_string(axes) + " spatial axes, channels last").c_str(), src, "src");
  require(indices.defined() && (indices.dtype() == i32 || indices.dtype() == i64) && indices.shape() == src.shape(), op,
          "expected i32 or i64 indices of src's shape", indices, "indices");
  require(std::all_of(sizes.begin(), sizes.end(), [](int size) { return size >= 1; }), op,
          "the result must have at least one place along each axis", src, "src");
  const Shape& s = src.shape();
  Shape shape{s[0]};
  std::int64_t places = 1;
  for (const int size : sizes) {
    shape.push_back(size);
    places *= size;
  }
  shape.push_back(s.back());
  std::int64_t lines = 1;
  for (int i = 1; i <= axes; ++i) lines *= s[i];
  const Shape from{s[0], lines, s.back()};
  require(places <= std::numeric_limits<std::int32_t>::max(), op, "needs places that i32 can count", src, "src");
  return reshape(put_at({s[0], places, s.back()}, 1, reshape(as_i32(indices), from), reshape(src, from)), shape);
}

}  // namespace

PoolWindows pool_windows(const Pool1dOptions& o) {
  return finished({1,
                   {o.kernel},
                   {o.stride},
                   {o.pad},
                   {o.pad_end.value_or(o.pad)},
                   {o.dilation},
                   o.ceil_mode,
                   o.count_include_pad,
                   o.divisor});
}

PoolWindows pool_windows(const Pool2dOptions& o) {
  return finished({2,
                   {o.kernel_h, o.kernel_w},
                   {o.stride_h, o.stride_w},
                   {o.pad_h, o.pad_w},
                   {o.pad_end_h.value_or(o.pad_h), o.pad_end_w.value_or(o.pad_w)},
                   {o.dilation_h, o.dilation_w},
                   o.ceil_mode,
                   o.count_include_pad,
                   o.divisor});
}

PoolWindows pool_windows(const Pool3dOptions& o) {
  return finished({3,
                   {o.kernel_d, o.kernel_h, o.kernel_w},
                   {o.stride_d, o.stride_h, o.stride_w},
                   {o.pad_d, o.pad_h, o.pad_w},
                   {o.pad_end_d.value_or(o.pad_d), o.pad_end_h.value_or(o.pad_h), o.pad_end_w.value_or(o.pad_w)},
                   {o.dilation_d, o.dilation_h, o.dilation_w},
                   o.ceil_mode,
                   o.count_include_pad,
                   o.divisor});
}

}  // namespace detail

Array max_pool3d(const Input& src, const Pool3dOptions& options) {
  return detail::max_pool_nd("max_pool3d", src, detail::pool_windows(options)).values;
}
Array avg_pool3d(const Input& src, const Pool3dOptions& options) {
  return detail::avg_pool_nd("avg_pool3d", src, detail::pool_windows(options));
}

PoolResult max_pool1d_with_indices(const Input& src, const Pool1dOptions& options) {
  return detail::max_pool_nd("max_pool1d_with_indices", src, detail::pool_windows(options));
}
PoolResult max_pool2d_with_indices(const Input& src, const Pool2dOptions& options) {
  return detail::max_pool_nd("max_pool2d_with_indices", src, detail::pool_windows(options));
}
PoolResult max_pool3d_with_indices(const Input& src, const Pool3dOptions& options) {
  return detail::max_pool_nd("max_pool3d_with_indices", src, detail::pool_windows(options));
}

Array max_unpool1d(const Input& src, const Input& indices, int out) {
  return detail::unpooled("max_unpool1d", src, indices, {out});
}
Array max_unpool2d(const Input& src, const Input& indices, int out_h, int out_w) {
  return detail::unpooled("max_unpool2d", src, indices, {out_h, out_w});
}
Array max_unpool3d(const Input& src, const Input& indices, int out_d, int out_h, int out_w) {
  return detail::unpooled("max_unpool3d", src, indices, {out_d, out_h, out_w});
}

Array lp_pool1d(const Input& src, double p, const Pool1dOptions& options) {
  return detail::lp_pool("lp_pool1d", src, p, detail::lp_windows("lp_pool1d", options, p));
}
Array lp_pool2d(const Input& src, double p, const Pool2dOptions& options) {
  return detail::lp_pool("lp_pool2d", src, p, detail::lp_windows("lp_pool2d", options, p));
}
Array lp_pool3d(const Input& src, double p, const Pool3dOptions& options) {
  return detail::lp_pool("lp_pool3d", src, p, detail::lp_windows("lp_pool3d", options, p));
}

Array adaptive_avg_pool3d(const Input& src, int out_d, int out_h, int out_w) {
  return detail::adaptive_avg_pool_nd("adaptive_avg_pool3d", src, {out_d, out_h, out_w});
}
Array adaptive_max_pool3d(const Input& src, int out_d, int out_h, int out_w) {
  return detail::adaptive_max_pool_nd("adaptive_max_pool3d", src, {out_d, out_h, out_w});
}

}  // namespace samebytes
