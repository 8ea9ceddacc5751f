#include "ops/winograd.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kTileHeight = 2, kTileWidth = 4;  // outputs of a tile
constexpr std::int64_t kWinogradPositions = 24;          // of a transformed tile
constexpr std::int64_t kOwnWeights = 16 * 32;  // so few are transformed by every group, without a launch of their own
constexpr std::int64_t kMostWinogradWeights = 128 * 128;  // more would not stay in a second-level cache
constexpr std::int64_t kLeastGroups = 8;                  // that all parts of the weight gradient are to make

constexpr int kWinogradOwn = 32;  // of winograd.cl, beside the flags of convolutions

bool is_possible(const Launch& run, const ConvGeometry& g, Dtype real) {
  if (g.a.axes != 2 || g.groups() != 1 || g.kernel[1] != 3 || g.kernel[2] != 3) return false;
  for (int axis = 1; axis < 3; ++axis)
    if (g.a.stride[axis] != 1 || g.a.dilation[axis] != 1 || g.a.pad[axis] > 2) return false;
  const std::int64_t lanes = winograd_lanes(run, real), most = run.constant("winograd", "WINOGRAD_MOST_CHANNELS", real);
  return g.c % lanes == 0 && g.k % lanes == 0 && std::max(g.c, g.k) <= most;
}

// How many positions' values of all channels of x and dy fit the private memory of winograd_filter_bwd.
bool fits_filter(const Launch& run, const ConvGeometry& g, Dtype real) {
  return !run.is_cpu() || 6 * (g.c + g.k) * WinogradWork::least_filter_block <=
                              run.constant("winograd_filter", "WINOGRAD_FILTER_VALUES", real);
}

std::int64_t tiles_of(std::int64_t n, const std::int64_t* size) {
  return n * ceil_div(size[1], kTileHeight) * ceil_div(size[2], kTileWidth);
}

// Where the saved multiplications outweigh the transforms. Numerical gradients use the direct kernels (f64).
bool is_worthwhile(const ConvGeometry& g, ConvPass pass) {
  const std::int64_t* size = pass == ConvPass::input ? g.in : g.out;
  const std::int64_t tiles = tiles_of(g.n, size), pixels = g.n * size[1] * size[2];
  return tiles >= WinogradWork::least_tiles && g.c * g.k <= kMostWinogradWeights &&
         2 * 9 * pixels >= 3 * kWinogradPositions * tiles;
}

}  // namespace

std::int64_t winograd_lanes(const Launch& run, Dtype real) {
  return run.is_cpu() ? run.constant("winograd", "WINOGRAD_LANES", real) : 1;
}

ConvAlgorithm conv_algorithm_asked_for() {
  const char* word = std::getenv("SAMEBYTES_CONV");
  const std::string_view text = word ? word : "";
  if (text.empty() || text == "automatic") return ConvAlgorithm::automatic;
  if (text == "direct") return ConvAlgorithm::direct;
  if (text == "winograd") return ConvAlgorithm::winograd;
  throw ArgumentError("SAMEBYTES_CONV: needs automatic, direct or winograd, \"" + std::string(text) + "\" came");
}

bool is_winograd(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype dtype) {
  const bool is_line = g.a.axes == 1;
  if (run.node().context->options.check_nan) return false;
  if (is_line ? !is_winograd_1d_possible(run, g, pass, dtype)
              : !is_possible(run, g, dtype) || (pass == ConvPass::filter && !fits_filter(run, g, dtype)))
    return false;
  const ConvAlgorithm asked = g.a.algorithm != ConvAlgorithm::automatic ? g.a.algorithm : conv_algorithm_asked_for();
  if (asked != ConvAlgorithm::automatic) return asked == ConvAlgorithm::winograd;
  if (real_of(dtype) != Dtype::f32 || !(is_line ? is_winograd_1d_worthwhile(g, pass) : is_worthwhile(g, pass)))
    return false;
  constexpr std::string_view names[] = {"forward", "input", "filter"};
  const std::int64_t word = run.choice("conv", names[static_cast<int>(pass)], "algorithm");
  return word == (run.is_cpu() ? 0 : 1);  // the built-in one comes first (tunables.cpp)
}

void launch_winograd(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias, bool transposed) {
  if (g.a.axes == 1) return launch_winograd_1d(run, g, src, weight, bias, transposed);
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const std::int64_t depth = transposed ? g.k : g.c, columns = transposed ? g.c : g.k;
  const std::int64_t *in = transposed ? g.out : g.in, *out = transposed ? g.in : g.out;
  const int pad_h = transposed ? 2 - g.a.pad[1] : g.a.pad[1], pad_w = transposed ? 2 - g.a.pad[2] : g.a.pad[2];
  const std::int64_t lanes = winograd_lanes(run, real);
  const Epilogue& epilogue = run.epilogue();
  int flags = conv_flags(run, bias);
  const std::int64_t least = run.constant("winograd", "WINOGRAD_TILES", real),
                     most = run.constant("winograd", "WINOGRAD_MOST_TILES", real);
  const std::int64_t block =
      std::clamp(WinogradWork::block_values / (kWinogradPositions * depth) / least * least, least, most);
  const std::int64_t tiles = tiles_of(g.n, out), blocks = ceil_div(tiles, block);
  const std::int64_t each = run.is_cpu() ? ceil_div(blocks, WinogradWork::wanted_groups) * block : least;
  const std::int64_t groups = ceil_div(tiles, each), values = kWinogradPositions * depth * columns;
  const bool has_own = run.is_cpu() && depth * columns <= kOwnWeights;
  const Operand transformed = run.temp((has_own ? groups : 1) * values, real);
  if (transposed) flags |= kWinogradTransposed;
  if (has_own)
    flags |= kWinogradOwn;
  else
    run.kernel("winograd_weights", dtype)
        .args(weight, transformed, i32_of(g.c), i32_of(g.k), transposed ? 1 : 0)
        .over_tiles(ceil_div(columns, lanes), ceil_div(depth, lanes), 1, 8, 8)
        .prepares();
  KernelCall call = run.kernel("winograd_tiles", dtype);
  call.args(src, weight, transformed, bias, epilogue.residual, epilogue.gate, run.dst(), i32_of(g.n), i32_of(in[1]),
            i32_of(in[2]), i32_of(depth), i32_of(out[1]), i32_of(out[2]), i32_of(columns), pad_h, pad_w, flags,
            i32_of(each), i32_of(block));
  if (run.is_cpu())
    call.over_tiles(groups);
  else
    call.over_tiles(groups, ceil_div(columns, run.constant("winograd", "WINOGRAD_COLUMNS", real)), 1,
                    run.constant("winograd", "WINOGRAD_COLUMNS", real), i32_of(least));
}

bool launch_winograd_filter(Launch& run, const ConvGeometry& g, bool with_bias) {
  if (g.a.axes == 1) return launch_winograd_1d_filter(run, g, with_bias);
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const std::int64_t tiles = tiles_of(g.n, g.out);
  const std::int64_t most = WinogradWork::most_sums / (kWinogradPositions * g.c * g.k);
  const std::int64_t wanted =
      run.is_cpu() ? std::clamp(most, WinogradWork::least_parts, WinogradWork::most_parts) : WinogradWork::gpu_parts;
  const std::int64_t each = std::max(WinogradWork::least_filter_tiles, ceil_div(tiles, wanted)),
                     splits = ceil_div(tiles, each);
  // Where parts are few, rows of positions are groups of their own.
  std::int64_t rows = 1, block = 0;
  if (run.is_cpu()) {
    rows = wanted >= kLeastGroups ? 4 : 2 * wanted >= kLeastGroups ? 2 : 1;
    block = std::min(run.constant("winograd_filter", "WINOGRAD_FILTER_BLOCK", real),
                     run.constant("winograd_filter", "WINOGRAD_FILTER_VALUES", real) / (6 * rows * (g.c + g.k)));
  }
  const Operand part = run.temp(splits * kWinogradPositions * g.c * g.k, real);
  KernelCall call = run.kernel("winograd_filter_bwd", dtype);
  call.args(run.src(0), run.src(1), part, i32_of(g.n), i32_of(g.in[1]), i32_of(g.in[2]), i32_of(g.c), i32_of(g.out[1]),
            i32_of(g.out[2]), i32_of(g.k), g.a.pad[1], g.a.pad[2], i32_of(each), i32_of(block), i32_of(rows));
  KernelCall sum = run.kernel("winograd_filter_weights", dtype);
  sum.args(part, run.dst(), i32_of(g.c), i32_of(g.k), i32_of(splits));
  if (run.is_cpu()) {
    call.over_tiles(splits, 4 / rows);
    sum.over_tiles(g.c);
  } else {
    const std::int64_t tile = run.constant("winograd_filter", "WINOGRAD_FILTER_TILE", real);
    call.over_tiles(splits, 4, ceil_div(g.c, tile) * ceil_div(g.k, tile));
    sum.over_tiles(ceil_div(g.k, std::int64_t{8}), ceil_div(g.c, std::int64_t{8}), 1, 8, 8);
  }
  return false;
}

}  // namespace samebytes::detail
