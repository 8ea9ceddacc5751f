// Arrays of another size, channels last: engine/ops/resize.cpp, interpolate.cpp, resample.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>
#include <vector>

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

// How each place of a result's axis is a weighted sum of places of the source's axis. Both lists are [OUT, taps]; a
// place of -1 counts nothing.
struct AxisTaps {
  std::int64_t in = 0;  // places of the source's axis
  std::int64_t taps = 0;
  std::vector<std::int32_t> places;
  std::vector<double> weights;
};
// The axis of src, of size taps.in, replaced by one of OUT places:
//   dst[..., j, ...] = sum over t of weights[j, t] src[..., places[j, t], ...]
// added in the order of t, in f32 (f64 for f64 arrays). src must be floating. The gradient flows to src.
Array resample_axis(const Input& src, int axis, const AxisTaps& taps);

enum class InterpolateMode : std::uint8_t { nearest, nearest_exact, linear, cubic, area };

// One size, or one scale, for each spatial axis; a single scale counts for all of them. A scale gives the size
// floor(in scale) and is itself the scale of the coordinates, as in PyTorch's interpolate with recompute_scale_factor
// unset.
struct InterpolateOptions {
  std::vector<std::int64_t> size{};
  std::vector<double> scale{};
  InterpolateMode mode = InterpolateMode::nearest;
  bool align_corners = false;  // linear and cubic: keeps the centres of the corner places in place
  bool antialias = false;      // linear and cubic: widens the filter where an axis shrinks, as Pillow does
};

// src [N, one to three axes, C], each spatial axis resized. Element o of an axis reads, with the step s = in / out or
// 1 / scale,
//   nearest: floor(o s); nearest_exact: floor((o + 0.5) s)
//   linear, cubic: between 2 or 4 neighbours of (o + 0.5) s - 0.5, or of o (in - 1) / (out - 1) with align_corners.
//     Linear coordinates are at least 0; the cubic weights are Keys's (1981) with a = -0.75
//   antialias: all places within max(s, 1) or 2 max(s, 1) of (o + 0.5) s; the cubic weights have a = -0.5
//   area: the mean over floor(o in / out) to ceil((o + 1) in / out) - 1
// Throws ArgumentError unless exactly one of size and scale is given and leaves at least one place, and for
// align_corners and antialias with a mode that has none.
Array interpolate(const Input& src, const InterpolateOptions& options);

}  // namespace samebytes
