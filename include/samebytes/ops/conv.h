// Convolutions, channels last: engine/ops/conv2d.cpp. Letters: N batch, H W height and width, C channels, K output
// channels.
// All throw ArgumentError: op, need, what came.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// src [N, H, W, C], weight [kh, kw, C / groups, K], bias [K] or an empty handle.
struct Conv2dOptions {
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
};
Array conv2d(const Array& src, const Array& weight, const Array& bias = {}, const Conv2dOptions& options = {});

}  // namespace samebytes
