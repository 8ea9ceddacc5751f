#include "samebytes/nn/conv_transpose.h"

#include <algorithm>

#include "nn/initial.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

// The smaller side of each two-sided option.
void check(const char* layer, std::int64_t in, std::int64_t out, int kernel, int stride, int pad, int output_pad,
           int dilation, int groups, Dtype dtype) {
  require_positive(layer, "in", in);
  require_positive(layer, "out", out);
  require_positive(layer, "kernel", kernel);
  require_positive(layer, "stride", stride);
  require_positive(layer, "dilation", dilation);
  require_positive(layer, "groups", groups);
  require_real(layer, dtype);
  if (pad < 0 || output_pad < 0)
    throw ArgumentError(std::string(layer) + ": pad and output_pad must be at least 0, got " + std::to_string(pad) +
                        " and " + std::to_string(output_pad));
  require_groups(layer, groups, in, out);
}

}  // namespace

ConvTranspose1d::ConvTranspose1d(const ConvTranspose1dOptions& options) : options_(options) {
  const auto& o = options_;
  check("ConvTranspose1d", o.in, o.out, o.kernel, o.stride, o.pad, o.output_pad, o.dilation, o.groups, o.dtype);
  const std::int64_t out_group = o.out / o.groups, fan_in = out_group * o.kernel;
  weight_ = uniform_cell({o.kernel, out_group, o.in}, fan_in, o.dtype, describe() + ".weight");
  if (o.bias) bias_ = uniform_cell({o.out}, fan_in, o.dtype, describe() + ".bias");
}

Array ConvTranspose1d::forward(const Array& x) {
  refuse_channels_first(describe(), options_.in, x);
  return conv_transpose1d(x, weight_, bias_,
                          {.stride = options_.stride,
                           .pad = options_.pad,
                           .output_pad = options_.output_pad,
                           .dilation = options_.dilation,
                           .groups = options_.groups});
}

void ConvTranspose1d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_, Layout::conv_transpose);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  visitor.channels(options_.out);
}

std::string ConvTranspose1d::describe() const {
  const auto& o = options_;
  std::string text =
      "ConvTranspose1d(" + std::to_string(o.in) + ", " + std::to_string(o.out) + ", kernel=" + std::to_string(o.kernel);
  if (o.stride != 1) text += ", stride=" + std::to_string(o.stride);
  if (o.pad != 0) text += ", pad=" + std::to_string(o.pad);
  if (o.output_pad != 0) text += ", output_pad=" + std::to_string(o.output_pad);
  if (o.dilation != 1) text += ", dilation=" + std::to_string(o.dilation);
  if (o.groups != 1) text += ", groups=" + std::to_string(o.groups);
  return text + ")";
}

ConvTranspose2d::ConvTranspose2d(const ConvTranspose2dOptions& options) : options_(options) {
  const auto& o = options_;
  check("ConvTranspose2d", o.in, o.out, std::min(o.kernel.h, o.kernel.w), std::min(o.stride.h, o.stride.w),
        std::min(o.pad.h, o.pad.w), std::min(o.output_pad.h, o.output_pad.w), std::min(o.dilation.h, o.dilation.w),
        o.groups, o.dtype);
  const std::int64_t out_group = o.out / o.groups, fan_in = out_group * o.kernel.h * o.kernel.w;
  weight_ = uniform_cell({o.kernel.h, o.kernel.w, out_group, o.in}, fan_in, o.dtype, describe() + ".weight");
  if (o.bias) bias_ = uniform_cell({o.out}, fan_in, o.dtype, describe() + ".bias");
}

Array ConvTranspose2d::forward(const Array& x) {
  refuse_channels_first(describe(), options_.in, x);
  return conv_transpose2d(x, weight_, bias_,
                          {.stride_h = options_.stride.h,
                           .stride_w = options_.stride.w,
                           .pad_h = options_.pad.h,
                           .pad_w = options_.pad.w,
                           .output_pad_h = options_.output_pad.h,
                           .output_pad_w = options_.output_pad.w,
                           .dilation_h = options_.dilation.h,
                           .dilation_w = options_.dilation.w,
                           .groups = options_.groups});
}

void ConvTranspose2d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_, Layout::conv_transpose);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  visitor.channels(options_.out);
}

std::string ConvTranspose2d::describe() const {
  const auto& o = options_;
  std::string text =
      "ConvTranspose2d(" + std::to_string(o.in) + ", " + std::to_string(o.out) + ", kernel=" + o.kernel.to_string();
  if (o.stride != Size2(1)) text += ", stride=" + o.stride.to_string();
  if (o.pad != Size2(0)) text += ", pad=" + o.pad.to_string();
  if (o.output_pad != Size2(0)) text += ", output_pad=" + o.output_pad.to_string();
  if (o.dilation != Size2(1)) text += ", dilation=" + o.dilation.to_string();
  if (o.groups != 1) text += ", groups=" + std::to_string(o.groups);
  return text + ")";
}

ConvTranspose3d::ConvTranspose3d(const ConvTranspose3dOptions& options) : options_(options) {
  const auto& o = options_;
  check("ConvTranspose3d", o.in, o.out, o.kernel.least(), o.stride.least(), o.pad.least(), o.output_pad.least(),
        o.dilation.least(), o.groups, o.dtype);
  const std::int64_t out_group = o.out / o.groups, fan_in = out_group * o.kernel.d * o.kernel.h * o.kernel.w;
  weight_ =
      uniform_cell({o.kernel.d, o.kernel.h, o.kernel.w, out_group, o.in}, fan_in, o.dtype, describe() + ".weight");
  if (o.bias) bias_ = uniform_cell({o.out}, fan_in, o.dtype, describe() + ".bias");
}

Array ConvTranspose3d::forward(const Array& x) {
  refuse_channels_first(describe(), options_.in, x);
  return conv_transpose3d(x, weight_, bias_,
                          {.stride_d = options_.stride.d,
                           .stride_h = options_.stride.h,
                           .stride_w = options_.stride.w,
                           .pad_d = options_.pad.d,
                           .pad_h = options_.pad.h,
                           .pad_w = options_.pad.w,
                           .output_pad_d = options_.output_pad.d,
                           .output_pad_h = options_.output_pad.h,
                           .output_pad_w = options_.output_pad.w,
                           .dilation_d = options_.dilation.d,
                           .dilation_h = options_.dilation.h,
                           .dilation_w = options_.dilation.w,
                           .groups = options_.groups});
}

void ConvTranspose3d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_, Layout::conv_transpose);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  visitor.channels(options_.out);
}

std::string ConvTranspose3d::describe() const {
  const auto& o = options_;
  std::string text =
      "ConvTranspose3d(" + std::to_string(o.in) + ", " + std::to_string(o.out) + ", kernel=" + o.kernel.to_string();
  if (o.stride != Size3(1)) text += ", stride=" + o.stride.to_string();
  if (o.pad != Size3(0)) text += ", pad=" + o.pad.to_string();
  if (o.output_pad != Size3(0)) text += ", output_pad=" + o.output_pad.to_string();
  if (o.dilation != Size3(1)) text += ", dilation=" + o.dilation.to_string();
  if (o.groups != 1) text += ", groups=" + std::to_string(o.groups);
  return text + ")";
}

}  // namespace samebytes::nn
