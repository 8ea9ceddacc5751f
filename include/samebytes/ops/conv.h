// Convolutions, channels last: engine/ops/conv_nd.cpp, engine/ops/conv_transpose.cpp. Letters: N batch, L length, D H W
// depth, height and width, C channels, K output channels. They are cross-correlations, as in PyTorch: with zeros around
// src,
//   dst[n, o, k] = bias[k] + sum over taps t and channels c of the group of k: src[n, o stride - pad + t dilation, c]
//   weight[t, c, k]
// along each of their axes, and each axis of dst has (in + 2 pad - dilation (kernel - 1) - 1) / stride + 1 places.
// bias is [K] or an empty handle, added in f32: beside 16-bit arrays an f32 bias leaves the result 16 bits wide. C and
// K divide into `groups`; output channels see the input channels of their group. All throw ArgumentError: op, need,
// what came.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// src [N, L, C], weight [kw, C / groups, K] -> [N, OL, K].
struct Conv1dOptions {
  int stride = 1;
  int pad = 0;
  int dilation = 1;
  int groups = 1;
};
Array conv1d(const Array& src, const Array& weight, const Array& bias = {}, const Conv1dOptions& options = {});

// src [N, H, W, C], weight [kh, kw, C / groups, K] -> [N, OH, OW, K].
struct Conv2dOptions {
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
};
Array conv2d(const Array& src, const Array& weight, const Array& bias = {}, const Conv2dOptions& options = {});

// src [N, D, H, W, C], weight [kd, kh, kw, C / groups, K] -> [N, OD, OH, OW, K].
struct Conv3dOptions {
  int stride_d = 1, stride_h = 1, stride_w = 1;
  int pad_d = 0, pad_h = 0, pad_w = 0;
  int dilation_d = 1, dilation_h = 1, dilation_w = 1;
  int groups = 1;
};
Array conv3d(const Array& src, const Array& weight, const Array& bias = {}, const Conv3dOptions& options = {});

// Transposed convolution: the gradient of a convolution of K to C channels with respect to its input. Each axis of dst
// has (in - 1) stride - 2 pad + dilation (kernel - 1) + output_pad + 1 places; output_pad adds places at the end, since
// several sizes lead to the same one under a stride, and is smaller than stride or dilation.
// src [N, L, C], weight [kw, K / groups, C] -> [N, OL, K].
struct ConvTranspose1dOptions {
  int stride = 1;
  int pad = 0;
  int output_pad = 0;
  int dilation = 1;
  int groups = 1;
};
Array conv_transpose1d(const Array& src, const Array& weight, const Array& bias = {},
                       const ConvTranspose1dOptions& options = {});

// src [N, H, W, C], weight [kh, kw, K / groups, C] -> [N, OH, OW, K].
struct ConvTranspose2dOptions {
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int output_pad_h = 0, output_pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
};
Array conv_transpose2d(const Array& src, const Array& weight, const Array& bias = {},
                       const ConvTranspose2dOptions& options = {});

}  // namespace samebytes
