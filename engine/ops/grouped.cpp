// Convolutions in groups of few channels, for which tiles of a matrix product would be mostly empty (kernels:
// cl/*/grouped.cl). A CPU takes groups of one channel, as vectors over the channels; wider ones are bundled into tiles
// (conv.cpp). A GPU takes all narrow groups, one channel per work-item.
#include "ops/conv_geometry.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kGpuGroupChannels = 16;  // a group of more is sent to tiles
constexpr std::int64_t kGpuItems = 256;
constexpr std::int64_t kLongestStrip = 128;       // pixels of a line that are taken in one piece
constexpr std::int64_t kLongestFilterStrip = 32;  // in the weight gradient: what its taps share stays in the cache
constexpr std::int64_t kWantedGroups = 24;        // of a cpu launch, at least, where there is so much to share
constexpr std::int64_t kGroupWork = 1 << 18;      // multiplications of a group, about
constexpr std::int64_t kWantedGpuGroups = 512;    // of the weight gradient
constexpr std::int64_t kGpuStripsPerSplit = 16;   // at least

// How a launch is shared: strips of lines, and channels where there are few strips.
struct Shares {
  std::int64_t strip, strips, per_group, tile_n;
  std::int64_t groups() const { return ceil_div(strips, per_group); }
};
Shares share(const Launch& run, std::int64_t lines, std::int64_t width, std::int64_t channels, std::int64_t taps,
             std::int64_t others, std::int64_t longest = kLongestStrip) {
  const std::int64_t strip = ceil_div(width, ceil_div(width, longest));
  Shares s{strip, lines * ceil_div(width, strip), 1, channels};
  const std::int64_t most = std::max<std::int64_t>(1, s.strips * others / kWantedGroups);
  s.per_group = std::clamp<std::int64_t>(kGroupWork / (strip * channels * taps), 1, most);
  const std::int64_t vector = run.is_cpu() ? run.constant("conv", "CONV_NR", run.dst_dtype()) / 2 : 1;
  const std::int64_t wanted = ceil_div(kWantedGroups, s.groups() * others), vectors = ceil_div(channels, vector);
  s.tile_n = ceil_div(vectors, std::min(wanted, vectors)) * vector;
  return s;
}

void add_shares(KernelCall& call, const Shares& s) {
  call.args(i32_of(s.strip), i32_of(s.per_group), i32_of(s.tile_n));
}

// One work-item per channel and a few places of a line.
std::int64_t gpu_groups(const Launch& run, std::int64_t lines, std::int64_t width, std::int64_t channels) {
  const std::int64_t pixels = run.constant("grouped", "GROUPED_PIXELS", run.dst_dtype());
  return ceil_div(lines * ceil_div(width, pixels) * channels, kGpuItems);
}

}  // namespace

bool is_grouped(const Launch& run, const ConvGeometry& g) {
  if (g.groups() == 1) return false;
  if (run.is_cpu()) return g.c_group() == 1 && g.k_group() == 1;
  return std::max(g.c_group(), g.k_group()) <= kGpuGroupChannels;
}

void launch_grouped_fwd(Launch& run, const ConvGeometry& g, Operand bias) {
  const std::int64_t lines = g.n * g.out[0] * g.out[1];
  const Shares s = share(run, lines, g.out[2], g.k, g.taps(), 1);
  KernelCall call = run.kernel("grouped_fwd", run.dst_dtype());
  call.args(run.src(0), run.src(1), bias, run.dst());
  g.add_to(call, bias.kind == Operand::Kind::none ? 0 : kConvBias);
  add_shares(call, s);
  if (run.is_cpu())
    call.over_tiles(s.groups(), ceil_div(g.k, s.tile_n));
  else
    call.over_tiles(gpu_groups(run, lines, g.out[2], g.k), 1, 1, kGpuItems, 1);
}

void launch_grouped_bwd_input(Launch& run, const ConvGeometry& g, Operand bias) {
  const std::int64_t lines = g.n * g.phase_size(0) * g.phase_size(1), width = g.phase_size(2);
  const Shares s = share(run, lines, width, g.c, ceil_div(g.taps(), g.phases()), g.phases());
  KernelCall call = run.kernel("grouped_bwd_input", run.dst_dtype());
  call.args(run.src(0), run.src(1), bias, run.dst());
  g.add_to(call, bias.kind == Operand::Kind::none ? 0 : kConvBias);
  add_shares(call, s);
  if (run.is_cpu())
    call.over_tiles(s.groups(), ceil_div(g.c, s.tile_n), g.phases());
  else
    call.over_tiles(gpu_groups(run, lines, width, g.c), 1, g.phases(), kGpuItems, 1);
}

void launch_grouped_bwd_filter(Launch& run, const ConvGeometry& g) {
  const std::int64_t lines = g.n * g.out[0] * g.out[1];
  Shares s = share(run, lines, g.out[2], g.k, g.taps(), 1, kLongestFilterStrip);
  std::int64_t tiles = 0;
  if (run.is_cpu()) {
    s.per_group = ceil_div(s.strips, kWantedGroups);  // each part is a copy of the weights: no more than are needed
    tiles = ceil_div(g.k, s.tile_n);
  } else {
    tiles = g.taps() * g.c_group() * ceil_div(g.k, run.constant("grouped", "GROUPED_CHANNELS", run.dst_dtype()));
    s.per_group = std::max(kGpuStripsPerSplit, ceil_div(s.strips * tiles, kWantedGpuGroups));
  }
  const std::int64_t splits = s.groups();
  const Operand part = splits > 1 ? run.temp(splits * run.dst_shape().size(), run.dst_dtype()) : run.dst();
  KernelCall call = run.kernel("grouped_bwd_filter", run.dst_dtype());
  call.args(run.src(0), run.src(1), part);
  g.add_to(call, 0);
  add_shares(call, s);
  call.over_tiles(splits, tiles, 1, kGpuItems, 1);
  if (splits > 1) launch_filter_reduce(run, part, splits);
}

}  // namespace samebytes::detail
