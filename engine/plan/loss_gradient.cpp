#include "plan/loss_gradient.h"

#include <algorithm>

#include "graph/op.h"

namespace samebytes::detail {
namespace {

// The node whose launch can make `gradient`, null if there is none.
const Node* loss_of(const Node& gradient) {
  for (const Edge& edge : gradient.inputs) {
    if (edge.node->output < 0 || edge.node->has_value) continue;
    const Node* const producer = edge.node->inputs[0].node.get();
    if (producer->op && producer->device == gradient.device && producer->op->makes_gradient(*producer, gradient))
      return producer;
  }
  return nullptr;
}

bool overwrites(const Node& node) {
  const int results = std::max<int>(1, static_cast<int>(node.results.size()));
  for (int k = 0; k < results; ++k)
    if (node.op->traits().in_place(k) >= 0) return true;
  return false;
}

bool reads_nothing_else(const Node& gradient, const Node& loss) {
  return std::all_of(gradient.inputs.begin() + 1, gradient.inputs.end(), [&](const Edge& edge) {
    const Node* const input = edge.node.get();
    if (input->output >= 0 && !input->has_value && input->inputs[0].node.get() == &loss) return true;
    return std::any_of(loss.inputs.begin(), loss.inputs.end(), [&](const Edge& e) { return e.node.get() == input; });
  });
}

}  // namespace

LossGradients pair_loss_gradients(const GraphList& list, FuseResult& fusion, bool enabled) {
  LossGradients result{std::vector<int>(list.nodes.size(), -1), std::vector<int>(list.nodes.size(), -1)};
  if (!enabled) return result;
  for (const NodePtr& node : list.nodes) {
    if (node->has_value || !node->op || node->is_view || node->inputs.empty() || node->shape.size() == 0 ||
        overwrites(*node))
      continue;
    const Node* const loss = loss_of(*node);
    if (!loss) continue;
    const Node& dy = *node->inputs[0].node;
    const Node& base = dy.base();
    const bool is_there = base.has_value || fusion.runs_at(list, base.place) < loss->place;
    int& gradient = result.gradient[static_cast<std::size_t>(loss->place)];
    if (gradient >= 0 || !is_there || !dy.is_dense() || !reads_nothing_else(*node, *loss)) continue;
    gradient = node->place;
    result.made_by[static_cast<std::size_t>(node->place)] = loss->place;
    fusion.moved_to[static_cast<std::size_t>(node->place)] = loss->place;
  }
  return result;
}

}  // namespace samebytes::detail
