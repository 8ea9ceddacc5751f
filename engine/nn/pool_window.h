// The options of pooling layers as those of the ops.
#pragma once

#include "samebytes/ops/pool.h"

namespace samebytes::nn {

// What layers and ops have in common beside the sizes.
template <class Window, class Options>
Window with_modes(Window window, const Options& options) {
  window.ceil_mode = options.ceil_mode;
  if constexpr (requires { options.count_include_pad; }) window.count_include_pad = options.count_include_pad;
  if constexpr (requires { options.divisor; }) window.divisor = options.divisor;
  return window;
}

template <class Options>
Pool1dOptions window_1d(const Options& o) {
  return with_modes(
      Pool1dOptions{.kernel = o.kernel, .stride = o.stride, .pad = o.pad, .dilation = o.dilation, .pad_end = o.pad_end},
      o);
}

template <class Options>
Pool2dOptions window_2d(const Options& o) {
  Pool2dOptions window{.kernel_h = o.kernel.h,
                       .kernel_w = o.kernel.w,
                       .stride_h = o.stride.h,
                       .stride_w = o.stride.w,
                       .pad_h = o.pad.h,
                       .pad_w = o.pad.w,
                       .dilation_h = o.dilation.h,
                       .dilation_w = o.dilation.w};
  if (o.pad_end) {
    window.pad_end_h = o.pad_end->h;
    window.pad_end_w = o.pad_end->w;
  }
  return with_modes(window, o);
}

template <class Options>
Pool3dOptions window_3d(const Options& o) {
  Pool3dOptions window{.kernel_d = o.kernel.d,
                       .kernel_h = o.kernel.h,
                       .kernel_w = o.kernel.w,
                       .stride_d = o.stride.d,
                       .stride_h = o.stride.h,
                       .stride_w = o.stride.w,
                       .pad_d = o.pad.d,
                       .pad_h = o.pad.h,
                       .pad_w = o.pad.w,
                       .dilation_d = o.dilation.d,
                       .dilation_h = o.dilation.h,
                       .dilation_w = o.dilation.w};
  if (o.pad_end) {
    window.pad_end_d = o.pad_end->d;
    window.pad_end_h = o.pad_end->h;
    window.pad_end_w = o.pad_end->w;
  }
  return with_modes(window, o);
}

}  // namespace samebytes::nn
