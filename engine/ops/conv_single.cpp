// The forward pass of a convolution of one input channel and few taps, as first layers are (kernels:
// cl/*/conv_single.cl).
#include "ops/conv_geometry.h"

namespace samebytes::detail {
namespace {

// What the kernel can, and how a forward pass of `lines` lines is shared: its own last arguments and its groups.
struct SingleTiling {
  bool (*takes)(const Launch& run, const ConvGeometry& g, Dtype dtype);
  void (*share)(const Launch& run, KernelCall& call, const ConvGeometry& g, std::int64_t lines, int flags);
};

bool fits_cpu(const Launch& run, const ConvGeometry& g, Dtype dtype) {
  return g.k % (run.constant("conv", "CONV_NR", dtype) / 2) == 0 &&
         g.out[2] >= run.constant("conv_single", "CONV_SINGLE_PIXELS", dtype);
}
void share_cpu(const Launch& run, KernelCall& call, const ConvGeometry& g, std::int64_t lines, int flags) {
  const std::int64_t blocks = ceil_div(g.out[2], run.constant("conv_single", "CONV_SINGLE_BLOCK", run.dst_dtype()));
  const std::int64_t units =
      std::max(ceil_div(lines * blocks, run.choice("conv", "forward", "wanted_groups")),
               ceil_div(run.choice("conv", "forward", "least_pixels"), ceil_div(g.out[2], blocks)));
  call.args(conv_single_shares{i32_of(blocks), i32_of(units)}, flags).over_tiles(ceil_div(lines * blocks, units));
}
void share_gpu(const Launch& run, KernelCall& call, const ConvGeometry&, std::int64_t, int flags) {
  call.args(flags).over_tiles(ceil_div(run.dst_shape().size(), std::int64_t{256}), 1, 1, 256, 1);
}
constexpr PerPersonality<SingleTiling> kSingleTiling{
    {fits_cpu, share_cpu}, {[](const Launch&, const ConvGeometry&, Dtype) { return true; }, share_gpu}};

}  // namespace

bool is_single(const Launch& run, const ConvGeometry& g, Dtype dtype) {
  const bool has_taps = (g.kernel[1] == 3 && g.kernel[2] == 3) ||
                        (g.kernel[1] == 1 && (g.kernel[2] == 3 || g.kernel[2] == 5 || g.kernel[2] == 7));
  if (g.c != 1 || !has_taps || g.kernel[0] != 1 || g.a.pad[0] != 0 || g.phases() != 1) return false;
  if ((g.kernel[1] > 1 && g.a.dilation[1] != 1) || g.a.dilation[2] != 1) return false;
  return run.pick(kSingleTiling).takes(run, g, dtype);
}

void launch_single(Launch& run, const ConvGeometry& g, Operand bias) {
  const Dtype dtype = run.dst_dtype();
  const std::int64_t images = g.n * g.in[0];  // volumes have one line of taps along their depth
  const Epilogue& epilogue = run.epilogue();
  KernelCall call = run.kernel("conv_single_fwd", dtype);
  call.args(run.src(0), run.src(1), bias, epilogue.residual, epilogue.gate, run.dst(), i32_of(images), i32_of(g.in[1]),
            i32_of(g.in[2]), i32_of(g.out[1]), i32_of(g.out[2]), i32_of(g.k), i32_of(g.kernel[1]), i32_of(g.kernel[2]),
            g.a.pad[1], g.a.pad[2]);
  run.pick(kSingleTiling).share(run, call, g, images * g.out[1], conv_flags(run, bias));
}

}  // namespace samebytes::detail
