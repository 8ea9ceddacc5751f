// What grid_sample's kernels and the code that launches them (engine/ops/grid_sample.cpp) both say. Read by C++ and by
// OpenCL C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

enum { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC };
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

// src [images, depth, height, width, channels], where depth is 1 for images of two axes; a grid of `axes` coordinates,
// x first. order_*: how often the samples are differentiated for each coordinate.
typedef struct {
  int depth, height, width, channels, axes, mode, padding, is_aligned, order_x, order_y, order_z;
} grid_sample_sizes;

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
