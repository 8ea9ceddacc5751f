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

// The places of a launch: lines of `width` places, each of which has `channels` and meets `taps`, in `phases`.
struct Places {
  std::int64_t lines, width, channels, taps, phases;
};

// How they are shared: strips of lines, and channels where there are few strips.
struct Shares {
  std::int64_t strip, strips, per_group, tile_n;
  std::int64_t groups() const { return ceil_div(strips, per_group); }
  grouped_shares on_cpu() const { return {i32_of(strip), i32_of(per_group), i32_of(tile_n)}; }
};
Shares share(const Places& p, std::int64_t vector, std::int64_t longest) {
  const std::int64_t strip = ceil_div(p.width, ceil_div(p.width, longest));
  Shares s{strip, p.lines * ceil_div(p.width, strip), 1, p.channels};
  const std::int64_t most = std::max<std::int64_t>(1, s.strips * p.phases / kWantedGroups);
  s.per_group = std::clamp<std::int64_t>(kGroupWork / (strip * p.channels * p.taps), 1, most);
  const std::int64_t wanted = ceil_div(kWantedGroups, s.groups() * p.phases), vectors = ceil_div(p.channels, vector);
  s.tile_n = ceil_div(vectors, std::min(wanted, vectors)) * vector;
  return s;
}

// A part of the weight gradient: its strips, and groups beside the splits.
struct FilterShares {
  Shares shares;
  std::int64_t tiles;
};

// What the kernels are to each personality.
struct GroupedTiling {
  bool (*takes)(const ConvGeometry& g);
  void (*share)(const Launch& run, KernelCall& call, const Places& places,
                int flags);  // the last arguments, the groups
  FilterShares (*plan_filter)(const Launch& run, const ConvGeometry& g, const Places& places);
  void (*share_filter)(KernelCall& call, const Shares& shares);
};

// Vectors of channels.
std::int64_t cpu_vector(const Launch& run) { return run.constant("conv", "CONV_NR", run.dst_dtype()) / 2; }
void share_cpu(const Launch& run, KernelCall& call, const Places& p, int flags) {
  const Shares s = share(p, cpu_vector(run), kLongestStrip);
  call.args(s.on_cpu(), flags).over_tiles(s.groups(), ceil_div(p.channels, s.tile_n), p.phases);
}
FilterShares plan_cpu_filter(const Launch& run, const ConvGeometry& g, const Places& p) {
  Shares s = share(p, cpu_vector(run), kLongestFilterStrip);
  s.per_group = ceil_div(s.strips, kWantedGroups);  // each part is a copy of the weights: no more than are needed
  return {s, ceil_div(g.k, s.tile_n)};
}

// One work-item per channel and a few places of a line.
void share_gpu(const Launch& run, KernelCall& call, const Places& p, int flags) {
  const std::int64_t pixels = run.constant("grouped", "GROUPED_PIXELS", run.dst_dtype());
  const std::int64_t groups = ceil_div(p.lines * ceil_div(p.width, pixels) * p.channels, kGpuItems);
  call.args(flags).over_tiles(groups, 1, p.phases, kGpuItems, 1);
}
FilterShares plan_gpu_filter(const Launch& run, const ConvGeometry& g, const Places& p) {
  Shares s = share(p, 1, kLongestFilterStrip);
  const std::int64_t tiles =
      g.taps() * g.c_group() * ceil_div(g.k, run.constant("grouped", "GROUPED_CHANNELS", run.dst_dtype()));
  s.per_group = std::max(kGpuStripsPerSplit, ceil_div(s.strips * tiles, kWantedGpuGroups));
  return {s, tiles};
}

constexpr PerPersonality<GroupedTiling> kGroupedTiling{
    {.takes = [](const ConvGeometry& g) { return g.c_group() == 1 && g.k_group() == 1; },
     .share = share_cpu,
     .plan_filter = plan_cpu_filter,
     .share_filter = [](KernelCall& call, const Shares& s) { call.args(s.on_cpu()); }},
    {.takes = [](const ConvGeometry& g) { return std::max(g.c_group(), g.k_group()) <= kGpuGroupChannels; },
     .share = share_gpu,
     .plan_filter = plan_gpu_filter,
     .share_filter =
         [](KernelCall& call, const Shares& s) {
           call.args(conv_strips{i32_of(s.strip), i32_of(s.per_group)});
         }}};

Places forward_places(const ConvGeometry& g) { return {g.n * g.out[0] * g.out[1], g.out[2], g.k, g.taps(), 1}; }

}  // namespace

bool is_grouped(const Launch& run, const ConvGeometry& g) {
  return g.groups() > 1 && run.pick(kGroupedTiling).takes(g);
}

void launch_grouped_fwd(Launch& run, const ConvGeometry& g, Operand bias) {
  KernelCall call = run.kernel("grouped_fwd", run.dst_dtype());
  call.args(run.src(0), run.src(1), bias, run.epilogue().residual, run.dst(), g.sizes());
  run.pick(kGroupedTiling).share(run, call, forward_places(g), conv_flags(run, bias));
}

void launch_grouped_bwd_input(Launch& run, const ConvGeometry& g, Operand bias) {
  KernelCall call = run.kernel("grouped_bwd_input", run.dst_dtype());
  call.args(run.src(0), run.src(1), bias, run.dst(), g.sizes());
  run.pick(kGroupedTiling)
      .share(
          run, call,
          {g.n * g.phase_size(0) * g.phase_size(1), g.phase_size(2), g.c, ceil_div(g.taps(), g.phases()), g.phases()},
          conv_flags(run, bias));
}

void launch_grouped_bwd_filter(Launch& run, const ConvGeometry& g) {
  const GroupedTiling& tiling = run.pick(kGroupedTiling);
  const FilterShares t = tiling.plan_filter(run, g, forward_places(g));
  const std::int64_t splits = t.shares.groups();
  const Operand part = splits > 1 ? run.temp(splits * run.dst_shape().size(), run.dst_dtype()) : run.dst();
  KernelCall call = run.kernel("grouped_bwd_filter", run.dst_dtype());
  call.args(run.src(0), run.src(1), part, g.sizes());
  tiling.share_filter(call, t.shares);
  call.over_tiles(splits, t.tiles, 1, kGpuItems, 1);
  if (splits > 1) launch_filter_reduce(run, part, splits);
}

}  // namespace samebytes::detail
