// conv_transpose1d, conv_transpose2d, conv_transpose3d: the input gradient of a convolution as a forward pass
// (engine/ops/conv.cpp).
#include <algorithm>
#include <string>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "ops/conv.h"
#include "ops/dtypes.h"
#include "ops/kept_bias.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

constexpr const char* kSrcNeed[] = {"src must be floating [N, L, C]", "src must be floating [N, H, W, C]",
                                    "src must be floating [N, D, H, W, C]"};
constexpr const char* kWeightNeed[] = {"weight must be floating [kw, K / groups, C]",
                                       "weight must be floating [kh, kw, K / groups, C]",
                                       "weight must be floating [kd, kh, kw, K / groups, C]"};
const CastRow kConvTransposeCasts[] = {{"conv_transpose1d", CastRule::lower},
                                       {"conv_transpose2d", CastRule::lower},
                                       {"conv_transpose3d", CastRule::lower}};

Array conv_transpose(const char* op, const Array& src, const Array& weight, const Array& bias, const ConvAttributes& a,
                     const int (&output_pad)[3]) {
  if (const Casts cast(kConvTransposeCasts[a.axes - 1]); cast)
    return conv_transpose(op, cast(src), cast(weight), kept_bias(cast, bias, cast(src).dtype()), a, output_pad);
  require(src.defined() && is_floating(src.dtype()) && src.shape().rank() == a.axes + 2, op, kSrcNeed[a.axes - 1], src,
          "src");
  require(weight.defined() && is_floating(weight.dtype()) && weight.shape().rank() == a.axes + 2, op,
          kWeightNeed[a.axes - 1], weight, "weight");
  check_conv_attributes(op, a);
  const Shape &s = src.shape(), &w = weight.shape();
  const std::string both = "src is " + describe(src) + ", weight is " + describe(weight);
  if (w.back() != s.back())
    throw ArgumentError(std::string(op) + ": weight must have " + std::to_string(s.back()) + " input channels, " +
                        both);
  if (s.back() % a.groups != 0)
    throw ArgumentError(std::string(op) + ": the channels must divide into " + std::to_string(a.groups) + " groups, " +
                        both);
  const std::int64_t channels = checked_product(op, src, w[-2], a.groups);
  if (bias.defined())
    require(is_floating(bias.dtype()) && bias.shape() == Shape{channels}, op, "bias must be floating [K]", bias,
            "bias");
  Shape dst{s[0]};
  for (int k = 0; k < a.axes; ++k) {
    const int axis = 3 - a.axes + k;
    if (output_pad[axis] < 0 || output_pad[axis] >= std::max(a.stride[axis], a.dilation[axis]))
      throw ArgumentError(std::string(op) + ": " + conv_option("output_pad", a.axes, axis) +
                          " must be 0 or more and below stride or dilation, got " + std::to_string(output_pad[axis]) +
                          " with stride " + std::to_string(a.stride[axis]) + ", dilation " +
                          std::to_string(a.dilation[axis]));
    const std::int64_t size = checked_sum(op, src, checked_product(op, src, s[k + 1] - 1, a.stride[axis]),
                                          checked_product(op, src, w[k] - 1, a.dilation[axis])) +
                              output_pad[axis] + 1 - 2 * std::int64_t{a.pad[axis]};
    if (w[k] < 1 || s[k + 1] < 1 || size < 1)
      throw ArgumentError(std::string(op) + ": the padding must leave at least one place, " + both);
    dst.push_back(size);
  }
  dst.push_back(channels);
  check_conv_size(op, s, both);
  check_conv_size(op, dst, both);
  check_conv_reach(op, dst, s, w, a, both);

  const Dtype dtype = widest_of(src, weight, bias), inside = conv_dtype(a, s.back(), channels, dtype);
  if (src.size() == 0 || weight.size() == 0) {
    const Array nothing = zeros(dst, dtype);
    return bias.defined() ? nothing + as_dtype(bias, dtype) : nothing;
  }
  return as_dtype(
      conv_bwd_input(as_dtype(src, inside), as_dtype(weight, inside), as_dtype(bias, real_of(inside)), dst, a), dtype);
}

}  // namespace
}  // namespace detail

Array conv_transpose1d(const Input& src, const Input& weight, const Input& bias, const ConvTranspose1dOptions& o) {
  return detail::conv_transpose(
      "conv_transpose1d", src, weight, bias,
      {.axes = 1, .stride = {1, 1, o.stride}, .pad = {0, 0, o.pad}, .dilation = {1, 1, o.dilation}, .groups = o.groups},
      {0, 0, o.output_pad});
}

Array conv_transpose2d(const Input& src, const Input& weight, const Input& bias, const ConvTranspose2dOptions& o) {
  return detail::conv_transpose("conv_transpose2d", src, weight, bias,
                                {.axes = 2,
                                 .stride = {1, o.stride_h, o.stride_w},
                                 .pad = {0, o.pad_h, o.pad_w},
                                 .dilation = {1, o.dilation_h, o.dilation_w},
                                 .groups = o.groups},
                                {0, o.output_pad_h, o.output_pad_w});
}

Array conv_transpose3d(const Input& src, const Input& weight, const Input& bias, const ConvTranspose3dOptions& o) {
  return detail::conv_transpose("conv_transpose3d", src, weight, bias,
                                {.axes = 3,
                                 .stride = {o.stride_d, o.stride_h, o.stride_w},
                                 .pad = {o.pad_d, o.pad_h, o.pad_w},
                                 .dilation = {o.dilation_d, o.dilation_h, o.dilation_w},
                                 .groups = o.groups},
                                {o.output_pad_d, o.output_pad_h, o.output_pad_w});
}

}  // namespace samebytes
