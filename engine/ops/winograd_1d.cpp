#include <algorithm>

#include "ops/winograd.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kWinograd1dPositions = 6;            // of a transformed tile
constexpr std::int64_t kMostWinograd1dWeights = 256 * 256;  // more would not stay in a second-level cache

std::int64_t tile_of(const ConvGeometry& g) { return kWinograd1dPositions + 1 - g.kernel[2]; }

std::int64_t filter_block(const Launch& run, const ConvGeometry& g, Dtype real) {
  return std::min(
      run.constant("winograd_filter", "WINOGRAD_FILTER_BLOCK", real),
      run.constant("winograd_filter", "WINOGRAD_FILTER_VALUES", real) / (kWinograd1dPositions * (g.c + g.k)));
}

}  // namespace

bool is_winograd_1d_possible(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype real) {
  const std::int64_t taps = g.kernel[2];
  if (g.groups() != 1 || taps < 3 || taps > 5 || g.a.stride[2] != 1 || g.a.dilation[2] != 1 || g.a.pad[2] >= taps)
    return false;
  const std::int64_t lanes = winograd_lanes(run, real),
                     most = run.constant("winograd_1d", "WINOGRAD_1D_MOST_CHANNELS", real);
  if (g.c % lanes != 0 || g.k % lanes != 0 || std::max(g.c, g.k) > most) return false;
  return pass != ConvPass::filter || !run.is_cpu() || filter_block(run, g, real) >= WinogradWork::least_filter_block;
}

// Where the saved multiplications outweigh the transforms.
bool is_winograd_1d_worthwhile(const ConvGeometry& g, ConvPass pass) {
  const std::int64_t size = (pass == ConvPass::input ? g.in : g.out)[2], tiles = ceil_div(size, tile_of(g));
  return g.n * tiles >= WinogradWork::least_tiles && g.c * g.k <= kMostWinograd1dWeights &&
         2 * g.kernel[2] * size >= 3 * kWinograd1dPositions * tiles;
}

void launch_winograd_1d(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias,
                        bool transposed) {
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const std::int64_t depth = transposed ? g.k : g.c, columns = transposed ? g.c : g.k, taps = g.kernel[2];
  const std::int64_t in = (transposed ? g.out : g.in)[2], out = (transposed ? g.in : g.out)[2];
  const std::int64_t pad = transposed ? taps - 1 - g.a.pad[2] : g.a.pad[2], lanes = winograd_lanes(run, real);
  const std::int64_t least = run.constant("winograd_1d", "WINOGRAD_1D_TILES", real),
                     most = run.constant("winograd_1d", "WINOGRAD_1D_MOST_TILES", real);
  const std::int64_t block =
      std::clamp(WinogradWork::line_block_values / (kWinograd1dPositions * depth) / least * least, least, most);
  const std::int64_t tiles = g.n * ceil_div(out, tile_of(g)), blocks = ceil_div(tiles, block);
  const std::int64_t each = run.is_cpu() ? ceil_div(blocks, WinogradWork::wanted_groups) * block : least;
  const Operand transformed = run.temp(kWinograd1dPositions * depth * columns, real);
  run.kernel("winograd_1d_weights", dtype)
      .args(weight, transformed, i32_of(taps), i32_of(g.c), i32_of(g.k), transposed ? 1 : 0)
      .over_tiles(ceil_div(columns, lanes), ceil_div(depth, lanes), 1, 8, 8)
      .prepares();
  KernelCall call = run.kernel("winograd_1d_tiles", dtype);
  const Epilogue& epilogue = run.epilogue();
  const int flags = conv_flags(run, bias) | (transposed ? kWinogradTransposed : 0);
  call.args(src, weight, transformed, bias, epilogue.residual, epilogue.gate, run.dst(), i32_of(g.n), i32_of(in),
            i32_of(depth), i32_of(out), i32_of(columns), i32_of(taps), i32_of(pad), flags, i32_of(each), i32_of(block));
  if (run.is_cpu())
    call.over_tiles(ceil_div(tiles, each));
  else
    call.over_tiles(ceil_div(tiles, each), ceil_div(columns, run.constant("winograd_1d", "WINOGRAD_1D_COLUMNS", real)),
                    1, run.constant("winograd_1d", "WINOGRAD_1D_COLUMNS", real), i32_of(least));
}

bool launch_winograd_1d_filter(Launch& run, const ConvGeometry& g, bool with_bias) {
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const std::int64_t tiles = g.n * ceil_div(g.out[2], tile_of(g)), taps = g.kernel[2];
  const std::int64_t wanted = run.is_cpu() ? std::clamp(WinogradWork::most_sums / (kWinograd1dPositions * g.c * g.k),
                                                        WinogradWork::least_parts, WinogradWork::most_parts)
                                           : WinogradWork::gpu_parts;
  const std::int64_t each = std::max(WinogradWork::least_filter_tiles, ceil_div(tiles, wanted)),
                     splits = ceil_div(tiles, each);
  const bool has_sums = with_bias && run.is_cpu();
  const Operand part = run.temp(splits * kWinograd1dPositions * g.c * g.k, real),
                sums = has_sums ? run.temp(splits * g.k, real) : Launch::none();
  KernelCall call = run.kernel("winograd_filter_1d_bwd", dtype);
  call.args(run.src(0), run.src(1), part, sums, i32_of(g.n), i32_of(g.in[2]), i32_of(g.c), i32_of(g.out[2]),
            i32_of(g.k), i32_of(taps), g.a.pad[2], has_sums ? 1 : 0, i32_of(each),
            run.is_cpu() ? i32_of(filter_block(run, g, real)) : 0);
  KernelCall sum = run.kernel("winograd_filter_1d_weights", dtype);
  sum.args(part, run.dst(), i32_of(taps), i32_of(g.c), i32_of(g.k), i32_of(splits));
  if (run.is_cpu()) {
    call.over_tiles(splits);
    sum.over_tiles(g.c);
  } else {
    const std::int64_t tile = run.constant("winograd_filter", "WINOGRAD_FILTER_TILE", real);
    call.over_tiles(splits, 1, ceil_div(g.c, tile) * ceil_div(g.k, tile), 16, 16);
    sum.over_tiles(ceil_div(g.k, std::int64_t{8}), ceil_div(g.c, std::int64_t{8}), 1, 8, 8);
  }
  if (has_sums) launch_filter_reduce(run, sums, splits, 1);
  return has_sums;
}

}  // namespace samebytes::detail
