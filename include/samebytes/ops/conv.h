// Convolutions, channels last: engine/ops/conv_nd.cpp, engine/ops/conv_transpose.cpp. Letters: N batch, L length, D H W
// depth, height and width, C channels, K output channels. They are cross-correlations, as in PyTorch. With zeros around
// src,
//   dst[n, o, k] = bias[k] + sum over taps t and channels c of the group of k: src[n, o stride - pad + t dilation, c]
//   weight[t, c, k]
// along each axis, and each axis of dst has size (in + pad + pad_end - dilation (kernel - 1) - 1) / stride + 1; pad_end
// is pad unless it is set, and one that is larger than pad costs a padded copy of src. bias is [K] or an empty handle
// and is added in f32: an f32 bias does not widen a 16-bit result. `groups` must divide C and K; an output channel
// reads the input channels of its group. All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <optional>

#include "samebytes/array.h"

namespace samebytes {

// src [N, L, C], weight [kw, C / groups, K] -> [N, OL, K].
struct Conv1dOptions {
  int stride = 1;
  int pad = 0;
  int dilation = 1;
  int groups = 1;
  std::optional<int> pad_end{};
};
Array conv1d(const Input& src, const Input& weight, const Input& bias = {}, const Conv1dOptions& options = {});

// src [N, H, W, C], weight [kh, kw, C / groups, K] -> [N, OH, OW, K].
struct Conv2dOptions {
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
  std::optional<int> pad_end_h{}, pad_end_w{};
};
Array conv2d(const Input& src, const Input& weight, const Input& bias = {}, const Conv2dOptions& options = {});

// src [N, D, H, W, C], weight [kd, kh, kw, C / groups, K] -> [N, OD, OH, OW, K].
struct Conv3dOptions {
  int stride_d = 1, stride_h = 1, stride_w = 1;
  int pad_d = 0, pad_h = 0, pad_w = 0;
  int dilation_d = 1, dilation_h = 1, dilation_w = 1;
  int groups = 1;
  std::optional<int> pad_end_d{}, pad_end_h{}, pad_end_w{};
};
Array conv3d(const Input& src, const Input& weight, const Input& bias = {}, const Conv3dOptions& options = {});

// Transposed convolution: the gradient of a convolution of K to C channels with respect to its input. Each axis of dst
// has size (in - 1) stride - 2 pad + dilation (kernel - 1) + output_pad + 1. output_pad extends the end, since with a
// stride several input sizes of a convolution give the same output size; it must be below stride or dilation.
// src [N, L, C], weight [kw, K / groups, C] -> [N, OL, K].
struct ConvTranspose1dOptions {
  int stride = 1;
  int pad = 0;
  int output_pad = 0;
  int dilation = 1;
  int groups = 1;
};
Array conv_transpose1d(const Input& src, const Input& weight, const Input& bias = {},
                       const ConvTranspose1dOptions& options = {});

// src [N, H, W, C], weight [kh, kw, K / groups, C] -> [N, OH, OW, K].
struct ConvTranspose2dOptions {
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int output_pad_h = 0, output_pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
};
Array conv_transpose2d(const Input& src, const Input& weight, const Input& bias = {},
                       const ConvTranspose2dOptions& options = {});

// src [N, D, H, W, C], weight [kd, kh, kw, K / groups, C] -> [N, OD, OH, OW, K].
struct ConvTranspose3dOptions {
  int stride_d = 1, stride_h = 1, stride_w = 1;
  int pad_d = 0, pad_h = 0, pad_w = 0;
  int output_pad_d = 0, output_pad_h = 0, output_pad_w = 0;
  int dilation_d = 1, dilation_h = 1, dilation_w = 1;
  int groups = 1;
};
Array conv_transpose3d(const Input& src, const Input& weight, const Input& bias = {},
                       const ConvTranspose3dOptions& options = {});

}  // namespace samebytes
