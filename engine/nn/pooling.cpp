#include "samebytes/nn/pooling.h"

#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

std::string describe_window(const char* kind, Size2 kernel, Size2 stride, Size2 pad) {
  std::string text = std::string(kind) + "(" + kernel.to_string();
  if (stride != Size2(0) && stride != kernel) text += ", stride=" + stride.to_string();
  if (pad != Size2(0)) text += ", pad=" + pad.to_string();
  return text + ")";
}

}  // namespace

Array MaxPool1d::forward(const Array& x) {
  return max_pool1d(
      x, {.kernel = options_.kernel, .stride = options_.stride, .pad = options_.pad, .ceil_mode = options_.ceil_mode});
}

Array AvgPool1d::forward(const Array& x) {
  return avg_pool1d(x, {.kernel = options_.kernel,
                        .stride = options_.stride,
                        .pad = options_.pad,
                        .ceil_mode = options_.ceil_mode,
                        .count_include_pad = options_.count_include_pad});
}

Array MaxPool2d::forward(const Array& x) {
  return max_pool2d(x, {.kernel_h = options_.kernel.h,
                        .kernel_w = options_.kernel.w,
                        .stride_h = options_.stride.h,
                        .stride_w = options_.stride.w,
                        .pad_h = options_.pad.h,
                        .pad_w = options_.pad.w,
                        .ceil_mode = options_.ceil_mode});
}

Array AvgPool2d::forward(const Array& x) {
  return avg_pool2d(x, {.kernel_h = options_.kernel.h,
                        .kernel_w = options_.kernel.w,
                        .stride_h = options_.stride.h,
                        .stride_w = options_.stride.w,
                        .pad_h = options_.pad.h,
                        .pad_w = options_.pad.w,
                        .ceil_mode = options_.ceil_mode,
                        .count_include_pad = options_.count_include_pad});
}

Array GlobalAvgPool1d::forward(const Array& x) { return global_avg_pool1d(x); }
Array GlobalAvgPool2d::forward(const Array& x) { return global_avg_pool2d(x); }
Array AdaptiveAvgPool1d::forward(const Array& x) { return adaptive_avg_pool1d(x, out_); }
Array AdaptiveMaxPool1d::forward(const Array& x) { return adaptive_max_pool1d(x, out_); }
Array AdaptiveAvgPool2d::forward(const Array& x) { return adaptive_avg_pool2d(x, out_.h, out_.w); }
Array AdaptiveMaxPool2d::forward(const Array& x) { return adaptive_max_pool2d(x, out_.h, out_.w); }

std::string MaxPool2d::describe() const {
  return describe_window("MaxPool2d", options_.kernel, options_.stride, options_.pad);
}

std::string AvgPool2d::describe() const {
  return describe_window("AvgPool2d", options_.kernel, options_.stride, options_.pad);
}

std::string MaxPool1d::describe() const {
  return describe_window("MaxPool1d", options_.kernel, options_.stride, options_.pad);
}

std::string AvgPool1d::describe() const {
  return describe_window("AvgPool1d", options_.kernel, options_.stride, options_.pad);
}

std::string AdaptiveAvgPool1d::describe() const { return "AdaptiveAvgPool1d(" + std::to_string(out_) + ")"; }
std::string AdaptiveMaxPool1d::describe() const { return "AdaptiveMaxPool1d(" + std::to_string(out_) + ")"; }
std::string AdaptiveAvgPool2d::describe() const { return "AdaptiveAvgPool2d(" + out_.to_string() + ")"; }
std::string AdaptiveMaxPool2d::describe() const { return "AdaptiveMaxPool2d(" + out_.to_string() + ")"; }

}  // namespace samebytes::nn
