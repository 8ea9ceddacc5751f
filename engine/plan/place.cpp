#include "plan/place.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/hash.h"
#include "graph/op.h"
#include "plan/pack_parts.h"
#include "plan/planner.h"

namespace samebytes::detail {
namespace {

class Placer {
 public:
  Placer(const GraphList& list, const Grouping& grouping, Context& context, PersistentStorages& persistent,
         KernelMaker& kernels)
      : list_(list), grouping_(grouping), context_(context), persistent_(persistent), kernels_(kernels) {}

  PlacedValues run() {
    const int n = static_cast<int>(list_.nodes.size());
    placed_.buffer_of.assign(list_.nodes.size(), -1);
    placed_.results.resize(list_.nodes.size());
    placed_.segments.resize(grouping_.releases.size());
    for (int i = 0; i < n; ++i) placed_.buffer_of[i] = buffer_for(i);
    for (int i = 0; i < n; ++i)
      if (const Node& node = node_at(i); !node.has_value && node.op && node.op->traits().pack)
        place_parts(i, *node.op->traits().pack);
    note_parts_of_cells();
    return std::move(placed_);
  }

 private:
  const Node& node_at(int place) const { return *list_.nodes[static_cast<std::size_t>(place)]; }
  bool is_wanted(int place) const { return list_.wanted[static_cast<std::size_t>(place)] != 0; }
  PlanBuffer& buffer(int index) { return placed_.buffers[static_cast<std::size_t>(index)]; }

  int add(PlanBuffer::Kind kind, const Shape& shape, Dtype dtype, int place, int device) {
    return placed_.add(kind, shape, dtype, place, device, *context_.runtime);
  }

  int buffer_for(int place) {
    const Node& n = node_at(place);
    if (n.is_view) return placed_.buffer_of[n.base().place];
    if (n.has_value) {
      const int leaf = add(PlanBuffer::Kind::leaf, n.shape, n.dtype, place, n.device);
      if (n.storage) buffer(leaf).space = n.storage->space().index();
      return leaf;
    }
    if (n.output >= 0)  // made with its producer
      return kept(placed_.results[n.inputs[0].node->place][static_cast<std::size_t>(n.output)], place);
    if (!n.results.empty()) {
      place_results(place);
      return -1;
    }
    const int group = grouping_.fusion.group[place];
    if (group >= 0 && !grouping_.fusion.is_output[place]) return -1;  // lives in registers
    const EpilogueResult& epilogues = grouping_.epilogues;
    if (epilogues.of[place].result >= 0 || (epilogues.absorbed[place] && epilogues.producer[place] < 0)) return -1;
    const int over = n.op->traits().in_place(0);
    if (over >= 0) return kept(overwritten(place, over), place);
    return add(is_wanted(place) ? PlanBuffer::Kind::own : PlanBuffer::Kind::arena, n.shape, n.dtype, place, n.device);
  }

  void place_results(int place) {
    const Node& n = node_at(place);
    for (std::size_t k = 0; k < n.results.size(); ++k) {
      const int over = n.op->traits().in_place(static_cast<int>(k));
      const bool keeps = over >= 0 && !n.state_written;
      placed_.results[place].push_back(
          keeps ? overwritten(place, over)
                : add(PlanBuffer::Kind::arena, n.results[k].first, n.results[k].second, place, n.device));
    }
  }

  // Returns the buffer; if it is a temporary that `place` shows and somebody wants, turns it into one that keeps the
  // bytes.
  int kept(int index, int place) {
    if (is_wanted(place) && index >= 0 && buffer(index).kind == PlanBuffer::Kind::arena) {
      buffer(index).kind = PlanBuffer::Kind::own;
      buffer(index).node = place;
    }
    return index;
  }

  int overwritten(int place, int input) {
    const Node& target = *node_at(place).inputs[static_cast<std::size_t>(input)].node;
    if (node_at(target.base().place).cell && (placed_.late_cells.empty() || placed_.late_cells.back() != place))
      placed_.late_cells.push_back(place);
    return placed_.buffer_of[target.place];
  }

  // Finds the cells inside a flat cell that is also a leaf; the plan's key covers this (graph_list.cpp).
  void note_parts_of_cells() {
    for (PlanBuffer& leaf : placed_.buffers) {
      if (leaf.kind != PlanBuffer::Kind::leaf || !node_at(leaf.node).cell) continue;
      const NodePtr whole = node_at(leaf.node).cell->whole.lock();
      if (whole && static_cast<std::size_t>(whole->place) < list_.nodes.size() &&
          list_.nodes[static_cast<std::size_t>(whole->place)] == whole)
        leaf.part_of_leaf = placed_.buffer_of[whole->place];
    }
  }

  // The producers of a pack write straight into it unless another reader needs their values elsewhere.
  void place_parts(int place, const PackLayout& pack) {
    const Node& n = node_at(place);
    if (const GradientRelease* const release = grouping_.release_of_pack(place)) {
      buffer(placed_.buffer_of[place]).kind = PlanBuffer::Kind::empty;  // only its segments exist
      std::vector<int>& segments = placed_.segments[static_cast<std::size_t>(release - grouping_.releases.data())];
      for (const GradientSegment& segment : release->segments) {
        const int one = add(PlanBuffer::Kind::arena, Shape{segment.end - segment.begin}, n.dtype, place, n.device);
        buffer(one).by_parts = true;
        segments.push_back(one);
        place_parts_in(one, n, pack, segment);
      }
      return;
    }
    PlanBuffer& whole = buffer(placed_.buffer_of[place]);
    if (whole.kind == PlanBuffer::Kind::arena) whole.by_parts = lies_in_arena(n);
    if (whole.kind == PlanBuffer::Kind::arena && !whole.by_parts) keep_between_runs(whole, n, place);
    const bool fills_cell =
        n.op->traits().updates_cell && whole.kind == PlanBuffer::Kind::leaf && is_alone_with_cell(n, place);
    if (whole.kind == PlanBuffer::Kind::persistent || whole.by_parts || fills_cell)
      place_parts_in(placed_.buffer_of[place], n, pack, {0, pack.n, 0, pack.offsets.size()});
  }

  // Plans share the storage of a small flat gradient; packs of one layout in the same plan do not.
  void keep_between_runs(PlanBuffer& whole, const Node& n, int place) {
    whole.kind = PlanBuffer::Kind::persistent;
    Hasher layout;
    layout.add(n.op->fingerprint());
    layout.add(packs_of_layout_[n.op->fingerprint()]++);
    kernels_.run({.op = "pack", .places = {place}, .device = context_.runtime->device(n.device), .real = whole.dtype},
                 [&] { whole.storage = persistent_.get(context_, layout.key().a, whole.bytes, n.device); });
  }

  // Whether only this node, which fills a cell, uses what the cell holds: then parts may be written there before the
  // node's own turn.
  bool is_alone_with_cell(const Node& fills, int place) const {
    const Node& cell = *fills.inputs.back().node;
    if (!cell.cell->members.empty() || cell.cell->whole.lock()) return false;
    for (const NodePtr& n : list_.nodes) {
      if (n->place == place || n->has_value) continue;
      for (const Edge& edge : n->inputs)
        if (&edge.node->base() == &cell) return false;
    }
    return true;
  }

  void place_parts_in(int whole, const Node& n, const PackLayout& pack, const GradientSegment& range) {
    for (std::size_t i = range.first_part; i < range.end_part; ++i) {
      const Node& part = *n.inputs[i].node;
      const Node& base = part.base();
      if (!part.is_dense() || (part.is_view && part.offset != 0) || base.has_value ||
          base.shape.size() != part.shape.size() || base.device != n.device)
        continue;
      const int index = placed_.buffer_of[base.place];
      if (index < 0 || buffer(index).kind != PlanBuffer::Kind::arena) continue;
      buffer(index).kind = PlanBuffer::Kind::part;
      buffer(index).parent = whole;
      buffer(index).offset = pack.offsets[i] - range.begin;
    }
  }

  const GraphList& list_;
  const Grouping& grouping_;
  Context& context_;
  PersistentStorages& persistent_;
  KernelMaker& kernels_;
  std::map<std::uint64_t, std::uint64_t> packs_of_layout_;  // number of persistent ones so far, by fingerprint
  PlacedValues placed_;
};

}  // namespace

int PlacedValues::add(PlanBuffer::Kind kind, const Shape& shape, Dtype dtype, int place, int device, Runtime& runtime) {
  PlanBuffer buffer;
  buffer.bytes = static_cast<std::size_t>(shape.size()) * bytes_of(dtype);
  buffer.kind = buffer.bytes == 0 ? PlanBuffer::Kind::empty : kind;
  buffer.dtype = dtype;
  buffer.node = place;
  buffer.device = device;
  buffer.space = runtime.device(device).space().index();
  buffers.push_back(std::move(buffer));
  return static_cast<int>(buffers.size()) - 1;
}

PlacedValues place_values(const GraphList& list, const Grouping& grouping, Context& context,
                          PersistentStorages& persistent, KernelMaker& kernels) {
  return Placer(list, grouping, context, persistent, kernels).run();
}

std::string describe(const PlacedValues& placed) {
  std::array<int, 6> count{};
  for (const PlanBuffer& buffer : placed.buffers) ++count[static_cast<std::size_t>(buffer.kind)];
  const auto of = [&](PlanBuffer::Kind kind) { return std::to_string(count[static_cast<std::size_t>(kind)]); };
  return std::to_string(placed.buffers.size()) + " buffers: " + of(PlanBuffer::Kind::leaf) + " leaves, " +
         of(PlanBuffer::Kind::own) + " wanted, " + of(PlanBuffer::Kind::arena) + " in the arena, " +
         of(PlanBuffer::Kind::part) + " parts of flat gradients, " + of(PlanBuffer::Kind::persistent) +
         " kept between runs, " + of(PlanBuffer::Kind::empty) + " empty";
}

}  // namespace samebytes::detail
