// The peak memory of a step, from the passes that decide what is stored: epilogues, fusion, recomputation. Lays out
// nothing.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "graph/graph_list.h"
#include "graph/launch.h"
#include "plan/collect.h"
#include "plan/loss_gradient.h"
#include "plan/release.h"
#include "plan/rematerialise.h"
#include "samebytes/error.h"
#include "samebytes/estimate.h"

namespace samebytes {
namespace detail {
namespace {

// The bytes of a node's own temporaries: packed operands, partial sums.
std::size_t operands_of(const Node& n, Context& context) {
  if (n.has_value || n.is_view || n.output >= 0 || !n.op || n.op->traits().pack || n.op->traits().is_pointwise())
    return 0;
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  if (n.results.empty()) {
    shapes.push_back(n.shape);
    dtypes.push_back(n.dtype);
  }
  for (const auto& [shape, dtype] : n.results) {
    shapes.push_back(shape);
    dtypes.push_back(dtype);
  }
  for (const Shape& shape : shapes)
    if (shape.size() == 0) return 0;
  Launch run(n, context.runtime->device(n.device), shapes, dtypes);
  n.op->launch(run);
  std::size_t bytes = 0;
  for (const Launch::Temp& temp : run.temps()) bytes += temp.bytes;
  return bytes;
}

// The bytes of results that overwrite an operand: a pointwise result of the same size as an operand that dies there.
std::size_t taken_over(int place, const GraphList& list, const FuseResult& fusion,
                       const std::vector<StoredValue>& values) {
  const int group = fusion.group[static_cast<std::size_t>(place)];
  if (group < 0 || fusion.members[static_cast<std::size_t>(group)].back() != place) return 0;
  std::vector<int> operands;
  for (const int member : fusion.members[static_cast<std::size_t>(group)])
    for (const Edge& edge : list.nodes[static_cast<std::size_t>(member)]->inputs)
      if (!edge.node->is_view) operands.push_back(edge.node->place);
  std::size_t bytes = 0;
  std::vector<char> is_taken(values.size());
  for (const StoredValue& result : values) {
    if (result.first != place || result.last == place || fusion.group[static_cast<std::size_t>(result.place)] != group)
      continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const StoredValue& operand = values[i];
      const bool dies = operand.last == place && operand.first < place && !operand.is_parameters_gradient;
      if (is_taken[i] || !dies || operand.bytes != result.bytes ||
          std::find(operands.begin(), operands.end(), operand.place) == operands.end())
        continue;
      is_taken[i] = 1;
      bytes += result.bytes;
      break;
    }
  }
  return bytes;
}

}  // namespace
}  // namespace detail

LiveBytes live_at_peak(std::span<const Array> updates) {
  using namespace detail;
  if (updates.empty()) throw ArgumentError("live_at_peak: expected at least one update, got none");
  std::vector<NodePtr> roots;
  for (const Array& update : updates) {
    if (!update.defined()) throw ArgumentError("live_at_peak: an update is an empty handle");
    roots.push_back(update.node());
  }
  Context& context = *roots[0]->context;
  const std::lock_guard lock(context.mutex);
  constexpr std::uint64_t kStamps = std::uint64_t{1} << 63;  // a range that evaluations do not use
  static std::atomic<std::uint64_t> stamp{kStamps};
  std::vector<NodePtr> fresh;
  GraphList list = collect(roots, ++stamp, fresh);
  if (!fresh.empty()) {  // cells at their first use
    for (const NodePtr& cell : fresh) Array(cell).eval();
    fresh.clear();
    list = collect(roots, ++stamp, fresh);
  }
  FuseResult fusion = fuse(list, append_epilogues(list, true), true);
  pair_loss_gradients(list, fusion, true);
  const std::vector<StoredValue> values = stored_values(
      list, fusion, {.most_cost = context.options.recompute, .releases = release_gradients(list, fusion)});

  LiveBytes most;
  for (int place = 0; place < static_cast<int>(list.nodes.size()); ++place) {
    const Node& n = *list.nodes[static_cast<std::size_t>(place)];
    if (n.has_value || n.is_view) continue;
    LiveBytes now;
    for (const StoredValue& v : values) {
      if (v.first > place || v.last < place) continue;
      const Node& made = *list.nodes[static_cast<std::size_t>(v.place)];
      (v.is_parameters_gradient ? now.gradients : made.is_gradient ? now.passing : now.kept) += v.bytes;
    }
    now.passing -= std::min(now.passing, taken_over(place, list, fusion, values));
    now.operands = operands_of(n, context);
    if (now.of_a_batch() + now.gradients <= most.of_a_batch() + most.gradients) continue;
    now.op = n.op ? std::string(n.op->name()) : std::string();
    most = std::move(now);
  }
  return most;
}

}  // namespace samebytes
