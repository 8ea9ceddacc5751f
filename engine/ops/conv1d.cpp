// One-dimensional convolution: images of one row (engine/ops/conv2d.cpp).
#include <string>

#include "graph/op.h"
#include "samebytes/ops.h"

namespace samebytes {

Array conv1d(const Array& src, const Array& weight, const Array& bias, const Conv1dOptions& options) {
  using detail::require;
  require(src && is_floating(src.dtype()) && src.shape().rank() == 3, "conv1d", "src must be floating [N, L, C]", src,
          "src");
  require(weight && is_floating(weight.dtype()) && weight.shape().rank() == 3, "conv1d",
          "weight must be floating [kw, C / groups, K]", weight, "weight");
  const auto positive = [](int v, const char* name) {
    if (v < 1)
      throw ArgumentError(std::string("conv1d: ") + name + " must be 1 or more, " + std::to_string(v) + " came");
  };
  positive(options.stride, "stride");
  positive(options.dilation, "dilation");
  positive(options.groups, "groups");
  if (options.pad < 0) throw ArgumentError("conv1d: pad must be 0 or more, " + std::to_string(options.pad) + " came");
  const Shape &s = src.shape(), &w = weight.shape();
  const std::string both = "src is " + detail::describe(src) + ", weight is " + detail::describe(weight);
  if (s[2] % options.groups != 0 || w[2] % options.groups != 0)
    throw ArgumentError("conv1d: the channels must divide into " + std::to_string(options.groups) + " groups, " + both);
  if (w[1] * options.groups != s[2])
    throw ArgumentError("conv1d: weight must have " + std::to_string(s[2] / options.groups) +
                        " input channels per group, " + both);
  if (bias)
    require(is_floating(bias.dtype()) && bias.shape() == Shape{w[2]}, "conv1d", "bias must be floating [K]", bias,
            "bias");
  if (w[0] < 1 || s[1] + 2 * options.pad < options.dilation * (w[0] - 1) + 1)
    throw ArgumentError("conv1d: the kernel must fit into the padded sequence, " + both);
  const Array y = conv2d(
      reshape(src, Shape{s[0], 1, s[1], s[2]}), reshape(weight, Shape{1, w[0], w[1], w[2]}), bias,
      {.stride_w = options.stride, .pad_w = options.pad, .dilation_w = options.dilation, .groups = options.groups});
  return reshape(y, Shape{s[0], y.shape()[2], y.shape()[3]});
}

}  // namespace samebytes
