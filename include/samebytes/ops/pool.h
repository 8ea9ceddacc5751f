// Pooling, channels last: engine/ops/pool2d.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// src [N, H, W, C].
struct Pool2dOptions {
  int kernel_h = 2, kernel_w = 2;
  int stride_h = 0, stride_w = 0;  // 0: the kernel's size
  int pad_h = 0, pad_w = 0;        // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;  // avg_pool2d only
};
Array max_pool2d(const Array& src, const Pool2dOptions& options = {});  // NaN wins, as in PyTorch
Array avg_pool2d(const Array& src, const Pool2dOptions& options = {});
Array global_avg_pool2d(const Array& src);  // [N, C]

}  // namespace samebytes
