// Pooling, channels last: engine/ops/pool2d.cpp, and where windows have gaps or three axes, or places are
// wanted, engine/ops/pool_nd.cpp. Letters: N batch, L length, D H W depth, height and width, C channels. Along each
// axis, window o covers the places o stride - pad + t dilation of src, t below kernel, as far as src has them, and the
// result has (in + pad + pad_end - dilation (kernel - 1) - 1) / stride + 1 places, rounded down; rounded up with
// ceil_mode, where no window starts behind the padding's first place at the end. Every window must have a place of src.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <optional>

#include "samebytes/array.h"

namespace samebytes {

// src [N, L, C] -> [N, OL, C].
struct Pool1dOptions {
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;     // before src, and behind it where pad_end is not set
  bool ceil_mode = false;
  bool count_include_pad = true;  // means only: the divisor counts the padding
  int dilation = 1;
  std::optional<int> pad_end{};
  int divisor = 0;  // means only: divides by this number instead of the count of places
};
Array max_pool1d(const Input& src, const Pool1dOptions& options = {});  // propagates NaN, as PyTorch
Array avg_pool1d(const Input& src, const Pool1dOptions& options = {});
Array global_avg_pool1d(const Input& src);  // [N, C]

// src [N, H, W, C].
struct Pool2dOptions {
  int kernel_h = 2, kernel_w = 2;
  int stride_h = 0, stride_w = 0;  // 0: the kernel's size
  int pad_h = 0, pad_w = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  int dilation_h = 1, dilation_w = 1;
  std::optional<int> pad_end_h{}, pad_end_w{};
  int divisor = 0;
};
Array max_pool2d(const Input& src, const Pool2dOptions& options = {});  // propagates NaN, as PyTorch
Array avg_pool2d(const Input& src, const Pool2dOptions& options = {});
Array global_avg_pool2d(const Input& src);  // [N, C]

// src [N, D, H, W, C] -> [N, OD, OH, OW, C].
struct Pool3dOptions {
  int kernel_d = 2, kernel_h = 2, kernel_w = 2;
  int stride_d = 0, stride_h = 0, stride_w = 0;  // 0: the kernel's size
  int pad_d = 0, pad_h = 0, pad_w = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  int dilation_d = 1, dilation_h = 1, dilation_w = 1;
  std::optional<int> pad_end_d{}, pad_end_h{}, pad_end_w{};
  int divisor = 0;
};
Array max_pool3d(const Input& src, const Pool3dOptions& options = {});  // propagates NaN
Array avg_pool3d(const Input& src, const Pool3dOptions& options = {});

// The largest values and where they lie: i32 indices of the values' shape, the place in the source's spatial axes taken
// as one, counted per channel as PyTorch does ((d H + h) W + w of a volume). The first of equal values, the first NaN
// before everything. The gradient flows through the values.
struct PoolResult {
  Array values;
  Array indices;
};
PoolResult max_pool1d_with_indices(const Input& src, const Pool1dOptions& options = {});
PoolResult max_pool2d_with_indices(const Input& src, const Pool2dOptions& options = {});
PoolResult max_pool3d_with_indices(const Input& src, const Pool3dOptions& options = {});

// What max_pool*_with_indices leaves, put back: src at its indices in zeros of the given size. src [N, ..., C] and
// i32 or i64 indices of its shape -> [N, out, C], [N, out_h, out_w, C], [N, out_d, out_h, out_w, C]. Where an index
// comes twice the last one counts. Throws ArgumentError unless the sizes are at least 1; an index outside makes its
// channel NaN.
Array max_unpool1d(const Input& src, const Input& indices, int out);
Array max_unpool2d(const Input& src, const Input& indices, int out_h, int out_w);
Array max_unpool3d(const Input& src, const Input& indices, int out_d, int out_h, int out_w);

// (sum of |x|^p over the window)^(1 / p) for p above 0, as ONNX's LpPool; PyTorch's lp_pool leaves the sign of x where
// p is odd. The gradient at 0 is 0.
Array lp_pool1d(const Input& src, double p, const Pool1dOptions& options = {});
Array lp_pool2d(const Input& src, double p, const Pool2dOptions& options = {});
Array lp_pool3d(const Input& src, double p, const Pool3dOptions& options = {});

// Pooling to a given output size: element i of an axis covers floor(i in / out) to ceil((i + 1) in / out) - 1, as in
// PyTorch, so windows may overlap and differ in size by one. src [N, L, C] -> [N, out, C], src [N, H, W, C] ->
// [N, out_h, out_w, C], src [N, D, H, W, C] -> [N, out_d, out_h, out_w, C].
Array adaptive_avg_pool1d(const Input& src, int out);
Array adaptive_max_pool1d(const Input& src, int out);  // propagates NaN
Array adaptive_avg_pool2d(const Input& src, int out_h, int out_w);
Array adaptive_max_pool2d(const Input& src, int out_h, int out_w);  // propagates NaN
Array adaptive_avg_pool3d(const Input& src, int out_d, int out_h, int out_w);
Array adaptive_max_pool3d(const Input& src, int out_d, int out_h, int out_w);  // propagates NaN

}  // namespace samebytes
