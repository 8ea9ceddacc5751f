// Layers without parameters.
#include "samebytes/error.h"
#include "samebytes/nn/dropout.h"
#include "samebytes/nn/flatten.h"
#include "samebytes/nn/pooling.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0.0 && p < 1.0)) throw ArgumentError("Dropout: p must be in [0, 1), " + std::to_string(p) + " came");
}

Array Dropout::forward(const Array& x) { return is_training() && p_ > 0.0 ? dropout(x, p_) : x; }

std::string Dropout::describe() const {
  std::string number = std::to_string(p_);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number += '0';
  return "Dropout(" + number + ")";
}

Array Flatten::forward(const Array& x) {
  seen_ = x.shape().rank() == 4 ? Shape{x.shape()[1], x.shape()[2], x.shape()[3]} : Shape{};
  return flatten(x, 1);
}

void Flatten::visit(Visitor& visitor) {
  visitor.flatten(options_.channels > 0 ? options_.channels : seen_.rank() == 3 ? seen_.back() : 0);
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

Array GlobalAvgPool2d::forward(const Array& x) { return global_avg_pool2d(x); }

namespace {

std::string describe_window(const char* kind, Size2 kernel, Size2 stride, Size2 pad) {
  std::string text = std::string(kind) + "(" + kernel.to_string();
  if (stride != Size2(0) && stride != kernel) text += ", stride=" + stride.to_string();
  if (pad != Size2(0)) text += ", pad=" + pad.to_string();
  return text + ")";
}

}  // namespace

std::string MaxPool2d::describe() const {
  return describe_window("MaxPool2d", options_.kernel, options_.stride, options_.pad);
}

std::string AvgPool2d::describe() const {
  return describe_window("AvgPool2d", options_.kernel, options_.stride, options_.pad);
}

}  // namespace samebytes::nn
