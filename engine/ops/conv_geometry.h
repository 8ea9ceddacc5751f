// The sizes of one convolution as the kernels of conv.cl, conv_filter.cl and grouped.cl take them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/launch.h"
#include "ops/conv.h"
#include "ops/sizes.h"
#include "shared/conv.h"

namespace samebytes::detail {

struct ConvGeometry {
  std::int64_t n = 1, c = 1, k = 1;
  std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  ConvAttributes a;

  ConvGeometry(const Shape& src, const Shape& weight, const Shape& dst, const ConvAttributes& attributes)
      : n(src[0]), c(src.back()), k(dst.back()), a(attributes) {
    for (int axis = 3 - a.axes, from = 0; axis < 3; ++axis, ++from) {
      in[axis] = src[from + 1];
      out[axis] = dst[from + 1];
      kernel[axis] = weight[from];
    }
  }

  std::int64_t groups() const { return a.groups; }
  std::int64_t c_group() const { return c / a.groups; }
  std::int64_t k_group() const { return k / a.groups; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t in_pixels() const { return n * in[0] * in[1] * in[2]; }
  std::int64_t out_pixels() const { return n * out[0] * out[1] * out[2]; }
  std::int64_t phases() const { return std::int64_t{a.stride[0]} * a.stride[1] * a.stride[2]; }
  // The size of the input's largest phase, over all volumes.
  std::int64_t phase_size(int axis) const { return (in[axis] + a.stride[axis] - 1) / a.stride[axis]; }
  std::int64_t phase_pixels() const { return n * phase_size(0) * phase_size(1) * phase_size(2); }

  // With `bundle` neighbouring groups taken as one.
  ConvGeometry bundled(std::int64_t bundle) const {
    ConvGeometry g = *this;
    g.a.groups = static_cast<int>(groups() / bundle);
    return g;
  }

  // As one long line, if each pixel is independent.
  ConvGeometry flattened() const {
    ConvGeometry g = *this;
    if (taps() > 1 || phases() > 1 || in_pixels() != out_pixels() || a.pad[0] + a.pad[1] + a.pad[2] > 0) return g;
    g.n = g.in[0] = g.in[1] = g.out[0] = g.out[1] = 1;
    g.in[2] = in_pixels();
    g.out[2] = out_pixels();
    return g;
  }

  conv_sizes sizes() const {  // as the kernels take them
    const auto axes = [](const auto* size) { return conv_axes{i32_of(size[0]), i32_of(size[1]), i32_of(size[2])}; };
    const auto small = [](const int* size) { return conv_axes{size[0], size[1], size[2]}; };
    return {i32_of(n), i32_of(c),    i32_of(k),       a.groups,     axes(in),
            axes(out), axes(kernel), small(a.stride), small(a.pad), small(a.dilation)};
  }
};

// The flags for what a forward pass or input gradient adds and clips as it stores.
inline int conv_flags(const Launch& run, const Operand& bias) {
  const Epilogue& epilogue = run.epilogue();
  const auto is_given = [](const Operand& operand) { return operand.kind != Operand::Kind::none; };
  return (is_given(bias) ? CONV_BIAS : 0) | (is_given(epilogue.residual) ? CONV_RESIDUAL : 0) |
         (epilogue.relu ? CONV_RELU : 0) | (epilogue.hard_swish ? CONV_HARD_SWISH : 0) |
         (epilogue.relu6 ? CONV_RELU6 : 0) | (is_given(epilogue.gate) ? CONV_GATE : 0);
}

// Groups of few channels: grouped.cpp launches them if is_grouped() is true.
bool is_grouped(const Launch& run, const ConvGeometry& g);
void launch_grouped_fwd(Launch& run, const ConvGeometry& g, Operand bias);
void launch_grouped_bwd_input(Launch& run, const ConvGeometry& g, Operand bias);
void launch_grouped_bwd_filter(Launch& run, const ConvGeometry& g);
// One input channel and few taps: conv_single.cpp launches it if is_single() is true.
bool is_single(const Launch& run, const ConvGeometry& g, Dtype dtype);
void launch_single(Launch& run, const ConvGeometry& g, Operand bias);
// Sums the parts of a weight gradient, or of that of a bias, into the result.
void launch_filter_reduce(Launch& run, Operand part, std::int64_t splits, int result = 0);

}  // namespace samebytes::detail
