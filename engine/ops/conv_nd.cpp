// conv1d, conv2d, conv3d: their arguments, and what all convolutions check.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "ops/conv.h"
#include "ops/dtypes.h"
#include "ops/kept_bias.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

// The names of what one, two and three axes make.
constexpr const char* kSrcLetters[] = {"[N, L, C]", "[N, H, W, C]", "[N, D, H, W, C]"};
constexpr const char* kWeightLetters[] = {"[kw, C / groups, K]", "[kh, kw, C / groups, K]",
                                          "[kd, kh, kw, C / groups, K]"};
const CastRow kConvCasts[] = {{"conv1d", CastRule::lower}, {"conv2d", CastRule::lower}, {"conv3d", CastRule::lower}};
constexpr const char* kThing[] = {"sequence", "image", "volume"};

// The padding behind src, per axis as in ConvAttributes.
using PadEnds = std::array<int, 3>;

// src with what the end's padding has beyond that in front, which the kernels take as both; the ends are in range then.
Array with_longer_ends(const Array& src, const ConvAttributes& a, PadEnds& ends) {
  std::vector<PadWidth> widths(static_cast<std::size_t>(src.shape().rank()));
  bool is_longer = false;
  for (int axis = 3 - a.axes; axis < 3; ++axis) {
    int& end = ends[static_cast<std::size_t>(axis)];
    if (end <= a.pad[axis]) continue;
    widths[static_cast<std::size_t>(axis) + static_cast<std::size_t>(a.axes) - 2].after = end - a.pad[axis];
    end = a.pad[axis];
    is_longer = true;
  }
  return is_longer ? pad(src, widths) : src;
}

Array conv(const char* op, const Array& source, const Array& weight, const Array& bias, const ConvAttributes& a,
           PadEnds ends) {
  if (const Casts cast(kConvCasts[a.axes - 1]); cast)
    return conv(op, cast(source), cast(weight), kept_bias(cast, bias, cast(source).dtype()), a, ends);
  Array src = source;
  require(src.defined() && is_floating(src.dtype()) && src.shape().rank() == a.axes + 2, op,
          (std::string("src must be floating ") + kSrcLetters[a.axes - 1]).c_str(), src, "src");
  require(weight.defined() && is_floating(weight.dtype()) && weight.shape().rank() == a.axes + 2, op,
          (std::string("weight must be floating ") + kWeightLetters[a.axes - 1]).c_str(), weight, "weight");
  check_conv_attributes(op, a);
  for (int axis = 3 - a.axes; axis < 3; ++axis)
    check_conv_option(op, conv_option("pad_end", a.axes, axis), ends[static_cast<std::size_t>(axis)], 0);
  const std::string both = "src is " + describe(src) + ", weight is " + describe(weight);
  src = with_longer_ends(src, a, ends);
  const Shape &s = src.shape(), &w = weight.shape();
  if (s.back() % a.groups != 0 || w.back() % a.groups != 0)
    throw ArgumentError(std::string(op) + ": the channels must divide into " + std::to_string(a.groups) + " groups, " +
                        both);
  if (w[-2] != s.back() / a.groups)
    throw ArgumentError(std::string(op) + ": weight must have " + std::to_string(s.back() / a.groups) +
                        " input channels per group, " + both);
  if (bias.defined())
    require(is_floating(bias.dtype()) && bias.shape() == Shape{w.back()}, op, "bias must be floating [K]", bias,
            "bias");
  Shape dst{s[0]};
  for (int k = 0; k < a.axes; ++k) {
    const int axis = 3 - a.axes + k;
    const std::int64_t size = conv_size(s[k + 1] + ends[static_cast<std::size_t>(axis)] - a.pad[axis], w[k],
                                        a.stride[axis], a.pad[axis], a.dilation[axis]);
    if (w[k] < 1 || size < 1)
      throw ArgumentError(std::string(op) + ": the kernel must fit into the padded " + kThing[a.axes - 1] + ", " +
                          both);
    dst.push_back(size);
  }
  dst.push_back(w.back());
  check_conv_size(op, s, both);
  check_conv_size(op, dst, both);
  check_conv_reach(op, s, dst, w, a, both);

  const Dtype dtype = widest_of(src, weight, bias), inside = conv_dtype(a, s.back(), w.back(), dtype);
  if (src.size() == 0 || weight.size() == 0) {
    const Array nothing = zeros(dst, dtype);
    return bias.defined() ? nothing + as_dtype(bias, dtype) : nothing;
  }
  return as_dtype(
      conv_forward(as_dtype(src, inside), as_dtype(weight, inside), as_dtype(bias, real_of(inside)), dst, a), dtype);
}

}  // namespace

std::string conv_option(const char* name, int axes, int axis) {
  return axes == 1 ? std::string(name) : std::string(name) + "_" + "dhw"[axis];
}

void check_conv_option(const char* op, const std::string& name, int v, int least) {
  if (v < least)
    throw ArgumentError(std::string(op) + ": " + name + " must be " + std::to_string(least) + " or more, got " +
                        std::to_string(v));
  if (v >= kMostConvReach)
    throw ArgumentError(std::string(op) + ": " + name + " must be below 2^28, got " + std::to_string(v));
}

void check_conv_attributes(const char* op, const ConvAttributes& a) {
  const auto at_least = [&](int v, int least, const std::string& name) { check_conv_option(op, name, v, least); };
  for (int axis = 3 - a.axes; axis < 3; ++axis) {
    at_least(a.stride[axis], 1, conv_option("stride", a.axes, axis));
    at_least(a.dilation[axis], 1, conv_option("dilation", a.axes, axis));
    at_least(a.pad[axis], 0, conv_option("pad", a.axes, axis));
  }
  at_least(a.groups, 1, "groups");
}

void check_conv_size(const char* op, const Shape& shape, const std::string& both) {
  // Pixel and channel indices and sums of two of them are ints in the kernels, and so are offsets within sixteen
  // volumes.
  constexpr std::int64_t most_values = std::int64_t{1} << 27, most_pixels = std::int64_t{1} << 30;
  shape.size();
  std::int64_t pixels = 1;
  for (int axis = 1; axis + 1 < shape.rank(); ++axis) pixels *= shape[axis];
  if (pixels * shape.back() < most_values && pixels * shape[0] < most_pixels) return;
  throw ArgumentError(std::string(op) + ": " + kThing[shape.rank() - 3] +
                      "s of 2^27 values or more, or a batch of 2^30 places or more, are too large, " + both);
}

void check_conv_reach(const char* op, const Shape& large, const Shape& small, const Shape& weight,
                      const ConvAttributes& a, const std::string& both) {
  // Offsets within the padded volume are ints in the kernels, and so are values of the weight.
  constexpr std::int64_t most_values = std::int64_t{1} << 31;
  std::int64_t values = large.back();
  bool fits = values < most_values && weight.size() < most_values;
  for (int k = 0; fits && k < a.axes; ++k) {
    const int axis = 3 - a.axes + k;
    const std::int64_t stride = a.stride[axis], dilation = a.dilation[axis];
    const std::int64_t padded = large[k + 1] + 2 * std::int64_t{a.pad[axis]},
                       reach = std::max(padded, small[k + 1] * stride + (weight[k] - 1) * dilation + 1);
    fits = std::max(reach, stride * dilation) < kMostConvReach;
    if (fits) values *= reach;
    fits = fits && values < most_values;
  }
  if (!fits)
    throw ArgumentError(std::string(op) +
                        ": padding, strides and dilation must reach fewer than 2^28 places along an axis and 2^31 "
                        "values in all, " +
                        both);
}

Dtype widest_of(const Array& src, const Array& weight, const Array& bias) {
  const auto wider = [](Dtype a, Dtype b) { return a == b ? a : a == f64 || b == f64 ? f64 : f32; };
  const Dtype dtype = wider(src.dtype(), weight.dtype());
  return bias.defined() && bias.dtype() == f64 ? f64 : dtype;
}

Dtype conv_dtype(const ConvAttributes& a, std::int64_t src_channels, std::int64_t dst_channels, Dtype widest) {
  return a.groups == 1 && std::max(src_channels, dst_channels) <= kMostNarrowChannels ? widest : real_of(widest);
}

}  // namespace detail

Array conv1d(const Input& src, const Input& weight, const Input& bias, const Conv1dOptions& o) {
  return detail::conv(
      "conv1d", src, weight, bias,
      {.axes = 1, .stride = {1, 1, o.stride}, .pad = {0, 0, o.pad}, .dilation = {1, 1, o.dilation}, .groups = o.groups},
      {0, 0, o.pad_end.value_or(o.pad)});
}

Array conv2d(const Input& src, const Input& weight, const Input& bias, const Conv2dOptions& o) {
  return detail::conv("conv2d", src, weight, bias,
                      {.axes = 2,
                       .stride = {1, o.stride_h, o.stride_w},
                       .pad = {0, o.pad_h, o.pad_w},
                       .dilation = {1, o.dilation_h, o.dilation_w},
                       .groups = o.groups},
                      {0, o.pad_end_h.value_or(o.pad_h), o.pad_end_w.value_or(o.pad_w)});
}

Array conv3d(const Input& src, const Input& weight, const Input& bias, const Conv3dOptions& o) {
  return detail::conv("conv3d", src, weight, bias,
                      {.axes = 3,
                       .stride = {o.stride_d, o.stride_h, o.stride_w},
                       .pad = {o.pad_d, o.pad_h, o.pad_w},
                       .dilation = {o.dilation_d, o.dilation_h, o.dilation_w},
                       .groups = o.groups},
                      {o.pad_end_d.value_or(o.pad_d), o.pad_end_h.value_or(o.pad_h), o.pad_end_w.value_or(o.pad_w)});
}

}  // namespace samebytes
