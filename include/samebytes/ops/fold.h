// The windows of a convolution as an array, and back: engine/ops/fold.cpp. Letters: N batch, C channels, L windows, T
// places of a window; the last spatial axis is the innermost one of both. All throw ArgumentError with the op's name,
// what it expected and what it got.
#pragma once

#include <cstdint>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// One number for each of one to three spatial axes; lists that are left out are ones, or zeros for the paddings, and
// pad_end is pad.
struct FoldOptions {
  std::vector<int> kernel{};
  std::vector<int> stride{};
  std::vector<int> dilation{};
  std::vector<int> pad{};
  std::vector<int> pad_end{};
};

// PyTorch's unfold: src [N, axes..., C] -> [N, L, T, C], zeros where a window leaves src. Along each axis there are
// (in + pad + pad_end - dilation (kernel - 1) - 1) / stride + 1 windows.
Array unfold(const Input& src, const FoldOptions& options);
// PyTorch's fold, the gradient of unfold: the values of columns [N, L, T, C] added up at their places of
// [N, sizes..., C]. Throws unless L and T are what unfold makes of such an array.
Array fold(const Input& columns, const std::vector<std::int64_t>& sizes, const FoldOptions& options);

}  // namespace samebytes
