#include "placement/by_cost.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>

#include "graph/op.h"

namespace samebytes::detail {
namespace {

constexpr double kWorthMoving = 0.9;  // of the seconds in the first context: less is noise of what was measured

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

std::size_t bytes_of_node(const Node& node) {
  return static_cast<std::size_t>(node.shape.size()) * bytes_of(node.dtype);
}

// A value that may be made anywhere: it has inputs, one result, and overwrites nothing.
bool is_free(const Node& node) {
  return !node.has_value && !node.is_view && node.output < 0 && node.op && node.results.empty() &&
         !node.inputs.empty() && node.shape.size() > 0 && node.op->traits().in_place(0) < 0 && !node.op->traits().pack;
}

// By place: the bytes that must come back where a node is left in another context. A chain of free nodes may be left
// there as a whole, so what counts is its narrowest place.
std::vector<std::size_t> exit_bytes(const GraphList& list) {
  std::vector<int> readers(list.nodes.size()), reader(list.nodes.size(), -1);
  for (const NodePtr& node : list.nodes) {
    if (node->has_value || node->is_view) continue;
    for (const Edge& edge : node->inputs) {
      const auto base = static_cast<std::size_t>(edge.node->base().place);
      ++readers[base];
      reader[base] = node->place;
    }
  }
  std::vector<std::size_t> bytes(list.nodes.size());
  for (std::size_t i = list.nodes.size(); i-- > 0;) {
    bytes[i] = bytes_of_node(*list.nodes[i]);
    if (list.wanted[i] || readers[i] != 1) continue;
    const Node& next = *list.nodes[static_cast<std::size_t>(reader[i])];
    if (is_free(next) && next.device == 0) bytes[i] = std::min(bytes[i], bytes[static_cast<std::size_t>(next.place)]);
  }
  return bytes;
}

}  // namespace

PlacementByCost::PlacementByCost(GraphList& list, Context& context, const Crossings& crossings, const Moves& moves) {
  Runtime& runtime = *context.runtime;
  const auto space_of = [&](const Node& node) {
    const Node& base = node.base();
    const Space& space = base.has_value && base.storage ? base.storage->space() : runtime.device(base.device).space();
    return space.index();
  };
  const std::vector<std::size_t> exits = exit_bytes(list);
  int stayed = 0;
  double saved = 0;
  for (const NodePtr& node : list.nodes) {
    if (!is_free(*node) || node->device != 0 || moves.is_moved(node->place)) continue;
    std::set<const Node*> inputs;
    std::set<int> spaces{0};
    std::size_t passed = bytes_of_node(*node);
    for (const Edge& edge : node->inputs) {
      if (!inputs.insert(&*edge.node).second) continue;
      spaces.insert(space_of(*edge.node));
      passed += bytes_of_node(*edge.node);
    }
    if (spaces.size() == 1) continue;
    const auto cost_in = [&](int space) {
      double seconds = crossings.pass_seconds(space, passed);
      for (const Node* input : inputs) seconds += crossings.seconds(space_of(*input), space, bytes_of_node(*input));
      return seconds + crossings.seconds(space, 0, exits[static_cast<std::size_t>(node->place)]);
    };
    const double here = cost_in(0);
    int best = 0;
    double least = here;
    for (const int space : spaces)
      if (const double seconds = cost_in(space); seconds < std::min(least, kWorthMoving * here)) {
        best = space;
        least = seconds;
      }
    if (best == 0) {
      ++stayed;
      double there = std::numeric_limits<double>::infinity();
      for (const int space : spaces)
        if (space != 0) there = std::min(there, cost_in(space));
      saved += there - here;
      continue;
    }
    before_.push_back({node.get(), node->device});
    node->device = runtime.space(best).first_device().index();
    reasons_.push_back(std::string(node->op->name()) + " " + node->shape.to_string() + " is left in context " +
                       std::to_string(best) + ", where its inputs are: " + microseconds(least) + " there, " +
                       microseconds(here) + " with its inputs brought to context 0");
  }
  for (const NodePtr& node : list.nodes)  // a view is where its base is
    if (node->is_view && !node->has_value && node->device != node->base().device && !before_.empty() &&
        !moves.is_moved(node->place)) {
      before_.push_back({node.get(), node->device});
      node->device = node->base().device;
    }
  if (stayed > 0)
    reasons_.push_back(std::to_string(stayed) + (stayed == 1 ? " node stays" : " nodes stay") +
                       " in context 0, though an input comes from another: elsewhere " + (stayed == 1 ? "it" : "they") +
                       " would take " + microseconds(saved) + " more");
}

PlacementByCost::~PlacementByCost() {
  for (const Before& before : before_) before.node->device = before.device;
}

}  // namespace samebytes::detail
