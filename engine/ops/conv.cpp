// Convolution of one to three axes, channels last, and its gradients (kernels: cl/*/conv.cl, cl/*/conv_filter.cl;
// groups of few channels: grouped.cpp; a forward pass that is a matrix product: gemm.cpp; the bias gradient is a sum
// over pixels). Forward pass and input gradient are one kernel; the weight gradient sums a number of parts that the
// shape gives.
// Over 400 lines because the three passes are each other's gradients and share how they are cut into work.
#include "ops/conv.h"
#include "graph/written.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "ops/conv_geometry.h"
#include "ops/dtypes.h"
#include "ops/gemm.h"
#include "ops/host.h"
#include "ops/reduce.h"
#include "ops/winograd.h"
#include "samebytes/ops.h"

namespace samebytes::detail {
namespace {

// Functions of the shape and the tuner's choices only, so results do not change with the number of threads.
constexpr std::int64_t kBlocks[] = {240, 112, 56, 28, 14};  // pixels of a line that are taken in one piece
constexpr std::int64_t kLeastDepth = 32;                    // channels of a chunk, if there are that many
constexpr std::int64_t kLeastGroups = 4;                    // of a pass that has columns or lines enough for them
constexpr std::int64_t kFewestPixels = 32;                  // of a group that takes fewer lines for that
constexpr std::int64_t kLeastFilterTile = 32;
constexpr std::int64_t kMostShared = 5 << 18;  // values of both images that every group of the weight gradient may read
constexpr std::int64_t kGpuFilterPixels = 512;  // output pixels of a part of the weight gradient, at least
constexpr std::int64_t kGpuLongestStrip = 384;  // pixels of a line that a part of it takes in one piece

// How conv_tiles of a CPU device is shared (see there): what a group takes, and in which chunks it sums.
struct LinePlan {
  std::int64_t block, units, column_tile;  // places of a line; units and columns of a group
  std::int64_t rows, columns, depth;       // of a chunk of the sum
  std::int64_t groups;                     // of all units and columns

  conv_shares shares(std::int64_t bundle) const {
    return {i32_of(bundle), i32_of(units),   i32_of(block), i32_of(column_tile),
            i32_of(rows),   i32_of(columns), i32_of(depth)};
  }
};
LinePlan plan_lines(const Launch& run, const ConvGeometry& g, bool transposed, Dtype real) {
  const std::int64_t width = run.constant("conv", "CONV_NR", real) / 2, nr = 2 * width;
  const std::int64_t most_source = run.constant("conv", "CONV_SOURCE", real),
                     most_weights = run.constant("conv", "CONV_WEIGHTS", real);
  const std::int64_t all_depth = transposed ? g.k_group() : g.c_group(),
                     all_columns = transposed ? g.c_group() : g.k_group();
  const std::int64_t taps_up = g.kernel[0] * g.kernel[1], stride = g.a.stride[2], dilation = g.a.dilation[2];
  const std::int64_t grid = transposed ? g.phase_size(2) : g.out[2];
  LinePlan t{};
  t.rows = std::min(taps_up, run.constant("conv", "CONV_TAP_ROWS", real));
  t.columns = std::min(g.kernel[2], run.constant("conv", "CONV_TAP_COLUMNS", real));
  // Positions of the source lines of a chunk, including the surplus pixels of a tile.
  const std::int64_t overhang = run.constant("conv", "CONV_LOW", real) - 1;
  const auto span = [&] {
    const std::int64_t all = (t.columns - 1) * dilation;
    return transposed ? ceil_div(all + stride - 1, stride) + 2 : all + 1;
  };
  const auto gap = [&] { return transposed ? 1 : std::min(stride, span()); };
  const auto source = [&](std::int64_t block) {
    return t.rows * ((std::min(block, grid) + overhang - 1) * gap() + span());
  };
  while (source(kBlocks[4]) > most_source)
    (t.rows > 1 ? t.rows : t.columns) = ceil_div(t.rows > 1 ? t.rows : t.columns, 2);
  const std::int64_t most_depth = std::min(all_depth, most_weights / (t.rows * t.columns * nr));
  for (const std::int64_t longest : kBlocks) {
    t.block = ceil_div(grid, ceil_div(grid, longest));
    if (t.block < grid) t.block = longest;
    t.depth = std::min(most_depth, most_source / source(t.block));
    if (source(t.block) * t.depth <= most_source / 2 && t.depth >= std::min(most_depth, kLeastDepth)) break;
  }
  if (t.depth > width)
    t.depth =
        std::min(all_depth, ceil_div(ceil_div(all_depth, ceil_div(all_depth, t.depth / width * width)), width) * width);
  // Rows that would map to the same cache sets get one more vector.
  if (gap() * t.depth * static_cast<std::int64_t>(bytes_of(real)) % 4096 == 0 &&
      source(t.block) * (t.depth + width) > most_source)
    t.depth -= width;
  const std::int64_t panels = ceil_div(all_columns, nr),
                     most_panels = std::max<std::int64_t>(1, most_weights / (t.rows * t.columns * t.depth * nr));
  t.column_tile = ceil_div(panels, ceil_div(panels, most_panels)) * nr;
  const std::int64_t lines = g.n * (transposed ? g.in[0] * g.in[1] : g.out[0] * g.out[1]);
  const std::int64_t all_units = lines * ceil_div(grid, t.block), column_tiles = ceil_div(all_columns, t.column_tile);
  // Lines per group are chosen to give enough groups, and enough pixels per group to make packing the weights cheap.
  const char* pass = transposed ? "input" : "forward";
  const std::int64_t wanted = run.choice("conv", pass, "wanted_groups"),
                     least_pixels = run.choice("conv", pass, "least_pixels");
  t.units = std::max(ceil_div(all_units, ceil_div(wanted, column_tiles * g.groups())),
                     ceil_div(least_pixels, t.block * (transposed ? stride : 1)));
  // Few lines, as at batch 1, give few groups. Then groups share the columns, too, which packs no weight twice; where
  // that is not enough, each takes fewer lines.
  const std::int64_t line_groups = ceil_div(all_units, t.units) * g.groups();
  if (line_groups * column_tiles < kLeastGroups)
    t.column_tile = ceil_div(panels, std::min(panels, ceil_div(kLeastGroups, line_groups))) * nr;
  const std::int64_t others = ceil_div(all_columns, t.column_tile) * g.groups();
  if (ceil_div(all_units, t.units) * others < kLeastGroups)
    t.units = std::min(t.units,
                       std::max(ceil_div(all_units, ceil_div(kLeastGroups, others)), ceil_div(kFewestPixels, t.block)));
  t.groups = ceil_div(all_units, t.units) * ceil_div(all_columns, t.column_tile);
  return t;
}

// How many neighbouring groups a cpu kernel handles as one: enough to fill half a panel, which is one vector of output
// channels. The products with the zeros between them cost no more than the empty lanes would.
std::int64_t bundle_of(const Launch& run, const ConvGeometry& g, std::int64_t columns, Dtype real) {
  if (g.groups() == 1) return 1;
  std::int64_t bundle = std::clamp<std::int64_t>(run.constant("conv", "CONV_NR", real) / 2 / columns, 1, g.groups());
  while (g.groups() % bundle != 0) --bundle;
  return bundle;
}

// A forward pass, or transposed an input gradient, of src and weight into the node's result.
struct ConvCase {
  ConvGeometry geometry;
  Operand src, weight, bias;
  bool transposed;
  int flags;
  std::int64_t depth() const { return transposed ? geometry.k_group() : geometry.c_group(); }
  std::int64_t columns() const { return transposed ? geometry.c_group() : geometry.k_group(); }
};
void launch_cpu_tiles(Launch& run, const ConvCase& whole) {
  const Dtype real = run.dst_dtype();
  const std::int64_t bundle = bundle_of(run, whole.geometry, whole.columns(), real);
  ConvCase c = whole;
  c.geometry = whole.geometry.bundled(bundle).flattened();
  const ConvGeometry& g = c.geometry;
  KernelCall call = run.kernel("conv_tiles", real);
  const LinePlan t = plan_lines(run, g, c.transposed, real);
  const bool is_one_chunk = t.rows == g.kernel[0] * g.kernel[1] && t.columns == g.kernel[2] && t.depth == c.depth();
  Operand sums;  // a 16-bit result between the chunks of its sum
  if (real != real_of(real) && !is_one_chunk) sums = run.temp(run.dst_shape().size(), real_of(real));
  const Epilogue& e = run.epilogue();
  call.args(c.src, c.weight, c.bias, e.residual, e.gate, run.dst(), sums, g.sizes(), t.shares(bundle),
            c.transposed ? 1 : 0, c.flags)
      .over_tiles(t.groups, 1, g.groups());
}
void launch_gpu_tiles(Launch& run, const ConvCase& whole) {
  const Dtype real = run.dst_dtype();
  ConvCase c = whole;
  c.geometry = whole.geometry.flattened();
  const ConvGeometry& g = c.geometry;
  const Epilogue& e = run.epilogue();
  const std::int64_t m = run.constant("conv", "CONV_TILE_M", real), n = run.constant("conv", "CONV_TILE_N", real);
  const std::int64_t pixels = c.transposed ? g.in_pixels() : g.out_pixels();
  run.kernel("conv_tiles", real)
      .args(c.src, c.weight, c.bias, e.residual, e.gate, run.dst(), g.sizes(), c.transposed ? 1 : 0, c.flags)
      .over_tiles(ceil_div(pixels, m) * ceil_div(c.columns(), n), 1, g.groups());
}
constexpr PerPersonality<void (*)(Launch&, const ConvCase&)> kLaunchTiles{launch_cpu_tiles, launch_gpu_tiles};

// Whether a forward pass that is one matrix product goes through the kernels of products. Those of CPU devices share it
// more evenly than conv_tiles, and the smallest have a host form. Their tiles are three vectors wide: fewer columns pay
// only in whole vectors with a long sum, or for few pixels.
constexpr std::int64_t kLeastProductDepth = 64, kFewProductPixels = 32;
bool cpu_takes_product(const Launch& run, const GemmProblem& p, Dtype real) {
  const std::int64_t vector = run.constant("conv", "CONV_NR", real) / 2;
  return p.n > 2 * vector || p.m <= kFewProductPixels || p.m * p.n <= kMostHostProducts / p.k ||
         (p.n % vector == 0 && p.k >= kLeastProductDepth);
}
constexpr PerPersonality<bool (*)(const Launch&, const GemmProblem&, Dtype)> kTakesProduct{
    cpu_takes_product, [](const Launch&, const GemmProblem&, Dtype) { return false; }};

// The forward pass as one product of pixels and weights: each pixel of the result reads one of the source, or the only
// one of an image reads all of it. nullopt where it is none, or does what products do not.
std::optional<GemmProblem> product_of(const Launch& run, const ConvGeometry& g, Dtype real) {
  if (g.groups() != 1 || real != real_of(real) || run.epilogue().gate.kind != Operand::Kind::none ||
      g.a.pad[0] + g.a.pad[1] + g.a.pad[2] > 0)
    return std::nullopt;
  const bool is_point = g.taps() == 1 && g.phases() == 1 && g.in_pixels() == g.out_pixels();
  const bool is_image = g.out_pixels() == g.n && std::equal(g.in, g.in + 3, g.kernel);
  if (!is_point && !is_image) return std::nullopt;
  GemmProblem p;
  p.m = g.out_pixels();
  p.k = g.taps() * g.c;
  p.n = g.k;
  p.a_row = p.k;
  p.b_row = p.n;
  p.a_col = p.b_col = 1;
  return run.pick(kTakesProduct)(run, p, real) ? std::optional(p) : std::nullopt;
}

void launch_tiles(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias, bool transposed) {
  run.pick(kLaunchTiles)(run, {g, src, weight, bias, transposed, conv_flags(run, bias)});
}

Cost conv_cost(const Shape& weight, const Shape& dst, std::span<const Shape> src, std::span<const Shape> results) {
  Cost cost;
  const std::int64_t pixels = dst.back() > 0 ? dst.size() / dst.back() : 0;
  cost.flops = 2.0 * static_cast<double>(weight.size()) * static_cast<double>(pixels);
  for (const Shape& s : src) cost.bytes += 4.0 * static_cast<double>(s.size());
  for (const Shape& s : results) cost.bytes += 4.0 * static_cast<double>(s.size());
  return cost;
}

class ConvOp : public Op, public Written {
 public:
  ConvOp(const ConvAttributes& attributes, const char* suffix, const OpTraits& traits)
      : Op(traits), a_(attributes), name_("conv" + std::to_string(attributes.axes) + "d" + suffix) {}
  std::string_view name() const override { return name_; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(a_.axes));
    for (const auto& values : {a_.stride, a_.pad, a_.dilation})
      for (int axis = 0; axis < 3; ++axis) hasher.add(static_cast<std::uint64_t>(values[axis]));
    hasher.add(static_cast<std::uint64_t>(a_.groups));
    hasher.add(static_cast<std::uint64_t>(a_.algorithm));
  }

 protected:
  // The padding behind the source, which the result's size gives: that in front, or less.
  NodeWriter::Ints pad_ends(const NodeWriter& w) const {
    NodeWriter::Ints ends;
    for (int i = 0; i < a_.axes; ++i) {
      const int axis = 3 - a_.axes + i, stride = a_.stride[axis], dilation = a_.dilation[axis], pad = a_.pad[axis];
      const std::int64_t in = w.shape(0)[i + 1], kernel = w.shape(1)[i], out = w.result()[i + 1];
      const bool is_even = conv_size(in, kernel, stride, pad, dilation) == out;
      const std::int64_t read = (out - 1) * stride + (kernel - 1) * dilation + 1;
      ends.push_back(is_even ? pad : std::max<std::int64_t>(read - in - pad, 0));
    }
    return ends;
  }
  // Sources and weights are channels first there; `more` are attributes beyond those of all convolutions.
  void write_as(const char* type, NodeWriter& w, const NodeWriter::Ints& more = {}) const {
    const std::int64_t axes = a_.axes;
    NodeWriter::Ints first{0, axes + 1}, last{0}, taps{axes + 1, axes}, strides, pads, dilations;
    for (std::int64_t i = 0; i < axes; ++i) {
      const auto axis = static_cast<std::size_t>(3 - axes + i);
      first.push_back(i + 1);
      last.push_back(i + 2);
      taps.push_back(i);
      strides.push_back(a_.stride[axis]);
      pads.push_back(a_.pad[axis]);
      dilations.push_back(a_.dilation[axis]);
    }
    last.push_back(1);
    const NodeWriter::Ints ends = more.empty() ? pad_ends(w) : pads;
    pads.insert(pads.end(), ends.begin(), ends.end());
    std::vector<NodeWriter::Name> inputs{w.turned(w.in(0), first), w.turned(w.in(1), taps)};
    if (w.count() > 2) inputs.push_back(w.cast(w.in(2), w.dtype(2), w.result_dtype()));
    NodeWriter::Attributes attributes{
        {"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", std::int64_t{a_.groups}}};
    if (!more.empty()) attributes.push_back({"output_padding", more});
    w.give(w.turned(w.put(type, inputs, attributes), last));
  }

  ConvAttributes a_;

 private:
  std::string name_;
};

// dy, weight and perhaps bias -> dx
class ConvInput final : public ConvOp {
 public:
  explicit ConvInput(const ConvAttributes& attributes)
      : ConvOp(attributes, "_bwd_input",
               {.takes_epilogue = attributes.groups == 1, .takes_gate = attributes.groups == 1}) {}
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(src[1], src[0], src, dst);
  }

  void launch(Launch& run) const override {
    const ConvGeometry g(run.dst_shape(), run.src_shape(1), run.src_shape(0), a_);
    const Operand bias = run.optional_src(2);
    if (is_grouped(run, g)) return launch_grouped_bwd_input(run, g, bias);
    if (is_winograd(run, g, ConvPass::input, run.dst_dtype()))
      return launch_winograd(run, g, run.src(0), run.src(1), bias, true);
    launch_tiles(run, g, run.src(0), run.src(1), bias, true);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
  void write(NodeWriter& w) const override {  // conv_transpose as a forward pass
    NodeWriter::Ints more;
    for (int i = 0; i < a_.axes; ++i) {
      const int axis = 3 - a_.axes + i;
      more.push_back(w.result()[i + 1] - (w.shape(0)[i + 1] - 1) * a_.stride[axis] -
                     (w.shape(1)[i] - 1) * a_.dilation[axis] - 1 + 2 * a_.pad[axis]);
    }
    write_as("ConvTranspose", w, more);
  }
};

// How conv_filter_bwd is shared (see there).
struct FilterPlan {
  std::int64_t strip = 0, strips = 0, strips_per_split = 0;
  std::int64_t others = 0;  // groups of a split
  // Of a CPU device:
  std::int64_t lines = 0;
  int copied = 0;
  std::int64_t taps = 0, m = 0, n = 0;  // of a group

  std::int64_t splits() const { return ceil_div(strips, strips_per_split); }
  conv_filter_shares cpu_shares() const {
    return {i32_of(strip), i32_of(strips_per_split), i32_of(lines), copied, i32_of(taps), i32_of(m), i32_of(n)};
  }
  conv_strips gpu_shares() const { return {i32_of(strip), i32_of(strips_per_split)}; }
};
FilterPlan plan_cpu_filter(const Launch& run, const ConvGeometry& g, std::int64_t bundle, Dtype real) {
  const auto constant = [&](const char* name) { return run.constant("conv_filter", name, real); };
  const std::int64_t mr = constant("CONV_FILTER_MR_NARROW"), nr = constant("CONV_FILTER_NR");
  const std::int64_t most_source = constant("CONV_FILTER_SOURCE"), width = g.out[2];
  const std::int64_t enough = run.choice("conv", "filter", "enough_groups"),
                     most_rows = run.choice("conv", "filter", "most_rows"),  // input channels per group
      most_columns = run.choice("conv", "filter", "most_columns");
  FilterPlan t;
  const auto cut = [&](std::int64_t longest) { t.strip = ceil_div(width, ceil_div(width, longest)); };
  cut(constant("CONV_FILTER_STRIP"));
  // The values of a strip's copy, if its line is copied.
  const auto source = [&] {
    if (t.copied == 1) return t.strip * g.c_group();
    return g.kernel[0] * g.kernel[1] * ((t.strip - 1) * g.a.stride[2] + (g.kernel[2] - 1) * g.a.dilation[2] + 1) * g.c;
  };
  const bool is_16_bit = real != real_of(real);  // then lines are copied in any case, to be widened once
  if (g.c_group() < constant("CONV_FILTER_MR") || is_16_bit) {
    t.copied = g.groups() == 1 ? 2 : 1;
    if (source() > most_source) t.copied = 1;
    for (std::int64_t longest = t.strip / 2; source() > most_source && longest > 0; longest /= 2) cut(longest);
  }
  t.strips = g.n * g.out[0] * g.out[1] * ceil_div(width, t.strip);
  t.lines = std::clamp<std::int64_t>(constant("CONV_FILTER_PIXELS") / t.strip, 1, constant("CONV_FILTER_LINES"));
  if (t.copied != 0) t.lines = std::min(t.lines, most_source / source());
  const std::int64_t all_taps = t.copied == 2 ? 1 : g.taps(), all_rows = t.copied == 2 ? g.taps() * g.c : g.c_group();
  const auto share = [&] { return ceil_div(all_taps, t.taps) * ceil_div(all_rows, t.m) * ceil_div(g.k_group(), t.n); };
  t.taps = 1;
  t.m = std::min(ceil_div(all_rows, mr) * mr, most_rows);
  t.n = std::min(ceil_div(g.k_group(), nr) * nr, most_columns);
  t.strips_per_split = t.strips;
  // Every group reads all pixels: only while both images lie in a cache, and for tiles that do enough with a pixel.
  if (bundle == 1 && g.in_pixels() * g.c + g.out_pixels() * g.k <= kMostShared) {
    while (share() * g.groups() < enough && t.n > kLeastFilterTile && t.n > nr) t.n = ceil_div(t.n / nr, 2) * nr;
    while (share() * g.groups() < enough && t.m > kLeastFilterTile && t.m > mr) t.m = ceil_div(t.m / mr, 2) * mr;
    if (share() * g.groups() >= enough) {
      t.others = share();
      return t;
    }
  }
  t.taps = all_taps;
  t.m = ceil_div(all_rows, mr) * mr;
  if (t.copied != 2) t.m = std::min(t.m, most_rows);
  t.n = std::min(ceil_div(g.k_group(), nr) * nr, most_columns);
  t.others = share();
  const std::int64_t wanted = ceil_div(enough, std::min(enough, t.others * g.groups()));
  const std::int64_t blocks = ceil_div(t.strips, t.lines);
  t.strips_per_split = ceil_div(blocks, std::clamp<std::int64_t>(wanted, 1, blocks)) * t.lines;
  return t;
}
FilterPlan plan_gpu_filter(const Launch& run, const ConvGeometry& g, std::int64_t, Dtype real) {
  FilterPlan t;
  t.strip = ceil_div(g.out[2], ceil_div(g.out[2], kGpuLongestStrip));
  t.strips = g.n * g.out[0] * g.out[1] * ceil_div(g.out[2], t.strip);
  t.m = run.constant("conv_filter", "CONV_FILTER_TILE_M", real);
  t.n = run.constant("conv_filter", "CONV_FILTER_TILE_N", real);
  t.others = ceil_div(g.taps() * g.c_group(), t.m) * ceil_div(g.k_group(), t.n);
  const std::int64_t step = std::max<std::int64_t>(1, kGpuFilterPixels / t.strip), blocks = ceil_div(t.strips, step);
  const std::int64_t wanted = ceil_div(run.choice("conv", "filter", "enough_groups"), t.others * g.groups());
  t.strips_per_split = ceil_div(blocks, std::clamp<std::int64_t>(wanted, 1, blocks)) * step;
  return t;
}

// How each personality computes a weight gradient.
struct FilterTiling {
  bool has_sums;  // the kernel sums dy over pixels on its way, which is the bias's gradient
  std::int64_t (*bundle)(const Launch&, const ConvGeometry&, std::int64_t columns, Dtype real);
  FilterPlan (*plan)(const Launch&, const ConvGeometry&, std::int64_t bundle, Dtype real);
  void (*add)(KernelCall&, const ConvGeometry&, const FilterPlan&, Operand sums);  // what follows the other arrays
};
constexpr PerPersonality<FilterTiling> kFilterTiling{
    {.has_sums = true,
     .bundle = bundle_of,
     .plan = plan_cpu_filter,
     .add = [](KernelCall& call, const ConvGeometry& g, const FilterPlan& t,
               Operand sums) { call.args(sums, g.sizes(), t.cpu_shares()); }},
    {.has_sums = false,
     .bundle = [](const Launch&, const ConvGeometry&, std::int64_t, Dtype) -> std::int64_t { return 1; },
     .plan = plan_gpu_filter,
     .add = [](KernelCall& call, const ConvGeometry& g, const FilterPlan& t,
               Operand) { call.args(g.sizes(), t.gpu_shares()); }}};

// src, dy -> gradient of the weight and, if requested, of the bias, the sum of dy over pixels
class ConvFilter final : public ConvOp {
 public:
  ConvFilter(const ConvAttributes& attributes, bool with_bias)
      : ConvOp(attributes, "_bwd_filter", {}), with_bias_(with_bias) {}
  void hash(Hasher& hasher) const override {
    ConvOp::hash(hasher);
    hasher.add(std::uint64_t{with_bias_});
  }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(dst[0], src[1], src, dst);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const ConvGeometry whole(run.src_shape(0), run.dst_shape(), run.src_shape(1), a_);
    const bool is_winograd_filter = is_winograd(run, whole, ConvPass::filter, real);
    if (is_winograd_filter || is_grouped(run, whole)) {
      const bool has_summed = is_winograd_filter && launch_winograd_filter(run, whole, with_bias_);
      if (!is_winograd_filter) launch_grouped_bwd_filter(run, whole);
      if (with_bias_ && !has_summed) sum_columns(run, whole);
      return;
    }
    const FilterTiling& tiling = run.pick(kFilterTiling);
    const std::int64_t bundle = tiling.bundle(run, whole, whole.k_group(), real);
    const ConvGeometry g = whole.bundled(bundle).flattened();
    const FilterPlan t = tiling.plan(run, g, bundle, real);
    const std::int64_t total = run.dst_shape().size() * bundle, splits = t.splits();
    // 16-bit gradients are rounded once, after the sum is complete.
    const bool in_parts = splits > 1 || real != real_of(real), has_sums = with_bias_ && tiling.has_sums;
    const Operand part = in_parts || bundle > 1 ? run.temp(splits * total, real_of(real)) : run.dst();
    const Operand sums = !has_sums ? Launch::none() : splits > 1 ? run.temp(splits * g.k, real_of(real)) : run.dst(1);
    KernelCall call = run.kernel("conv_filter_bwd", real);
    call.args(run.src(0), run.src(1), part);
    tiling.add(call, g, t, sums);
    call.over_tiles(splits, t.others, g.groups());
    if (bundle > 1)
      run.kernel("conv_filter_unbundle", real)
          .args(part, run.dst(), i32_of(g.taps()), i32_of(whole.c_group()), i32_of(g.k), i32_of(whole.k_group()),
                i32_of(bundle), i32_of(splits))
          .over_tiles(g.taps() * whole.c_group(), 1, 1, 64, 1);
    else if (in_parts)
      launch_filter_reduce(run, part, splits);
    if (has_sums && splits > 1) launch_filter_reduce(run, sums, splits, 1);
    if (with_bias_ && !has_sums) sum_columns(run, whole);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
  void write(NodeWriter& w) const override { w.refuse("it is a gradient"); }

 private:
  static void sum_columns(Launch& run, const ConvGeometry& g) {
    launch_column_sums(run, run.src(1), run.dst(1), g.out_pixels(), g.k, run.src_dtype(1), run.dst_dtype(1));
  }

  bool with_bias_;
};

// weight -> what minimal filtering multiplies by instead, in the order of its kernel, as one line
class WinogradFilter final : public Op {
 public:
  explicit WinogradFilter(const WinogradWeights& weights) : weights_(weights) {}
  std::string_view name() const override { return "winograd_weights"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(weights_.axes)); }
  void launch(Launch& run) const override { weights_.launch(run, run.src(0), run.dst(), run.src_dtype(0)); }

 private:
  WinogradWeights weights_;  // sizes follow from the shape of the source
};

// src, weight, what its weight became and perhaps bias -> dst: in a graph that was settled
class ConvSettled final : public ConvOp {
 public:
  enum class Form : std::uint8_t { transformed, panels };
  ConvSettled(const ConvAttributes& attributes, Form form)
      : ConvOp(attributes, "",
               {.takes_epilogue = true, .takes_gate = form == Form::transformed, .takes_activation = true}),
        form_(form) {}
  void hash(Hasher& hasher) const override {
    ConvOp::hash(hasher);
    hasher.add(static_cast<std::uint64_t>(form_));
  }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(src[1], dst[0], src, dst);
  }
  void launch(Launch& run) const override {
    const ConvGeometry g(run.src_shape(0), run.src_shape(1), run.dst_shape(), a_);
    const Operand bias = run.optional_src(3);
    if (form_ == Form::transformed) return launch_winograd(run, g, run.src(0), run.src(1), bias, false, run.src(2));
    launch_gemm_panels(run, run.src(0), run.src(2), bias, run.dst(), *product_of(run, g, run.dst_dtype()),
                       run.dst_dtype());
  }
  void write(NodeWriter& w) const override {
    w.refuse("its weight was made ready for inference; save the module that was frozen");
  }

 private:
  Form form_;
};

// src, weight and perhaps bias -> dst
class Conv final : public ConvOp {
 public:
  explicit Conv(const ConvAttributes& attributes)
      : ConvOp(attributes, "",
               {.takes_epilogue = true, .takes_gate = attributes.groups == 1, .takes_activation = true}) {}
  const ConvAttributes& attributes() const { return a_; }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    return conv_cost(src[1], dst[0], src, dst);
  }

  void launch(Launch& run) const override {
    const ConvGeometry g(run.src_shape(0), run.src_shape(1), run.dst_shape(), a_);
    const Operand bias = run.optional_src(2);
    if (is_grouped(run, g)) return launch_grouped_fwd(run, g, bias);
    if (const auto product = product_of(run, g, run.dst_dtype()))
      return launch_gemm(run, run.src(0), run.src(1), bias, run.dst(), *product, run.dst_dtype());
    if (is_single(run, g, run.dst_dtype())) return launch_single(run, g, bias);
    if (is_winograd(run, g, ConvPass::forward, run.dst_dtype()))
      return launch_winograd(run, g, run.src(0), run.src(1), bias, false);
    launch_tiles(run, g, run.src(0), run.src(1), bias, false);
  }

  // With its weight transformed for minimal filtering, or in panels for a product.
  Array settled(const Launch& run, std::span<const bool> is_constant) const override {
    const ConvGeometry g(run.src_shape(0), run.src_shape(1), run.node().shape, a_);
    const Dtype dtype = run.node().dtype;
    if (!is_constant[1] || is_grouped(run, g)) return {};
    std::vector<Array> inputs;
    for (const Edge& edge : run.node().inputs) inputs.emplace_back(edge.node);
    Array made;
    auto form = ConvSettled::Form::panels;
    if (const auto product = product_of(run, g, dtype)) {
      if (!gemm_takes_panels(run, *product, dtype)) return {};
      made = gemm_panels(run, reshape(inputs[1], {product->k, product->n}));
    } else if (!is_single(run, g, dtype) && is_winograd(run, g, ConvPass::forward, dtype)) {
      form = ConvSettled::Form::transformed;
      const WinogradWeights weights = WinogradWeights::of(g, false);
      const Shape size{weights.size(run, real_of(dtype))};
      made = make_array(make_op<WinogradFilter>(weights), size, real_of(dtype), std::span(&inputs[1], 1));
    } else {
      return {};
    }
    inputs.insert(inputs.begin() + 2, made);
    return make_array(make_op<ConvSettled>(a_, form), run.node().shape, dtype, inputs);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override;
  void write(NodeWriter& w) const override { write_as("Conv", w); }
};

std::vector<Array> Conv::gradient(const GradientRequest& g) const {
  std::vector<Array> result(g.src.size());
  if (g.wanted[0]) result[0] = conv_bwd_input(g.dy[0], g.src[1], {}, g.src[0].shape(), a_);
  if (g.src.size() > 2 && g.wanted[1] && g.wanted[2]) {
    const Shape& weight = g.src[1].shape();
    const std::vector<Array> inputs{g.src[0], g.dy[0]};
    const Result results[] = {{weight, g.dy[0].dtype()}, {Shape{weight.back()}, real_of(g.dy[0].dtype())}};
    const std::vector<Array> d = make_arrays(make_op<ConvFilter>(a_, true), results, inputs);
    result[1] = d[0];
    result[2] = d[1];
  } else if (g.wanted[1]) {
    result[1] = conv_bwd_filter(g.src[0], g.dy[0], g.src[1].shape(), a_);
  } else if (g.src.size() > 2 && g.wanted[2]) {
    result[2] = column_sums(g.dy[0]);
  }
  return result;
}

std::vector<Array> ConvInput::gradient(const GradientRequest& g) const {  // of (dy, weight, bias) -> dx
  std::vector<Array> result(g.src.size());
  if (g.wanted[0]) result[0] = conv_forward(g.dy[0], g.src[1], {}, g.src[0].shape(), a_);
  if (g.wanted[1]) result[1] = conv_bwd_filter(g.dy[0], g.src[0], g.src[1].shape(), a_);
  if (g.src.size() > 2 && g.wanted[2]) result[2] = column_sums(g.dy[0]);
  return result;
}

std::vector<Array> ConvFilter::gradient(const GradientRequest& g) const {  // of (src, dy) -> dw, perhaps db
  std::vector<Array> result(2);
  if (g.wanted[0])  // db does not depend on src
    result[0] = g.dy[0].defined() ? conv_bwd_input(g.src[1], g.dy[0], {}, g.src[0].shape(), a_)
                                  : zeros(g.src[0].shape(), g.src[0].dtype());
  if (!g.wanted[1]) return result;
  if (g.dy[0].defined()) result[1] = conv_forward(g.src[0], g.dy[0], {}, g.src[1].shape(), a_);
  if (with_bias_ && g.dy[1].defined()) {
    const Array each = broadcast_to(as_dtype(g.dy[1], g.src[1].dtype()), g.src[1].shape());
    result[1] = result[1].defined() ? result[1] + each : each;
  }
  return result;
}

std::vector<Array> with_bias(const Array& a, const Array& b, const Array& bias) {
  std::vector<Array> inputs{a, b};
  if (bias.defined()) inputs.push_back(bias);
  return inputs;
}

}  // namespace

void launch_filter_reduce(Launch& run, Operand part, std::int64_t splits, int result) {
  const Dtype real = run.dst_dtype(result);
  const std::int64_t total = run.dst_shape(result).size();
  run.kernel("conv_filter_reduce", real)
      .args(part, run.dst(result), total, i32_of(splits))
      .over_tiles(ceil_div(total, run.constant("conv_filter", "CONV_FILTER_REDUCE_BLOCK", real)), 1, 1, 256, 1);
}

std::int64_t conv_size(std::int64_t in, std::int64_t kernel, int stride, int pad, int dilation) {
  const std::int64_t padded = in + 2 * std::int64_t{pad};
  std::int64_t span = 0;
  if (__builtin_mul_overflow(std::int64_t{dilation}, kernel - 1, &span)) return 0;
  return padded < ++span ? 0 : (padded - span) / stride + 1;
}

Array conv_forward(const Array& src, const Array& weight, const Array& bias, const Shape& dst,
                   const ConvAttributes& a) {
  return make_array(make_op<Conv>(a), dst, src.dtype(), with_bias(src, weight, bias));
}

std::optional<ConvCall> replaceable_conv(const Array& a) {
  if (a.node().use_count() != 1) return std::nullopt;  // checked first: another thread may be evaluating a shared one
  const Node& node = *a.node();
  const auto* conv = node.op && !node.has_value ? dynamic_cast<const Conv*>(node.op.get()) : nullptr;
  if (!conv) return std::nullopt;
  for (const Edge& edge : node.inputs)  // cells must still hold the values that this convolution reads
    if (edge.node->base().version != edge.version) return std::nullopt;
  const auto input = [&](std::size_t i) { return i < node.inputs.size() ? Array(node.inputs[i].node) : Array(); };
  return ConvCall{input(0), input(1), input(2), conv->attributes()};
}

Array conv_bwd_input(const Array& dy, const Array& weight, const Array& bias, const Shape& src,
                     const ConvAttributes& a) {
  return make_array(make_op<ConvInput>(a), src, dy.dtype(), with_bias(dy, weight, bias));
}

Array conv_bwd_filter(const Array& src, const Array& dy, const Shape& weight, const ConvAttributes& a) {
  return make_array(make_op<ConvFilter>(a, false), weight, dy.dtype(), with_bias(src, dy, {}));
}

}  // namespace samebytes::detail
