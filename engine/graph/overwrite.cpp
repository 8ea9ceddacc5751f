#include "graph/overwrite.h"

#include <algorithm>
#include <atomic>

#include "graph/op.h"
#include "graph/snapshot.h"

namespace samebytes::detail {
namespace {

// Nothing behind such a node has a gradient by it: stop_gradient.
bool cuts_gradient(const Node& node) {
  const Op* const op = node.tape_op().get();
  return op && op->traits().cuts_gradient;
}

constexpr std::size_t kFewOrigins = 8;  // so few are checked after every evaluation

// All ancestors of nodes with an origin, including these nodes, in creation order.
class Ancestry {
 public:
  Ancestry(const std::vector<NodePtr>& nodes, std::uint64_t stamp) {
    std::vector<NodePtr> stack = nodes;
    while (!stack.empty()) {
      const NodePtr node = std::move(stack.back());
      stack.pop_back();
      if (node->mark == stamp) continue;
      node->mark = stamp;
      nodes_.push_back(node);
      for (const Edge& edge : node->tape_inputs()) stack.push_back(edge.node);
    }
    std::sort(nodes_.begin(), nodes_.end(), comes_before);
    facts_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i]->place = static_cast<int>(i);
      learn(*nodes_[i], facts_[i]);
    }
  }

  // The leaf at an edge that was overwritten after the edge was made; null if there is none.
  const Node* overwritten(const Node& node) const { return facts(node).overwritten; }
  // Whether a gradient could be taken by something behind the node.
  bool has_source(const Node& node) const { return facts(node).has_source; }
  std::vector<std::uint64_t> sources(const Node& node) const {
    std::vector<std::uint64_t> ids;
    std::vector<char> seen(nodes_.size());
    std::vector<const Node*> stack{&node};
    while (!stack.empty()) {
      const Node* const at = stack.back();
      stack.pop_back();
      if (std::exchange(seen[static_cast<std::size_t>(at->place)], 1)) continue;
      if (at != &node && is_source(*at)) ids.push_back(at->id);
      if (at->origin) ids.insert(ids.end(), at->origin->lost_sources.begin(), at->origin->lost_sources.end());
      if (!cuts_gradient(*at))
        for (const Edge& edge : at->tape_inputs()) stack.push_back(edge.node.get());
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

 private:
  struct Facts {
    const Node* overwritten = nullptr;
    bool has_source = false;
  };
  const Facts& facts(const Node& node) const { return facts_[static_cast<std::size_t>(node.place)]; }
  static bool is_source(const Node& node) { return node.cell || node.handles.load(std::memory_order_relaxed) > 0; }

  void learn(const Node& node, Facts& own) const {
    if (node.origin && !node.origin->lost.empty()) own.has_source = !node.origin->lost_sources.empty();
    if (!node.tracks_gradient || cuts_gradient(node)) return;
    const Op* const op = node.tape_op().get();
    int input = 0;
    for (const Edge& edge : node.tape_inputs()) {
      if (op && op->traits().is_state(input++)) continue;
      const Node& base = edge.node->base();
      if (!own.overwritten && base.version != edge.version) own.overwritten = &base;
      if (!own.overwritten) own.overwritten = facts(*edge.node).overwritten;
      own.has_source = own.has_source || is_source(*edge.node) || facts(*edge.node).has_source;
    }
  }

  std::vector<NodePtr> nodes_;
  std::vector<Facts> facts_;
};

}  // namespace

void Snapshot::launch(Launch&) const {}

NodePtr snapshot_of(const NodePtr& node) {
  static const OpPtr op = make_op<Snapshot>();
  Edge edge{node, node->base().version.load()};
  NodePtr copy = repeat_node(*node, op, {std::move(edge)});
  copy->is_repeated = node->is_repeated;
  copy->is_view = false;
  copy->output = -1;
  copy->offset = 0;
  copy->scalars.clear();
  copy->device = node->base().device;
  copy->id = node->id;
  copy->is_snapshot = true;
  return copy;
}

NodePtr base_of(const NodePtr& node) {
  NodePtr base = node;
  while (base->is_view) base = NodePtr(base->inputs[0].node);
  return base;
}

std::vector<NodePtr> overlapping(const NodePtr& leaf) {
  std::vector<NodePtr> leaves{leaf};
  if (!leaf->cell) return leaves;
  if (NodePtr whole = leaf->cell->whole.lock()) leaves.push_back(std::move(whole));
  for (const auto& member : leaf->cell->members)
    if (NodePtr part = member.lock()) leaves.push_back(std::move(part));
  return leaves;
}

void before_foreign_write(const NodePtr& leaf, const char* file, int line) {
  Context& context = *leaf->context;
  context.evaluator->keep_readers(leaf);
  leaf->origin.reset();  // the user owns its bytes now
  for (const NodePtr& other : overlapping(leaf)) {
    ++other->version;
    other->changed_at = 0;
    other->changed_in = file;
    other->changed_in_line = line;
  }
  if (!context.taped.empty()) sweep_origins(context);
}

void keep_origin(const NodePtr& node) {
  node->origin = nullptr;
  if (node->tracks_gradient && !node->inputs.empty() && is_floating(node->dtype) && !cuts_gradient(*node)) {
    node->origin = std::make_unique<Origin>();
    node->origin->op = std::move(node->op);
    node->origin->inputs = std::move(node->inputs);
    node->origin->scalars = std::move(node->scalars);
    node->context->taped.push_back(node);
  }
  node->op = nullptr;
  node->inputs.clear();
  node->scalars.clear();
}

void sweep_origins(Context& context) {
  std::vector<NodePtr> nodes;
  nodes.reserve(context.taped.size());
  for (const auto& weak : context.taped)
    if (NodePtr node = weak.lock(); node && node->origin && node->origin->lost.empty())
      nodes.push_back(std::move(node));
  context.taped.clear();
  const Ancestry ancestry(nodes, ++context.stamp);
  std::vector<std::unique_ptr<Origin>> dropped;  // destroyed after the loop, which still reads what only they hold
  for (const NodePtr& node : nodes) {
    if (const Node* const leaf = ancestry.overwritten(*node)) {
      auto lost = std::make_unique<Origin>();
      lost->lost = leaf->name() + ", which " + leaf->overwritten_by() + " has overwritten since";
      lost->lost_sources = ancestry.sources(*node);
      dropped.push_back(std::exchange(node->origin, std::move(lost)));
    } else if (!ancestry.has_source(*node)) {
      dropped.push_back(std::move(node->origin));
    } else {
      context.taped.push_back(node);
    }
  }
  context.next_sweep = context.taped.size() <= kFewOrigins ? 0 : 2 * context.taped.size();
}

}  // namespace samebytes::detail
