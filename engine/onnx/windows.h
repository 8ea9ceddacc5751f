// Windows: what convolutions, poolings and their inverses of ONNX say about each spatial axis.
#pragma once

#include <cstdint>
#include <vector>

#include "onnx/call.h"
#include "samebytes/ops/conv.h"

namespace samebytes::onnx {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 30;  // of windows, steps and pads

// Along the spatial axes of [N, C, ...]; `before` and `after` are the padding.
struct Windows {
  std::vector<std::int64_t> kernel, stride, dilation, before, after;
};

// Of the node's attributes; `kernel` is the one that a filter has. Refuses what does not fit the node's first input.
Windows windows(const Call& call, std::vector<std::int64_t> kernel);

// The i-th number of a list, as options take it.
inline int at(const std::vector<std::int64_t>& list, std::size_t i) { return static_cast<int>(list[i]); }

// Of a convolution along one and two axes.
Conv1dOptions conv1d_options(const Windows& windows, int groups);
Conv2dOptions conv2d_options(const Windows& windows, int groups);

}  // namespace samebytes::onnx
