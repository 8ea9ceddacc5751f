// Pooling, channels last: engine/ops/pool2d.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// src [N, L, C] -> [N, OL, C].
struct Pool1dOptions {
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;     // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;  // avg_pool1d only
};
Array max_pool1d(const Input& src, const Pool1dOptions& options = {});  // propagates NaN, as PyTorch
Array avg_pool1d(const Input& src, const Pool1dOptions& options = {});
Array global_avg_pool1d(const Input& src);  // [N, C]

// src [N, H, W, C].
struct Pool2dOptions {
  int kernel_h = 2, kernel_w = 2;
  int stride_h = 0, stride_w = 0;  // 0: the kernel's size
  int pad_h = 0, pad_w = 0;        // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;  // avg_pool2d only
};
Array max_pool2d(const Input& src, const Pool2dOptions& options = {});  // propagates NaN, as PyTorch
Array avg_pool2d(const Input& src, const Pool2dOptions& options = {});
Array global_avg_pool2d(const Input& src);  // [N, C]

// Pooling to a given output size: element i of an axis covers floor(i in / out) to ceil((i + 1) in / out) - 1, as in
// PyTorch, so windows may overlap and differ in size by one. src [N, L, C] -> [N, out, C], src [N, H, W, C] ->
// [N, out_h, out_w, C].
Array adaptive_avg_pool1d(const Input& src, int out);
Array adaptive_max_pool1d(const Input& src, int out);  // propagates NaN
Array adaptive_avg_pool2d(const Input& src, int out_h, int out_w);
Array adaptive_max_pool2d(const Input& src, int out_h, int out_w);  // propagates NaN

}  // namespace samebytes
