// Resizes images, channels last: engine/ops/resize.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

enum class ResizeMode : std::uint8_t { nearest, bilinear };

// Set either both sizes or both scales. A scale gives the size floor(in scale) and is itself the scale of the
// coordinates, as in PyTorch's interpolate with recompute_scale_factor unset; with a size that scale is in / out.
struct ResizeOptions {
  int out_h = 0, out_w = 0;
  double scale_h = 0, scale_w = 0;
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;  // bilinear: keeps the centres of the corner pixels in place, not their corners
};

// src [N, H, W, C] -> [N, OH, OW, C]. Element o of an axis reads
//   nearest: floor(o scale), scale = in / out or 1 / scale_*
//   bilinear: (o + 0.5) scale - 0.5, at least 0; with align_corners o (in - 1) / (out - 1)
// and bilinear interpolates between the two neighbours on each axis. Coordinates are computed in f32 (f64 for f64
// images).
Array resize(const Input& src, const ResizeOptions& options);

}  // namespace samebytes
