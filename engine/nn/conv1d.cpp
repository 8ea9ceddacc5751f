#include "samebytes/nn/conv1d.h"

#include "nn/initial.h"
#include "nn/quantized.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

Conv1d::Conv1d(const Conv1dOptions& options) : options_(options) {
  require_positive("Conv1d", "in", options.in);
  require_positive("Conv1d", "out", options.out);
  require_positive("Conv1d", "kernel", options.kernel);
  require_positive("Conv1d", "stride", options.stride);
  require_positive("Conv1d", "dilation", options.dilation);
  require_positive("Conv1d", "groups", options.groups);
  require_real("Conv1d", options.dtype);
  if (options.pad < 0) throw ArgumentError("Conv1d: pad must be at least 0, got " + std::to_string(options.pad));
  if (options.pad_end && *options.pad_end < 0)
    throw ArgumentError("Conv1d: pad_end must be at least 0, got " + std::to_string(*options.pad_end));
  require_groups("Conv1d", options.groups, options.in, options.out);
  const std::int64_t in_group = options.in / options.groups, fan_in = in_group * options.kernel;
  weight_ = uniform_cell({options.kernel, in_group, options.out}, fan_in, options.dtype, describe() + ".weight");
  if (options.bias) bias_ = uniform_cell({options.out}, fan_in, options.dtype, describe() + ".bias");
}

Array Conv1d::forward(const Array& x) {
  refuse_channels_first(describe(), options_.in, x);
  const samebytes::Conv1dOptions options{.stride = options_.stride,
                                         .pad = options_.pad,
                                         .dilation = options_.dilation,
                                         .groups = options_.groups,
                                         .pad_end = options_.pad_end};
  if (weight_.quantized()) return quantized_conv(x, weight_, bias_, options);
  return conv1d(x, weight_, bias_, options);
}

void Conv1d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_, Layout::conv);
  visitor.quantizable("", weight_, options_.groups);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  visitor.channels(options_.out);
}

std::string Conv1d::describe() const {
  std::string text = "Conv1d(" + std::to_string(options_.in) + ", " + std::to_string(options_.out) +
                     ", kernel=" + std::to_string(options_.kernel);
  if (options_.stride != 1) text += ", stride=" + std::to_string(options_.stride);
  if (options_.pad != 0) text += ", pad=" + std::to_string(options_.pad);
  if (options_.pad_end) text += ", pad_end=" + std::to_string(*options_.pad_end);
  if (options_.dilation != 1) text += ", dilation=" + std::to_string(options_.dilation);
  if (options_.groups != 1) text += ", groups=" + std::to_string(options_.groups);
  return text + ")";
}

}  // namespace samebytes::nn
