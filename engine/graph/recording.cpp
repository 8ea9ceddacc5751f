#include "graph/recording.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "graph/autocast.h"
#include "graph/context.h"
#include "graph/op.h"

namespace samebytes::detail {
namespace {

bool has_view(std::span<const Array> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Array& input) { return input.node()->is_view; });
}

// Whether a node may run once more: it writes nothing but its own results.
bool may_repeat(const Node& node) {
  if (node.output >= 0) return true;
  const OpTraits& traits = node.op->traits();
  if (traits.updates_cell || node.state_written || node.is_snapshot || node.cell) return false;
  for (int i = 0; i < std::ssize(node.inputs); ++i)
    if (traits.is_state(i)) return false;
  for (int k = 0; k < std::max<int>(1, static_cast<int>(node.results.size())); ++k)
    if (traits.in_place(k) >= 0) return false;
  return true;
}

std::unique_ptr<Node> form_of(const Node& node) {
  auto form = std::make_unique<Node>();
  form->context = node.context;
  form->op = node.op;
  form->shape = node.shape;
  form->dtype = node.dtype;
  form->layer = node.layer;
  form->written_at = node.written_at;
  form->device = node.device;
  form->scalars = node.scalars;
  form->tracks_gradient = node.tracks_gradient;
  form->output = node.output;
  form->results = node.results;
  form->is_view = node.is_view;
  form->offset = node.offset;
  form->strides = node.strides;
  return form;
}

}  // namespace

Surroundings Surroundings::now() {
  return {.device = current_device(),
          .is_plain = !grad_enabled && !keeps_statistics && batch_norm_function == nullptr && !open_segment &&
                      !is_in_reverse_pass && !casts_here()};
}

Moment Moment::now() { return {.next_node = next_node_id(), .host_reads = samebytes::detail::host_reads()}; }

std::optional<Recording> Recording::of(const Moment& begin, std::span<const Array> inputs,
                                       std::span<const Array> results) {
  if (results.empty() || begin.host_reads != detail::host_reads()) return {};
  const std::lock_guard lock(results[0].node()->context->mutex);
  if (has_view(inputs)) return {};
  std::map<const Node*, int> places;
  Recording recording;
  recording.inputs_ = inputs.size();
  for (const Array& input : inputs) {
    if (!places.emplace(input.node().get(), ~static_cast<int>(recording.leaves_.size())).second) return {};
    recording.leaves_.push_back(nullptr);
  }
  std::vector<NodePtr> waiting, found;
  for (const Array& result : results) waiting.push_back(result.node());
  while (!waiting.empty()) {
    const NodePtr node = std::move(waiting.back());
    waiting.pop_back();
    if (places.contains(node.get())) continue;
    const bool is_leaf = node->has_value || node->cell || (!node->op && node->output < 0);
    if (is_leaf) {
      if (node->was_made && node->id >= begin.next_node) return {};
      places[node.get()] = ~static_cast<int>(recording.leaves_.size());
      recording.leaves_.push_back(node);
      continue;
    }
    if (!may_repeat(*node)) return {};
    places[node.get()] = 0;
    found.push_back(node);
    for (const Edge& edge : node->inputs) waiting.push_back(edge.node);
  }
  std::sort(found.begin(), found.end(), comes_before);
  for (int i = 0; i < std::ssize(found); ++i) places[found[static_cast<std::size_t>(i)].get()] = i;
  for (const NodePtr& node : found) {
    Step step{form_of(*node), {}};
    for (const Edge& edge : node->inputs) step.inputs.push_back(places.at(edge.node.get()));
    recording.steps_.push_back(std::move(step));
  }
  for (const Array& result : results) recording.results_.push_back(places.at(result.node().get()));
  return recording;
}

std::optional<std::vector<Array>> Recording::build(std::span<const Array> inputs) const {
  const ContextPtr& context = steps_.empty() ? inputs[0].node()->context : steps_[0].form->context;
  const std::lock_guard lock(context->mutex);  // no evaluation may turn an input into a view meanwhile
  if (has_view(inputs)) return {};
  context->check_alive("a recorded graph");
  std::vector<NodePtr> built;
  built.reserve(steps_.size());
  const auto node_at = [&](int place) -> const NodePtr& {
    if (place >= 0) return built[static_cast<std::size_t>(place)];
    const int leaf = ~place;
    const auto at = static_cast<std::size_t>(leaf);
    return at < inputs_ ? inputs[at].node() : leaves_[at];
  };
  for (const Step& step : steps_) {
    std::vector<Edge> edges;
    edges.reserve(step.inputs.size());
    for (const int place : step.inputs) {
      const NodePtr& node = node_at(place);
      edges.push_back({node, step.form->output >= 0 ? 0 : node->base().version.load()});
    }
    NodePtr node = repeat_node(*step.form, step.form->op, std::move(edges));
    node->is_repeated = false;
    node->layer = current_layer;
    node->written_at = current_line;
    built.push_back(std::move(node));
  }
  std::vector<Array> results;
  for (const int place : results_) results.emplace_back(node_at(place));
  return results;
}

}  // namespace samebytes::detail
