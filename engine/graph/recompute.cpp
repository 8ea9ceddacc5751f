#include "graph/recompute.h"

#include <algorithm>

#include "graph/op.h"
#include "graph/segment.h"

namespace samebytes::detail {
namespace {

// If an op has several results and some are kept, results that are this many times smaller are kept too, such as the
// statistics beside a layer norm's values.
constexpr std::int64_t kKeptShare = 16;

bool writes_in_place(const Node& node) {
  const int results = std::max<int>(1, static_cast<int>(node.results.size()));
  for (int k = 0; k < results; ++k)
    if (node.op->traits().in_place(k) >= 0) return true;
  return false;
}

// Whether the node needs no recomputation: a leaf, a value, a cell or the result of an update.
bool is_there(const Node& node) { return node.has_value || (!node.op && node.output < 0); }

}  // namespace

Recomputation::Recomputation(std::span<const NodePtr> tape) {
  for (const NodePtr& node : tape)
    for (const Segment* s = node->segment.get(); s && !is_open(s); s = s->outer.get()) parts_[s].nodes.push_back(node);
  if (parts_.empty()) return;
  for (const NodePtr& node : tape)
    for (const Edge& edge : node->tape_inputs())
      for (const Segment* s = edge.node->segment.get(); s && !is_within(*node, s); s = s->outer.get())
        keep(edge.node, s);
  for (const Segment* s = tape.back()->segment.get(); s; s = s->outer.get()) keep(tape.back(), s);
  for (auto& [segment, part] : parts_) keep_small_results(part);
}

Recomputation::Part* Recomputation::part_of(const Segment* segment) {
  const auto found = parts_.find(segment);
  return found == parts_.end() ? nullptr : &found->second;
}

// Keeps a view by keeping its base.
void Recomputation::keep(const NodePtr& node, const Segment* segment) {
  Part* const part = part_of(segment);
  if (!part) return;
  const Node* kept = node.get();
  part->kept.insert(kept);
  while (kept->is_view && is_within(*kept->inputs[0].node, segment)) {
    kept = kept->inputs[0].node.get();
    part->kept.insert(kept);
  }
}

void Recomputation::keep_small_results(Part& part) {
  std::unordered_map<const Node*, std::int64_t> largest;  // by producer: elements of the largest kept result
  for (const Node* node : part.kept)
    if (node->output >= 0) {
      std::int64_t& size = largest[node->inputs[0].node.get()];
      size = std::max(size, node->shape.size());
    }
  if (largest.empty()) return;
  for (const NodePtr& node : part.nodes) {
    if (node->output < 0) continue;
    const auto found = largest.find(node->inputs[0].node.get());
    if (found != largest.end() && node->shape.size() * kKeptShare <= found->second) part.kept.insert(node.get());
  }
}

NodePtr Recomputation::seen_from(const Node& reader, const NodePtr& node) {
  return parts_.empty() ? node : seen_from(reader.segment.get(), node);
}

NodePtr Recomputation::seen_from(const Segment* segment, const NodePtr& node) {
  for (; segment; segment = segment->outer.get()) {
    Part* const part = part_of(segment);
    if (!part) break;  // still open, and so are those around it
    if (!is_within(*node, segment) || part->kept.count(node.get())) continue;
    build(segment, *part);
    const auto found = part->again.find(node.get());
    return found == part->again.end() ? node : found->second;
  }
  return node;
}

void Recomputation::build(const Segment* segment, Part& part) {
  if (part.is_built) return;
  if (Part* const outer = part_of(segment->outer.get())) build(segment->outer.get(), *outer);
  part.is_built = true;
  for (const NodePtr& node : part.nodes)
    if (!part.kept.count(node.get())) part.again.emplace(node.get(), again(segment, node));
}

NodePtr Recomputation::again(const Segment* segment, const NodePtr& node) {
  if (is_there(*node)) return node;
  OpPtr op = node->op;
  if (op && writes_in_place(*node)) {
    op = op->without_state();
    if (!op) return node;
  }
  std::vector<Edge> inputs;
  inputs.reserve(node->inputs.size());
  bool is_changed = false;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    if (op != node->op && node->op->traits().is_state(static_cast<int>(i))) continue;
    const Edge& edge = node->inputs[i];
    inputs.push_back({seen_from(segment, edge.node), edge.version});
    is_changed = is_changed || inputs.back().node != edge.node;
  }
  if ((node->is_view || node->output >= 0) && !is_changed) return node;
  if (node->output >= 0 && static_cast<std::size_t>(node->output) >= inputs[0].node->results.size()) return node;
  return repeat_node(*node, op, std::move(inputs));
}

}  // namespace samebytes::detail
