// Images and volumes read at places between their elements, channels last: engine/ops/grid_sample.cpp. Letters: N
// batch, C channels, R boxes. All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

enum class GridSampleMode : std::uint8_t { bilinear, nearest, bicubic };
enum class GridSamplePadding : std::uint8_t { zeros, border, reflection };

struct GridSampleOptions {
  GridSampleMode mode = GridSampleMode::bilinear;  // over three axes linear along each; bicubic is for images
  GridSamplePadding padding = GridSamplePadding::zeros;
  bool align_corners = false;  // -1 and 1 are the centres of the outermost elements, not their edges
};

// PyTorch's grid_sample: src [N, H, W, C] at grid [N, OH, OW, 2] -> [N, OH, OW, C], src [N, D, H, W, C] at grid
// [N, OD, OH, OW, 3] -> [N, OD, OH, OW, C]. The last axis of grid is (x, y) or (x, y, z), each from -1 to 1 over src;
// outside, src is zero, or continues its border, or is mirrored. The cubic weights are Keys's (1981) with a = -0.75.
// Gradients flow to src and, but for nearest, to grid. A coordinate that is NaN gives NaN.
Array grid_sample(const Input& src, const Input& grid, const GridSampleOptions& options = {});

struct AffineGridOptions {
  bool align_corners = false;
};
// PyTorch's affine_grid: theta [N, 2, 3] and sizes {OH, OW} -> grid [N, OH, OW, 2], theta [N, 3, 4] and sizes
// {OD, OH, OW} -> [N, OD, OH, OW, 3]: the regular grid's places (x, y, 1) times theta.
Array affine_grid(const Input& theta, const std::vector<std::int64_t>& sizes, const AffineGridOptions& options = {});

// mean: of the samples; max: the largest share of a neighbour in any sample, as ONNX's RoiAlign has it.
enum class RoiAlignMode : std::uint8_t { mean, max };
struct RoiAlignOptions {
  int out_h = 1, out_w = 1;
  double spatial_scale = 1;  // of the boxes' coordinates
  int sampling_ratio = 0;    // samples along each side of a bin; 0: as many as the bin has elements, rounded up
  bool aligned = false;      // boxes lie half an element lower, as elements are counted by their centres
  RoiAlignMode mode = RoiAlignMode::mean;
};
// torchvision's roi_align (He et al. 2017): src [N, H, W, C], boxes [R, 4] of (x1, y1, x2, y2), batch i32 or i64 [R] ->
// [R, out_h, out_w, C]. The host reads boxes and batch, so they get no gradient and a box that the device computes
// makes the host wait.
Array roi_align(const Input& src, const Input& boxes, const Input& batch, const RoiAlignOptions& options = {});

}  // namespace samebytes
