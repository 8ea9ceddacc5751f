#include "samebytes/nn/conv3d.h"

#include "nn/initial.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

Conv3d::Conv3d(const Conv3dOptions& options) : options_(options) {
  require_positive("Conv3d", "in", options.in);
  require_positive("Conv3d", "out", options.out);
  require_positive("Conv3d", "kernel", options.kernel.least());
  require_positive("Conv3d", "stride", options.stride.least());
  require_positive("Conv3d", "dilation", options.dilation.least());
  require_positive("Conv3d", "groups", options.groups);
  require_real("Conv3d", options.dtype);
  if (options.pad.least() < 0) throw ArgumentError("Conv3d: pad must be at least 0, got " + options.pad.to_string());
  if (options.pad_end && options.pad_end->least() < 0)
    throw ArgumentError("Conv3d: pad_end must be at least 0, got " + options.pad_end->to_string());
  require_groups("Conv3d", options.groups, options.in, options.out);
  const Size3& kernel = options.kernel;
  const std::int64_t in_group = options.in / options.groups;
  const std::int64_t fan_in = in_group * kernel.d * kernel.h * kernel.w;
  weight_ = uniform_cell({kernel.d, kernel.h, kernel.w, in_group, options.out}, fan_in, options.dtype,
                         describe() + ".weight");
  if (options.bias) bias_ = uniform_cell({options.out}, fan_in, options.dtype, describe() + ".bias");
}

Array Conv3d::forward(const Array& x) {
  refuse_channels_first(describe(), options_.in, x);
  samebytes::Conv3dOptions options{.stride_d = options_.stride.d,
                                   .stride_h = options_.stride.h,
                                   .stride_w = options_.stride.w,
                                   .pad_d = options_.pad.d,
                                   .pad_h = options_.pad.h,
                                   .pad_w = options_.pad.w,
                                   .dilation_d = options_.dilation.d,
                                   .dilation_h = options_.dilation.h,
                                   .dilation_w = options_.dilation.w,
                                   .groups = options_.groups};
  if (options_.pad_end) {
    options.pad_end_d = options_.pad_end->d;
    options.pad_end_h = options_.pad_end->h;
    options.pad_end_w = options_.pad_end->w;
  }
  return conv3d(x, weight_, bias_, options);
}

void Conv3d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_, Layout::conv);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  visitor.channels(options_.out);
}

std::string Conv3d::describe() const {
  std::string text = "Conv3d(" + std::to_string(options_.in) + ", " + std::to_string(options_.out) +
                     ", kernel=" + options_.kernel.to_string();
  if (options_.stride != Size3(1)) text += ", stride=" + options_.stride.to_string();
  if (options_.pad != Size3(0)) text += ", pad=" + options_.pad.to_string();
  if (options_.pad_end) text += ", pad_end=" + options_.pad_end->to_string();
  if (options_.dilation != Size3(1)) text += ", dilation=" + options_.dilation.to_string();
  if (options_.groups != 1) text += ", groups=" + std::to_string(options_.groups);
  return text + ")";
}

}  // namespace samebytes::nn
