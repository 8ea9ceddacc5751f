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

std::int64_t vector_lanes(const Launch& run, Dtype real) { return run.constant("winograd", "WINOGRAD_LANES", real); }
std::int64_t one_lane(const Launch&, Dtype) { return 1; }
constexpr PerPersonality<std::int64_t (*)(const Launch&, Dtype)> kLanes{vector_lanes, one_lane};

std::int64_t in_whole_vectors(std::int64_t channels, std::int64_t lanes) { return ceil_div(channels, lanes) * lanes; }

bool is_possible(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype real) {
  if (g.a.axes != 2 || g.groups() != 1 || g.kernel[1] != 3 || g.kernel[2] != 3) return false;
  for (int axis = 1; axis < 3; ++axis)
    if (g.a.stride[axis] != 1 || g.a.dilation[axis] != 1 || g.a.pad[axis] > 2) return false;
  const std::int64_t lanes = winograd_lanes(run, real), most = run.constant("winograd", "WINOGRAD_MOST_CHANNELS", real);
  const bool is_whole = g.c % lanes == 0 && g.k % lanes == 0;
  return std::min(g.c, g.k) >= lanes && std::max(g.c, g.k) <= most && (is_whole || pass != ConvPass::filter);
}

// How many positions' values of all channels of x and dy fit the private memory of winograd_filter_bwd.
bool fits_cpu_filter(const Launch& run, const ConvGeometry& g, Dtype real) {
  return 6 * (g.c + g.k) * WinogradWork::least_filter_block <=
         run.constant("winograd_filter", "WINOGRAD_FILTER_VALUES", real);
}

std::int64_t tiles_of(std::int64_t n, const std::int64_t* size) {
  return n * ceil_div(size[1], kTileHeight) * ceil_div(size[2], kTileWidth);
}

// Whether the saved multiplications outweigh the transforms. Numerical gradients use the direct kernels (f64).
bool is_worthwhile(const ConvGeometry& g, ConvPass pass, std::int64_t lanes) {
  const std::int64_t products = in_whole_vectors(g.c, lanes) * in_whole_vectors(g.k, lanes);
  const std::int64_t* size = pass == ConvPass::input ? g.in : g.out;
  const std::int64_t tiles = tiles_of(g.n, size), pixels = g.n * size[1] * size[2];
  return tiles >= WinogradWork::least_tiles && g.c * g.k <= kMostWinogradWeights &&
         2 * 9 * pixels * g.c * g.k >= 3 * kWinogradPositions * tiles * products;
}

// A pass over tiles: the largest block, the least number of blocks, and the flags of the kernel.
struct WinogradTiles {
  std::int64_t tiles, block, least, columns, weights;
  int flags;
};

// What the kernels of 3x3 taps are to each personality.
struct WinogradTiling {
  bool (*fits_filter)(const Launch& run, const ConvGeometry& g, Dtype real);
  bool (*has_own)(std::int64_t weights);  // a group transforms the weights itself, without a launch before
  std::int64_t (*groups)(const WinogradTiles& t);
  void (*share)(const Launch& run, KernelCall& call, const WinogradTiles& t, Dtype real);  // last arguments, groups
  WinogradParts (*plan_filter)(const Launch& run, const ConvGeometry& g, std::int64_t tiles, Dtype real);
  void (*share_filter)(const Launch& run, KernelCall& call, KernelCall& sum, const ConvGeometry& g,
                       const WinogradParts& p, Dtype real);
};

std::int64_t tiles_of_cpu_group(const WinogradTiles& t) {
  return ceil_div(ceil_div(t.tiles, t.block), WinogradWork::wanted_groups) * t.block;
}
std::int64_t cpu_groups(const WinogradTiles& t) { return ceil_div(t.tiles, tiles_of_cpu_group(t)); }
void share_cpu(const Launch&, KernelCall& call, const WinogradTiles& t, Dtype) {
  call.args(winograd_shares{i32_of(tiles_of_cpu_group(t)), i32_of(t.block)}, t.flags).over_tiles(cpu_groups(t));
}
WinogradParts plan_cpu_filter(const Launch& run, const ConvGeometry& g, std::int64_t tiles, Dtype real) {
  const std::int64_t wanted = std::clamp(WinogradWork::most_sums / (kWinogradPositions * g.c * g.k),
                                         WinogradWork::least_parts, WinogradWork::most_parts);
  WinogradParts p = winograd_parts(tiles, wanted);
  // Where parts are few, rows of positions are groups of their own.
  p.rows = wanted >= kLeastGroups ? 4 : 2 * wanted >= kLeastGroups ? 2 : 1;
  p.block = std::min(run.constant("winograd_filter", "WINOGRAD_FILTER_BLOCK", real),
                     run.constant("winograd_filter", "WINOGRAD_FILTER_VALUES", real) / (6 * p.rows * (g.c + g.k)));
  return p;
}
void share_cpu_filter(const Launch&, KernelCall& call, KernelCall& sum, const ConvGeometry& g, const WinogradParts& p,
                      Dtype) {
  call.args(winograd_filter_shares{i32_of(p.each), i32_of(p.block), i32_of(p.rows)}).over_tiles(p.splits, 4 / p.rows);
  sum.over_tiles(g.c);
}

std::int64_t gpu_groups(const WinogradTiles& t) { return ceil_div(t.tiles, t.least); }
void share_gpu(const Launch& run, KernelCall& call, const WinogradTiles& t, Dtype real) {
  const std::int64_t columns = run.constant("winograd", "WINOGRAD_COLUMNS", real);
  call.args(t.flags).over_tiles(gpu_groups(t), ceil_div(t.columns, columns), 1, i32_of(columns), i32_of(t.least));
}
WinogradParts plan_gpu_filter(const Launch&, const ConvGeometry&, std::int64_t tiles, Dtype) {
  return winograd_parts(tiles, WinogradWork::gpu_parts);
}
void share_gpu_filter(const Launch& run, KernelCall& call, KernelCall& sum, const ConvGeometry& g,
                      const WinogradParts& p, Dtype real) {
  const std::int64_t tile = run.constant("winograd_filter", "WINOGRAD_FILTER_TILE", real);
  call.args(i32_of(p.each)).over_tiles(p.splits, 4, ceil_div(g.c, tile) * ceil_div(g.k, tile));
  sum.over_tiles(ceil_div(g.k, std::int64_t{8}), ceil_div(g.c, std::int64_t{8}), 1, 8, 8);
}

constexpr PerPersonality<WinogradTiling> kWinogradTiling{
    {.fits_filter = fits_cpu_filter,
     .has_own = [](std::int64_t weights) { return weights <= kOwnWeights; },
     .groups = cpu_groups,
     .share = share_cpu,
     .plan_filter = plan_cpu_filter,
     .share_filter = share_cpu_filter},
    {.fits_filter = [](const Launch&, const ConvGeometry&, Dtype) { return true; },
     .has_own = [](std::int64_t) { return false; },
     .groups = gpu_groups,
     .share = share_gpu,
     .plan_filter = plan_gpu_filter,
     .share_filter = share_gpu_filter}};

// The tuner's word for minimal filtering: the built-in one comes first (tunables.cpp).
constexpr PerPersonality<std::int64_t> kWinogradWord{0, 1};

}  // namespace

std::int64_t winograd_lanes(const Launch& run, Dtype real) { return run.pick(kLanes)(run, real); }

WinogradParts winograd_parts(std::int64_t tiles, std::int64_t wanted) {
  WinogradParts p;
  p.each = std::max(WinogradWork::least_filter_tiles, ceil_div(tiles, wanted));
  p.splits = ceil_div(tiles, p.each);
  return p;
}

ConvAlgorithm conv_algorithm_asked_for() {
  const char* word = std::getenv("SAMEBYTES_CONV");
  const std::string_view text = word ? word : "";
  if (text.empty() || text == "automatic") return ConvAlgorithm::automatic;
  if (text == "direct") return ConvAlgorithm::direct;
  if (text == "winograd") return ConvAlgorithm::winograd;
  throw ArgumentError("SAMEBYTES_CONV: expected automatic, direct or winograd, got \"" + std::string(text) + "\"");
}

bool is_winograd(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype dtype) {
  const bool is_line = g.a.axes == 1;
  if (run.node().context->options.check_nan) return false;
  if (is_line ? !is_winograd_1d_possible(run, g, pass, dtype)
              : !is_possible(run, g, pass, dtype) ||
                    (pass == ConvPass::filter && !run.pick(kWinogradTiling).fits_filter(run, g, dtype)))
    return false;
  const ConvAlgorithm asked = g.a.algorithm != ConvAlgorithm::automatic ? g.a.algorithm : conv_algorithm_asked_for();
  if (asked != ConvAlgorithm::automatic) return asked == ConvAlgorithm::winograd;
  if (real_of(dtype) != Dtype::f32 ||
      !(is_line ? is_winograd_1d_worthwhile(g, pass) : is_worthwhile(g, pass, winograd_lanes(run, real_of(dtype)))))
    return false;
  constexpr std::string_view names[] = {"forward", "input", "filter"};
  return run.choice("conv", names[static_cast<int>(pass)], "algorithm") == run.pick(kWinogradWord);
}

WinogradWeights WinogradWeights::of(const ConvGeometry& g, bool transposed) {
  return {g.a.axes, g.kernel[2], g.c, g.k, transposed};
}

std::int64_t WinogradWeights::size(const Launch& run, Dtype real) const {
  if (axes == 1) return kWinograd1dPositions * c * k;
  const std::int64_t lanes = winograd_lanes(run, real);
  return kWinogradPositions * in_whole_vectors(depth(), lanes) * in_whole_vectors(columns(), lanes);
}

void WinogradWeights::launch(Launch& run, Operand weight, Operand transformed, Dtype dtype) const {
  const std::int64_t lanes = winograd_lanes(run, real_of(dtype));
  KernelCall call = run.kernel(axes == 1 ? "winograd_1d_weights" : "winograd_weights", dtype);
  call.args(weight, transformed);
  if (axes == 1) call.args(i32_of(taps));
  call.args(i32_of(c), i32_of(k), transposed ? 1 : 0)
      .over_tiles(ceil_div(columns(), lanes), ceil_div(depth(), lanes), 1, 8, 8)
      .prepares();
}

void launch_winograd(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias, bool transposed,
                     Operand transformed) {
  if (g.a.axes == 1) return launch_winograd_1d(run, g, src, weight, bias, transposed, transformed);
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const std::int64_t depth = transposed ? g.k : g.c, columns = transposed ? g.c : g.k;
  const std::int64_t *in = transposed ? g.out : g.in, *out = transposed ? g.in : g.out;
  const int pad_h = transposed ? 2 - g.a.pad[1] : g.a.pad[1], pad_w = transposed ? 2 - g.a.pad[2] : g.a.pad[2];
  const std::int64_t lanes = winograd_lanes(run, real);
  const Epilogue& epilogue = run.epilogue();
  int flags = conv_flags(run, bias);
  const std::int64_t least = run.constant("winograd", "WINOGRAD_TILES", real),
                     most = run.constant("winograd", "WINOGRAD_MOST_TILES", real);
  const std::int64_t whole = in_whole_vectors(depth, lanes), weights = whole * in_whole_vectors(columns, lanes);
  const std::int64_t block =
      std::clamp(WinogradWork::block_values / (kWinogradPositions * whole) / least * least, least, most);
  const WinogradTiling& tiling = run.pick(kWinogradTiling);
  const bool is_given = transformed.kind != Operand::Kind::none, has_own = !is_given && tiling.has_own(weights);
  if (transposed) flags |= WINOGRAD_TRANSPOSED;
  if (has_own) flags |= WINOGRAD_OWN;
  const WinogradTiles t{tiles_of(g.n, out), block, least, columns, weights, flags};
  if (!is_given) {
    transformed = run.temp((has_own ? tiling.groups(t) : 1) * kWinogradPositions * t.weights, real);
    if (!has_own) WinogradWeights::of(g, transposed).launch(run, weight, transformed, dtype);
  }
  KernelCall call = run.kernel("winograd_tiles", dtype);
  call.args(src, weight, transformed, bias, epilogue.residual, epilogue.gate, run.dst(),
            winograd_sizes{i32_of(g.n), i32_of(in[1]), i32_of(in[2]), i32_of(depth), i32_of(out[1]), i32_of(out[2]),
                           i32_of(columns), pad_h, pad_w});
  tiling.share(run, call, t, real);
}

bool launch_winograd_filter(Launch& run, const ConvGeometry& g, bool with_bias) {
  if (g.a.axes == 1) return launch_winograd_1d_filter(run, g, with_bias);
  const Dtype dtype = run.dst_dtype(), real = real_of(dtype);
  const WinogradTiling& tiling = run.pick(kWinogradTiling);
  const WinogradParts p = tiling.plan_filter(run, g, tiles_of(g.n, g.out), real);
  const Operand part = run.temp(p.splits * kWinogradPositions * g.c * g.k, real);
  KernelCall call = run.kernel("winograd_filter_bwd", dtype);
  call.args(run.src(0), run.src(1), part,
            winograd_sizes{i32_of(g.n), i32_of(g.in[1]), i32_of(g.in[2]), i32_of(g.c), i32_of(g.out[1]),
                           i32_of(g.out[2]), i32_of(g.k), g.a.pad[1], g.a.pad[2]});
  KernelCall sum = run.kernel("winograd_filter_weights", dtype);
  sum.args(part, run.dst(), i32_of(g.c), i32_of(g.k), i32_of(p.splits));
  tiling.share_filter(run, call, sum, g, p, real);
  return false;
}

}  // namespace samebytes::detail
