// The forward pass of a convolution of one input channel and few taps, as first layers are (kernels:
// cl/*/conv_single.cl).
#include "ops/conv_geometry.h"

namespace samebytes::detail {

bool is_single(const Launch& run, const ConvGeometry& g, Dtype dtype) {
  const bool has_taps = (g.kernel[1] == 3 && g.kernel[2] == 3) ||
                        (g.kernel[1] == 1 && (g.kernel[2] == 3 || g.kernel[2] == 5 || g.kernel[2] == 7));
  if (g.c != 1 || !has_taps || g.kernel[0] != 1 || g.a.pad[0] != 0 || g.phases() != 1) return false;
  if ((g.kernel[1] > 1 && g.a.dilation[1] != 1) || g.a.dilation[2] != 1) return false;
  if (!run.is_cpu()) return true;
  return g.k % (run.constant("conv", "CONV_NR", dtype) / 2) == 0 &&
         g.out[2] >= run.constant("conv_single", "CONV_SINGLE_PIXELS", dtype);
}

void launch_single(Launch& run, const ConvGeometry& g, Operand bias) {
  const Dtype dtype = run.dst_dtype();
  const std::int64_t images = g.n * g.in[0];  // volumes have one line of taps along their depth
  const Epilogue& epilogue = run.epilogue();
  const std::int64_t lines = images * g.out[1];
  std::int64_t blocks = 1, units = lines;
  if (run.is_cpu()) {
    blocks = ceil_div(g.out[2], run.constant("conv_single", "CONV_SINGLE_BLOCK", dtype));
    units = std::max(ceil_div(lines * blocks, run.choice("conv", "forward", "wanted_groups")),
                     ceil_div(run.choice("conv", "forward", "least_pixels"), ceil_div(g.out[2], blocks)));
  }
  KernelCall call = run.kernel("conv_single_fwd", dtype);
  call.args(run.src(0), run.src(1), bias, epilogue.residual, epilogue.gate, run.dst(), i32_of(images), i32_of(g.in[1]),
            i32_of(g.in[2]), i32_of(g.out[1]), i32_of(g.out[2]), i32_of(g.k), i32_of(g.kernel[1]), i32_of(g.kernel[2]),
            g.a.pad[1], g.a.pad[2], conv_flags(run, bias), i32_of(blocks), i32_of(units));
  if (run.is_cpu())
    call.over_tiles(ceil_div(lines * blocks, units));
  else
    call.over_tiles(ceil_div(run.dst_shape().size(), std::int64_t{256}), 1, 1, 256, 1);
}

}  // namespace samebytes::detail
