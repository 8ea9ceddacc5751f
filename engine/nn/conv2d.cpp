#include "samebytes/nn/conv2d.h"

#include <algorithm>

#include "nn/initial.h"
#include "nn/quantized.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

Conv2d::Conv2d(const Conv2dOptions& options) : options_(options) {
  require_positive("Conv2d", "in", options.in);
  require_positive("Conv2d", "out", options.out);
  require_positive("Conv2d", "kernel", std::min(options.kernel.h, options.kernel.w));
  require_positive("Conv2d", "stride", std::min(options.stride.h, options.stride.w));
  require_positive("Conv2d", "dilation", std::min(options.dilation.h, options.dilation.w));
  require_positive("Conv2d", "groups", options.groups);
  require_real("Conv2d", options.dtype);
  if (options.pad.h < 0 || options.pad.w < 0)
    throw ArgumentError("Conv2d: pad must be at least 0, got " + options.pad.to_string());
  if (options.pad_end && std::min(options.pad_end->h, options.pad_end->w) < 0)
    throw ArgumentError("Conv2d: pad_end must be at least 0, got " + options.pad_end->to_string());
  require_groups("Conv2d", options.groups, options.in, options.out);
  const std::int64_t in_group = options.in / options.groups;
  const std::int64_t fan_in = in_group * options.kernel.h * options.kernel.w;
  weight_ = uniform_cell({options.kernel.h, options.kernel.w, in_group, options.out}, fan_in, options.dtype,
                         describe() + ".weight");
  if (options.bias) bias_ = uniform_cell({options.out}, fan_in, options.dtype, describe() + ".bias");
}

Array Conv2d::forward(const Array& x) {
  refuse_channels_first(describe(), options_.in, x);
  samebytes::Conv2dOptions options{.stride_h = options_.stride.h,
                                   .stride_w = options_.stride.w,
                                   .pad_h = options_.pad.h,
                                   .pad_w = options_.pad.w,
                                   .dilation_h = options_.dilation.h,
                                   .dilation_w = options_.dilation.w,
                                   .groups = options_.groups};
  if (options_.pad_end) {
    options.pad_end_h = options_.pad_end->h;
    options.pad_end_w = options_.pad_end->w;
  }
  if (weight_.quantized()) return quantized_conv(x, weight_, bias_, options);
  return conv2d(x, weight_, bias_, options);
}

void Conv2d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_, Layout::conv);
  visitor.quantizable("", weight_, options_.groups);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  visitor.channels(options_.out);
}

std::string Conv2d::describe() const {
  std::string text = "Conv2d(" + std::to_string(options_.in) + ", " + std::to_string(options_.out) +
                     ", kernel=" + options_.kernel.to_string();
  if (options_.stride != Size2(1)) text += ", stride=" + options_.stride.to_string();
  if (options_.pad != Size2(0)) text += ", pad=" + options_.pad.to_string();
  if (options_.pad_end) text += ", pad_end=" + options_.pad_end->to_string();
  if (options_.dilation != Size2(1)) text += ", dilation=" + options_.dilation.to_string();
  if (options_.groups != 1) text += ", groups=" + std::to_string(options_.groups);
  return text + ")";
}

}  // namespace samebytes::nn
