#include "samebytes/nn/pooling.h"

#include "nn/describe.h"
#include "nn/pool_window.h"
#include "samebytes/error.h"
#include "samebytes/nn/adaptive_pooling.h"
#include "samebytes/nn/lp_pooling.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

Array MaxPool1d::forward(const Array& x) { return max_pool1d(x, window_1d(options_)); }
PoolResult MaxPool1d::with_indices(const Input& x) {
  PoolResult result;
  call([&] {
    result = max_pool1d_with_indices(x, window_1d(options_));
    return result.values;
  });
  return result;
}
Array AvgPool1d::forward(const Array& x) { return avg_pool1d(x, window_1d(options_)); }
Array LpPool1d::forward(const Array& x) { return lp_pool1d(x, options_.p, window_1d(options_)); }
std::string MaxPool1d::describe() const { return describe_window("MaxPool1d", options_); }
std::string AvgPool1d::describe() const { return describe_window("AvgPool1d", options_); }
std::string LpPool1d::describe() const { return describe_window("LpPool1d", options_); }

Array MaxPool2d::forward(const Array& x) { return max_pool2d(x, window_2d(options_)); }
PoolResult MaxPool2d::with_indices(const Input& x) {
  PoolResult result;
  call([&] {
    result = max_pool2d_with_indices(x, window_2d(options_));
    return result.values;
  });
  return result;
}
Array AvgPool2d::forward(const Array& x) { return avg_pool2d(x, window_2d(options_)); }
Array LpPool2d::forward(const Array& x) { return lp_pool2d(x, options_.p, window_2d(options_)); }
std::string MaxPool2d::describe() const { return describe_window("MaxPool2d", options_); }
std::string AvgPool2d::describe() const { return describe_window("AvgPool2d", options_); }
std::string LpPool2d::describe() const { return describe_window("LpPool2d", options_); }

Array MaxPool3d::forward(const Array& x) { return max_pool3d(x, window_3d(options_)); }
PoolResult MaxPool3d::with_indices(const Input& x) {
  PoolResult result;
  call([&] {
    result = max_pool3d_with_indices(x, window_3d(options_));
    return result.values;
  });
  return result;
}
Array AvgPool3d::forward(const Array& x) { return avg_pool3d(x, window_3d(options_)); }
Array LpPool3d::forward(const Array& x) { return lp_pool3d(x, options_.p, window_3d(options_)); }
std::string MaxPool3d::describe() const { return describe_window("MaxPool3d", options_); }
std::string AvgPool3d::describe() const { return describe_window("AvgPool3d", options_); }
std::string LpPool3d::describe() const { return describe_window("LpPool3d", options_); }

Array GlobalAvgPool1d::forward(const Array& x) { return global_avg_pool1d(x); }
Array GlobalAvgPool2d::forward(const Array& x) { return global_avg_pool2d(x); }
Array GlobalAvgPool3d::forward(const Array& x) {
  if (x.shape().rank() != 5)
    throw ArgumentError("GlobalAvgPool3d: x must be [N, D, H, W, C], it is " + x.shape().to_string());
  return mean(x, {1, 2, 3});
}

Array AdaptiveAvgPool1d::forward(const Array& x) { return adaptive_avg_pool1d(x, out_); }
Array AdaptiveMaxPool1d::forward(const Array& x) { return adaptive_max_pool1d(x, out_); }
Array AdaptiveAvgPool2d::forward(const Array& x) { return adaptive_avg_pool2d(x, out_.h, out_.w); }
Array AdaptiveMaxPool2d::forward(const Array& x) { return adaptive_max_pool2d(x, out_.h, out_.w); }
Array AdaptiveAvgPool3d::forward(const Array& x) { return adaptive_avg_pool3d(x, out_.d, out_.h, out_.w); }
Array AdaptiveMaxPool3d::forward(const Array& x) { return adaptive_max_pool3d(x, out_.d, out_.h, out_.w); }
std::string AdaptiveAvgPool1d::describe() const { return "AdaptiveAvgPool1d(" + text_of(out_) + ")"; }
std::string AdaptiveMaxPool1d::describe() const { return "AdaptiveMaxPool1d(" + text_of(out_) + ")"; }
std::string AdaptiveAvgPool2d::describe() const { return "AdaptiveAvgPool2d(" + text_of(out_) + ")"; }
std::string AdaptiveMaxPool2d::describe() const { return "AdaptiveMaxPool2d(" + text_of(out_) + ")"; }
std::string AdaptiveAvgPool3d::describe() const { return "AdaptiveAvgPool3d(" + text_of(out_) + ")"; }
std::string AdaptiveMaxPool3d::describe() const { return "AdaptiveMaxPool3d(" + text_of(out_) + ")"; }

}  // namespace samebytes::nn
