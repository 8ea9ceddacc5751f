// Pooling over one to three axes by lists of places: windows with gaps, sides of their own, and indices. What
// pool2d.cpp does not do in one kernel.
#pragma once

#include <array>
#include <string>

#include "samebytes/ops/pool.h"

namespace samebytes::detail {

// Windows along the spatial axes of src, all in the order of the axes.
struct PoolWindows {
  int axes = 2;
  std::array<int, 3> kernel{}, stride{}, pad{}, pad_end{}, dilation{};
  bool ceil_mode = false, count_include_pad = true;
  int divisor = 0;

  bool has_gaps() const { return dilation != std::array{1, 1, 1}; }
};
PoolWindows pool_windows(const Pool1dOptions& options);
PoolWindows pool_windows(const Pool2dOptions& options);
PoolWindows pool_windows(const Pool3dOptions& options);

// "2 x 3" of the axes in use.
std::string describe_sides(const PoolWindows& windows, const std::array<int, 3>& sides);

// The windows along an axis of `in` places. May be 0 or less where the kernel does not fit.
std::int64_t pooled_size(const PoolWindows& windows, int axis, std::int64_t in);
// Throws ArgumentError unless src is floating, channels last, of so many axes, and every window has a place of it.
void check_pooling(const char* op, const Array& src, const PoolWindows& windows);

PoolResult max_pool_nd(const char* op, const Array& src, const PoolWindows& windows);
Array avg_pool_nd(const char* op, const Array& src, const PoolWindows& windows);

// Of volumes.
Array adaptive_avg_pool_nd(const char* op, const Array& src, const std::array<int, 3>& out);
Array adaptive_max_pool_nd(const char* op, const Array& src, const std::array<int, 3>& out);

}  // namespace samebytes::detail
