#include <algorithm>

#include "ops/winograd.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kMostWinograd1dWeights = 256 * 256;  // more would not stay in a second-level cache

std::int64_t tile_of(const ConvGeometry& g) { return kWinograd1dPositions + 1 - g.kernel[2]; }

std::int64_t filter_block(const Launch& run, const ConvGeometry& g, Dtype real) {
  return std::min(
      run.constant("winograd_filter", "WINOGRAD_FILTER_BLOCK", real),
      run.constant("winograd_filter", "WINOGRAD_FILTER_VALUES", real) / (kWinograd1dPositions * (g.c + g.k)));
}

void add_line_sizes(KernelCall& call, const ConvGeometry& g) {
  call.args(i32_of(g.n), i32_of(g.in[2]), i32_of(g.c), i32_of(g.out[2]), i32_of(g.k), i32_of(g.kernel[2]), g.a.pad[2]);
}

struct LineTiles {
  std::int64_t tiles, block, least, columns;
  int flags;
};

// What the kernels along a line are to each personality.
struct LineTiling {
  bool has_sums;  // the weight gradient's kernel sums dy on its way
  bool (*fits_filter)(const Launch& run, const ConvGeometry& g, Dtype real);
  void (*share)(const Launch& run, KernelCall& call, const LineTiles& t, Dtype real);  // the last arguments, the groups
  std::int64_t (*parts)(const ConvGeometry& g);
  void (*share_filter)(const Launch& run, KernelCall& call, KernelCall& sum, const ConvGeometry& g, Operand sums,
                       const WinogradParts& p, Dtype real);
};

void share_cpu(const Launch&, KernelCall& call, const LineTiles& t, Dtype) {
  const std::int64_t each = ceil_div(ceil_div(t.tiles, t.block), WinogradWork::wanted_groups) * t.block;
  call.args(winograd_shares{i32_of(each), i32_of(t.block)}, t.flags).over_tiles(ceil_div(t.tiles, each));
}
void share_cpu_filter(const Launch& run, KernelCall& call, KernelCall& sum, const ConvGeometry& g, Operand sums,
                      const WinogradParts& p, Dtype real) {
  call.args(sums);
  add_line_sizes(call, g);
  call.args(winograd_shares{i32_of(p.each), i32_of(filter_block(run, g, real))}).over_tiles(p.splits);
  sum.over_tiles(g.c);
}
void share_gpu(const Launch& run, KernelCall& call, const LineTiles& t, Dtype real) {
  const std::int64_t columns = run.constant("winograd_1d", "WINOGRAD_1D_COLUMNS", real);
  call.args(t.flags).over_tiles(ceil_div(t.tiles, t.least), ceil_div(t.columns, columns), 1, i32_of(columns),
                                i32_of(t.least));
}
void share_gpu_filter(const Launch& run, KernelCall& call, KernelCall& sum, const ConvGeometry& g, Operand,
                      const WinogradParts& p, Dtype real) {
  const std::int64_t tile = run.constant("winograd_filter", "WINOGRAD_FILTER_TILE", real);
  add_line_sizes(call, g);
  call.args(i32_of(p.each)).over_tiles(p.splits, 1, ceil_div(g.c, tile) * ceil_div(g.k, tile), 16, 16);
  sum.over_tiles(ceil_div(g.k, std::int64_t{8}), ceil_div(g.c, std::int64_t{8}), 1, 8, 8);
}

constexpr PerPersonality<LineTiling> kLineTiling{
    {.has_sums = true,
     .fits_filter = [](const Launch& run, const ConvGeometry& g,
                       Dtype real) { return filter_block(run, g, real) >= WinogradWork::least_filter_block; },
     .share = share_cpu,
     .parts =
         [](const ConvGeometry& g) {
           return std::clamp(WinogradWork::most_sums / (kWinograd1dPositions * g.c * g.k), WinogradWork::least_parts,
                             WinogradWork::most_parts);
         },
     .share_filter = share_cpu_filter},
    {.has_sums = false,
     .fits_filter = [](const Launch&, const ConvGeometry&, Dtype) { return true; },
     .share = share_gpu,
     .parts = [](const ConvGeometry&) { return std::int64_t{WinogradWork::gpu_parts}; },
     .share_filter = share_gpu_filter}};

}  // namespace

bool is_winograd_1d_possible(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype real) {
  const std::int64_t taps = g.kernel[2];
  if (g.groups() != 1 || taps < 3 || taps > 5 || g.a.stride[2] != 1 || g.a.dilation[2] != 1 || g.a.pad[2] >= taps)
    return false;
  const std::int64_t lanes = winograd_lanes(run, real),
                     most = run.constant("winograd_1d", "WINOGRAD_1D_MOST_CHANNELS", real);
  if (g.c % lanes != 0 || g.k % lanes != 0 || std::max(g.c, g.k) > most) return false;
  return pass != ConvPass::filter || run.pick(kLineTiling).fits_filter(run, g, real);
}

// Where the saved multiplications outweigh the transforms.
bool is_winograd_1d_worthwhile(const ConvGeometry& g, ConvPass pass) {
  const std::int64_t size = (pass == ConvPass::input ? g.in : g.out)[2], tiles = ceil_div(size, tile_of(g));
  return g.n * tiles >= WinogradWork::least_tiles && g.c * g.k <= kMostWinograd1dWeights &&
         2 * g.kernel[2] * size >= 3 * kWinograd1dPositions * tiles;
}

void launch_winograd_1d(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias, bool transposed,
                        Operand transformed) {
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const std::int64_t depth = transposed ? g.k : g.c, columns = transposed ? g.c : g.k, taps = g.kernel[2];
  const std::int64_t in = (transposed ? g.out : g.in)[2], out = (transposed ? g.in : g.out)[2];
  const std::int64_t pad = transposed ? taps - 1 - g.a.pad[2] : g.a.pad[2];
  const std::int64_t least = run.constant("winograd_1d", "WINOGRAD_1D_TILES", real),
                     most = run.constant("winograd_1d", "WINOGRAD_1D_MOST_TILES", real);
  const std::int64_t block =
      std::clamp(WinogradWork::line_block_values / (kWinograd1dPositions * depth) / least * least, least, most);
  if (transformed.kind == Operand::Kind::none) {
    const WinogradWeights weights = WinogradWeights::of(g, transposed);
    transformed = run.temp(weights.size(run, real), real);
    weights.launch(run, weight, transformed, dtype);
  }
  KernelCall call = run.kernel("winograd_1d_tiles", dtype);
  const Epilogue& epilogue = run.epilogue();
  const int flags = conv_flags(run, bias) | (transposed ? WINOGRAD_TRANSPOSED : 0);
  call.args(src, weight, transformed, bias, epilogue.residual, epilogue.gate, run.dst(), i32_of(g.n), i32_of(in),
            i32_of(depth), i32_of(out), i32_of(columns), i32_of(taps), i32_of(pad));
  run.pick(kLineTiling).share(run, call, {g.n * ceil_div(out, tile_of(g)), block, least, columns, flags}, real);
}

bool launch_winograd_1d_filter(Launch& run, const ConvGeometry& g, bool with_bias) {
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const LineTiling& tiling = run.pick(kLineTiling);
  const WinogradParts p = winograd_parts(g.n * ceil_div(g.out[2], tile_of(g)), tiling.parts(g));
  const bool has_sums = with_bias && tiling.has_sums;
  const Operand part = run.temp(p.splits * kWinograd1dPositions * g.c * g.k, real),
                sums = has_sums ? run.temp(p.splits * g.k, real) : Launch::none();
  KernelCall call = run.kernel("winograd_filter_1d_bwd", dtype);
  call.args(run.src(0), run.src(1), part);
  KernelCall sum = run.kernel("winograd_filter_1d_weights", dtype);
  sum.args(part, run.dst(), i32_of(g.kernel[2]), i32_of(g.c), i32_of(g.k), i32_of(p.splits));
  tiling.share_filter(run, call, sum, g, sums, p, real);
  if (has_sums) launch_filter_reduce(run, sums, p.splits, 1);
  return has_sums;
}

}  // namespace samebytes::detail
