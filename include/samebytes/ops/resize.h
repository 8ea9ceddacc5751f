// Images made larger or smaller, channels last: engine/ops/resize.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

enum class ResizeMode : std::uint8_t { nearest, bilinear };

// Either both sizes or both scales. A scale gives floor(in scale) places and stays the scale of the coordinates, as in
// PyTorch's interpolate with recompute_scale_factor unset; a size makes in / out that scale.
struct ResizeOptions {
  int out_h = 0, out_w = 0;
  double scale_h = 0, scale_w = 0;
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;  // bilinear: the centres of the corner pixels stay in place, not the corners themselves
};

// src [N, H, W, C] -> [N, OH, OW, C]. Place o of an axis looks at
//   nearest: floor(o scale), scale = in / out or 1 / scale_*
//   bilinear: (o + 0.5) scale - 0.5, at least 0; with align_corners o (in - 1) / (out - 1)
// and bilinear mixes the two neighbours on each axis. Coordinates are computed in f32 (f64 for f64 images).
Array resize(const Array& src, const ResizeOptions& options);

}  // namespace samebytes
