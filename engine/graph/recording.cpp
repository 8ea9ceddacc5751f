#include "graph/recording.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "graph/autocast.h"
#include "graph/context.h"
#include "graph/launch.h"
#include "graph/op.h"

namespace samebytes::detail {
namespace {

bool has_view(std::span<const Array> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Array& input) { return input.node()->is_view; });
}

// Where in the leaves a place below 0 is.
std::size_t leaf_of(int place) {
  const int leaf = ~place;
  return static_cast<std::size_t>(leaf);
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

std::optional<std::vector<Array>> Recording::build(std::span<const Array> inputs) const { return build(inputs, {}); }

std::optional<std::vector<Array>> Recording::build(std::span<const Array> inputs, const Prepare& prepare) const {
  const ContextPtr& context = !steps_.empty() ? steps_[0].form->context : inputs[0].node()->context;
  const std::lock_guard lock(context->mutex);  // no evaluation may turn an input into a view meanwhile
  if (has_view(inputs)) return {};
  context->check_alive("a recorded graph");
  std::vector<NodePtr> built;
  std::vector<char> is_constant;  // of what was built; where there is somebody to prepare it
  built.reserve(steps_.size());
  const auto node_at = [&](int place) -> const NodePtr& {
    if (place >= 0) return built[static_cast<std::size_t>(place)];
    const std::size_t at = leaf_of(place);
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
    node->written_at = current_line;
    if (prepare) {
      const auto constant = std::make_unique<bool[]>(step.inputs.size());
      bool all = true;
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        const int place = step.inputs[i];
        constant[i] = place >= 0 ? is_constant[static_cast<std::size_t>(place)] != 0 : leaf_of(place) >= inputs_;
        all = all && constant[i];
      }
      is_constant.push_back(all ? 1 : 0);
      if (!all) node = prepare(node, {constant.get(), step.inputs.size()});
    }
    built.push_back(std::move(node));
  }
  std::vector<Array> results;
  for (const int place : results_) results.emplace_back(node_at(place));
  return results;
}

// Takes a recording apart. A place is that of a step, or ~ of one in the leaves, as in Recording.
class Splitter {
 public:
  explicit Splitter(const Recording& all) : all_(all), steps_(all.steps_.size()) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      for (const int place : all.steps_[i].inputs) {
        step.is_constant = step.is_constant && (place >= 0 ? at(place).is_constant : !is_input(place));
        step.has_leaf = step.has_leaf || (place >= 0 ? at(place).has_leaf : !is_input(place));
      }
    }
  }

  std::optional<SplitRecording> split() {
    std::vector<char> in_rest(steps_.size()), in_constants(steps_.size());
    reach(all_.results_, in_rest, true);
    std::vector<int> kept;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].is_kept) kept.push_back(static_cast<int>(i));
    if (kept.empty()) return {};
    reach(kept, in_constants, false);
    SplitRecording made;
    made.constants = part(in_constants, kept, {}, 0);
    made.rest = part(in_rest, all_.results_, kept, all_.inputs_);
    for (const int place : kept) {
      const Node& form = form_at(place);
      made.bytes += static_cast<std::size_t>(form.shape.size()) * bytes_of(form.dtype);
    }
    return made;
  }

 private:
  struct Step {
    bool is_constant = true, has_leaf = false, is_kept = false;
  };

  bool is_input(int place) const { return leaf_of(place) < all_.inputs_; }
  Step& at(int place) { return steps_[static_cast<std::size_t>(place)]; }
  const Node& form_at(int place) const { return *all_.steps_[static_cast<std::size_t>(place)].form; }

  // Marks what the results are made of. What is to be kept ends the way, if asked: constants that leaves have a part
  // in, but views, which cost nothing, and what has its results as other steps.
  void reach(const std::vector<int>& results, std::vector<char>& marks, bool keeps) {
    std::vector<int> waiting = results;
    while (!waiting.empty()) {
      const int place = waiting.back();
      waiting.pop_back();
      if (place < 0 || marks[static_cast<std::size_t>(place)] != 0) continue;
      const Node& form = form_at(place);
      if (keeps && at(place).is_constant && at(place).has_leaf && !form.is_view && form.results.empty() &&
          form.shape.size() > 0) {
        at(place).is_kept = true;
        continue;
      }
      marks[static_cast<std::size_t>(place)] = 1;
      for (const int input : all_.steps_[static_cast<std::size_t>(place)].inputs) waiting.push_back(input);
    }
  }

  // The marked steps, with `inputs` inputs and the kept ones behind them.
  Recording part(const std::vector<char>& marks, const std::vector<int>& results, const std::vector<int>& kept,
                 std::size_t inputs) const {
    Recording made;
    made.inputs_ = inputs + kept.size();
    made.leaves_.resize(made.inputs_);
    std::map<int, int> places;  // of all_ -> of made
    for (std::size_t i = 0; i < inputs; ++i) places[~static_cast<int>(i)] = ~static_cast<int>(i);
    for (std::size_t i = 0; i < kept.size(); ++i) places[kept[i]] = ~static_cast<int>(inputs + i);
    const auto place_of = [&](int place) {
      const auto [found, is_new] = places.emplace(place, ~static_cast<int>(made.leaves_.size()));
      if (is_new) made.leaves_.push_back(all_.leaves_[leaf_of(place)]);
      return found->second;
    };
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (marks[i] == 0) continue;
      Recording::Step step{form_of(*all_.steps_[i].form), {}};
      for (const int place : all_.steps_[i].inputs) step.inputs.push_back(place_of(place));
      places[static_cast<int>(i)] = static_cast<int>(made.steps_.size());
      made.steps_.push_back(std::move(step));
    }
    for (const int place : results) made.results_.push_back(place_of(place));
    return made;
  }

  const Recording& all_;
  std::vector<Step> steps_;
};

namespace {

// What the op of a node would rather be, with inputs that are constant.
NodePtr settled_node(const NodePtr& node, std::span<const bool> is_constant) {
  const bool has_constant = std::any_of(is_constant.begin(), is_constant.end(), [](bool is) { return is; });
  if (!has_constant || !node->op || node->is_view || !node->results.empty() || node->shape.size() == 0) return node;
  if (node->op->traits().is_pointwise()) return node;
  const Shape shapes[] = {node->shape};
  const Dtype dtypes[] = {node->dtype};
  const Launch run(*node, node->context->runtime->device(node->device), shapes, dtypes);
  const Label layer = std::exchange(current_layer, node->layer);
  const Array made = node->op->settled(run, is_constant);
  current_layer = layer;
  return made.defined() ? made.node() : node;
}

}  // namespace

std::optional<SplitRecording> Recording::split(std::span<const Array> inputs) const {
  if (steps_.empty()) return {};
  const std::lock_guard lock(steps_[0].form->context->mutex);
  const Moment begin = Moment::now();
  const auto results = build(inputs, settled_node);
  if (!results) return {};
  const auto all = of(begin, inputs, *results);
  if (!all) return {};
  return Splitter(*all).split();
}

std::vector<Key128> Recording::keys() const {
  std::vector<Key128> made;
  const auto add_input = [&](Hasher& hasher, int place) {
    if (place >= 0) {
      hasher.add(made[static_cast<std::size_t>(place)].a);
      hasher.add(made[static_cast<std::size_t>(place)].b);
    } else {
      const Node& leaf = *leaves_[leaf_of(place)];
      hasher.add(leaf.id);
      hasher.add(std::uint64_t{leaf.base().version.load()});
    }
  };
  for (const Step& step : steps_) {
    const Node& form = *step.form;
    Hasher hasher;
    hasher.add(form.op ? form.op->fingerprint() : 0);
    for (const int number : {form.output, form.device, static_cast<int>(form.dtype), form.shape.rank(),
                             form.is_view ? 1 : 0, static_cast<int>(step.inputs.size())})
      hasher.add(static_cast<std::uint64_t>(number));
    for (const std::int64_t size : form.shape) hasher.add(static_cast<std::uint64_t>(size));
    for (const Scalar& scalar : form.scalars) hasher.add(scalar.bits);
    if (form.is_view) {
      hasher.add(static_cast<std::uint64_t>(form.offset));
      for (int axis = 0; axis < form.shape.rank(); ++axis)
        hasher.add(static_cast<std::uint64_t>(form.strides[static_cast<std::size_t>(axis)]));
    }
    for (const int place : step.inputs) add_input(hasher, place);
    made.push_back(hasher.key());
  }
  std::vector<Key128> keys;
  for (const int place : results_) keys.push_back(made[static_cast<std::size_t>(place)]);
  return keys;
}

}  // namespace samebytes::detail
