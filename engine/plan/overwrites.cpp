#include "plan/overwrites.h"

#include <algorithm>
#include <map>
#include <string>

#include "graph/op.h"
#include "graph/overwrite.h"
#include "graph/snapshot.h"

namespace samebytes::detail {
namespace {

int results_of(const Node& node) { return std::max(1, static_cast<int>(node.results.size())); }

// The cell that the k-th result of a node is written into, null for none.
NodePtr cell_under(const Node& node, int k) {
  if (node.has_value || node.is_view || node.output >= 0 || !node.op || node.state_written) return nullptr;
  const int input = node.op->traits().in_place(k);
  if (input < 0) return nullptr;
  NodePtr base = base_of(node.inputs[static_cast<std::size_t>(input)].node);
  return base->cell ? base : nullptr;
}

// Whether the node writes the whole cell, independent of its old contents.
bool is_update(const Node& node) { return node.op && node.op->traits().updates_cell; }

}  // namespace

Overwrites::Overwrites(const std::vector<NodePtr>& nodes) {
  for (const NodePtr& node : nodes)
    for (int k = 0; k < results_of(*node); ++k)
      if (const NodePtr cell = cell_under(*node, k))
        for (const NodePtr& other : overlapping(cell)) {
          std::vector<int>& places = by_cell_[other.get()];
          if (places.empty() || places.back() != node->place) places.push_back(node->place);
        }
}

const Node* Overwrites::target(const Node& base) {
  if (base.cell) return &base;
  if (base.has_value) return nullptr;
  const Node& maker = base.output >= 0 ? *base.inputs[0].node : base;
  return cell_under(maker, std::max(base.output, 0)).get();
}

bool Overwrites::is_same_element(const Node& update, const Node& input) {
  const Node& cell = *update.inputs[0].node;
  if (&input == &cell) return true;
  return input.is_view && &input.base() == &cell && input.offset == 0 && input.shape.size() == cell.shape.size() &&
         input.is_dense();
}

void take_snapshots(std::vector<NodePtr>& nodes) {
  const Overwrites overwrites(nodes);
  if (!overwrites.any()) return;
  std::map<std::pair<int, const Node*>, NodePtr> taken;  // by the place before which it is taken, and what it copies
  for (const NodePtr& reader : nodes) {
    std::vector<std::pair<std::size_t, int>> late;  // inputs, and the first place at which each is overwritten
    overwrites.each(*reader, [&](std::size_t input, int place) {
      const bool is_late =
          place < reader->place || (place == reader->place && is_update(*reader) &&
                                    !(reader->op->traits().is_pointwise_update() &&
                                      Overwrites::is_same_element(*reader, *reader->inputs[input].node)));
      if (is_late && (late.empty() || late.back().first != input)) late.emplace_back(input, place);
    });
    for (const auto& [input, place] : late) {
      Edge& edge = reader->inputs[input];
      NodePtr& copy = taken[{place, edge.node.get()}];
      if (!copy) copy = snapshot_of(edge.node);
      edge = Edge{copy, 0};
    }
  }
  if (taken.empty()) return;
  std::vector<NodePtr> all;
  all.reserve(nodes.size() + taken.size());
  auto next = taken.begin();
  for (const NodePtr& node : nodes) {
    for (; next != taken.end() && next->first.first == node->place; ++next) all.push_back(next->second);
    all.push_back(node);
  }
  nodes = std::move(all);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i]->place = static_cast<int>(i);
}

void check_single_updates(const std::vector<NodePtr>& nodes) {
  struct Writer {
    const Node* node;
    bool is_update;
  };
  std::unordered_map<const Node*, Writer> writers;
  for (const NodePtr& node : nodes)
    for (int k = 0; k < results_of(*node); ++k) {
      const NodePtr cell = cell_under(*node, k);
      if (!cell) continue;
      const Writer own{node.get(), is_update(*node)};
      for (const NodePtr& other : overlapping(cell)) {
        const auto found = writers.find(other.get());
        if (found == writers.end()) continue;
        const Writer& before = found->second;
        const bool is_as_written = before.node->id < node->id || !(own.is_update || before.is_update);
        if (is_as_written && !(own.is_update && before.is_update)) continue;
        throw ArgumentError("eval: " + std::string(before.node->op->name()) + " and " + std::string(node->op->name()) +
                            " both overwrite " + other->cell->name +
                            " in one run, expected one; evaluate the first before the second is written, or make one "
                            "value of both");
      }
      writers.emplace(cell.get(), own);
    }
}

}  // namespace samebytes::detail
