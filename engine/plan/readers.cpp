#include "plan/readers.h"

#include <algorithm>

#include "graph/op.h"
#include "graph/snapshot.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kSmallSum = 64;  // elements
constexpr std::size_t kGrownChain = 8;  // nodes from which on a chain counts as growing
constexpr std::size_t kMostMet = 256;   // ... nodes to inspect

// Whether a node reads a target; remembers negative answers for the next query.
class Search {
 public:
  explicit Search(const std::unordered_set<const Node*>& targets) : targets_(targets) {}

  bool reads(const Node& start) {
    std::vector<const Node*> stack{&start}, met;
    while (!stack.empty()) {
      const Node* const node = stack.back();
      stack.pop_back();
      if (targets_.count(node) != 0) {
        for (const Node* const one : met) clean_.erase(one);
        return true;
      }
      if (node->has_value || !clean_.insert(node).second) continue;
      met.push_back(node);
      for (const Edge& edge : node->inputs) stack.push_back(edge.node.get());
    }
    return false;
  }

 private:
  const std::unordered_set<const Node*>& targets_;
  std::unordered_set<const Node*> clean_;
};

bool is_held(const Node& node) { return node.handles.load(std::memory_order_relaxed) > 0; }

// Whether the leaf was not lost in a failed launch, which would be thrown here.
bool is_there(const Node& leaf) { return !leaf.storage || !leaf.storage->is_lost(); }

bool is_pointwise(const Node& node) { return !node.is_view && node.op && node.op->traits().is_pointwise_value(); }

// Whether everything that a small pointwise node needs is evaluated, or as small and simple; and whether it continues
// from an earlier value that nobody holds any more, or from a growing chain.
bool is_carried_on(const Node& node) {
  bool goes_on = false;
  std::vector<const Node*> stack{&node};
  for (std::size_t met = 0; !stack.empty(); ++met) {
    if (met == kMostMet) return false;
    goes_on = goes_on || met == kGrownChain;
    const Node& at = *stack.back();
    stack.pop_back();
    for (const Edge& edge : at.inputs) {
      const Node& input = *edge.node;
      if (input.shape.size() > kSmallSum) return false;
      if (input.has_value) {
        if (input.cell || input.version != edge.version || !is_there(input)) return false;
        goes_on = goes_on || (input.was_made && !is_held(input));
        continue;
      }
      if (!is_pointwise(input) && !input.is_view && !(input.op && input.inputs.empty())) return false;
      stack.push_back(&input);
    }
  }
  return goes_on;
}

// The edge by which a view, or a view under it, shows the base.
Edge& edge_to_base(Node& view) {
  Node* at = &view;
  while (at->inputs[0].node->is_view) at = at->inputs[0].node.get();
  return at->inputs[0];
}

}  // namespace

Readers readers_of(const Context& context, const std::unordered_set<const Node*>& targets) {
  Readers readers;
  Search search(targets);
  for (const auto& weak : context.waiting) {
    NodePtr node = weak.lock();
    if (!node || node->has_value || !is_held(*node)) continue;
    if (node->is_view) {
      const Node& base = node->base();
      if (base.has_value) {
        // A view that shows what an earlier write left is stale already and stays stale.
        if (targets.count(&base) != 0 && edge_to_base(*node).version == base.version)
          readers.views.push_back(std::move(node));
        continue;
      }
    } else if (node->op && node->op->traits().in_place(0) >= 0) {
      continue;
    }
    if (search.reads(*node)) readers.waiting.push_back(std::move(node));
  }
  return readers;
}

std::vector<NodePtr> detach_views(std::span<const NodePtr> views) {
  std::vector<NodePtr> copies;
  for (const NodePtr& view : views) {
    Edge& edge = edge_to_base(*view);
    if (edge.node->is_snapshot) continue;  // handled through another view
    auto copy = std::find_if(copies.begin(), copies.end(),
                             [&](const NodePtr& one) { return one->inputs[0].node == edge.node; });
    if (copy == copies.end()) copy = copies.insert(copies.end(), snapshot_of(edge.node));
    edge = Edge{*copy, 0};
  }
  return copies;
}

std::vector<NodePtr> carried_sums(const Context& context) {
  std::vector<NodePtr> sums;
  for (const auto& weak : context.small) {
    NodePtr node = weak.lock();
    // No other node reads it yet, as would a part of the expression being evaluated.
    const bool is_last = node && node.use_count() - 1 == node->handles.load(std::memory_order_relaxed);
    if (is_last && !node->has_value && is_held(*node) && is_pointwise(*node) && is_carried_on(*node))
      sums.push_back(std::move(node));
  }
  return sums;
}

}  // namespace samebytes::detail
