// Reverse mode: walks the graph of the loss backwards and adds the nodes of the gradient to the same graph.
// Over 400 lines because the tape, the pass over it and its errors are one algorithm.
#include "samebytes/autograd.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "graph/autocast.h"
#include "graph/op.h"
#include "graph/recompute.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace {

using detail::Node;

// The nodes between `wrt` and the loss, in creation order, and for each whether it depends on wrt.
struct Tape {
  std::vector<detail::NodePtr> nodes;
  std::unordered_map<const Node*, bool> depends;
};

// Whole numbers and truths have no gradient: what is made of them is constant in what they are made of.
bool is_differentiable(const Node& node) { return is_floating(node.dtype) || !node.results.empty(); }

bool carries_gradient(const Node& node, std::size_t input) {
  const detail::Op* const op = node.tape_op().get();
  const int i = static_cast<int>(input);
  return node.tracks_gradient && is_differentiable(*node.tape_inputs()[input].node) &&
         !(op && (op->traits().is_state(i) || op->traits().is_flat(i)));
}

// Whether the node passes a gradient (which may be zero) to some array behind this input.
bool is_connected(const Node& node, std::size_t input) {
  const detail::Op* const op = node.tape_op().get();
  return node.tracks_gradient && is_differentiable(node) &&
         !(op && (op->traits().cuts_gradient || op->traits().is_state(static_cast<int>(input))));
}

std::string name_of(const Node& node) {
  const detail::Op* const op = node.tape_op().get();
  return op ? std::string(op->name()) : std::string("an array");
}

// The nodes that the reverse pass reaches. Throws if something that it reads was overwritten since the loss was built.
std::unordered_map<const Node*, bool> reach_unchanged(const Tape& tape, const Node& loss, std::span<const Array> wrt) {
  std::unordered_map<const Node*, bool> reached{{&loss, true}};
  std::vector<std::uint64_t> asked;
  for (const Array& w : wrt) asked.push_back(w.node()->id);
  for (auto it = tape.nodes.rbegin(); it != tape.nodes.rend(); ++it) {
    const Node& node = **it;
    if (!reached[&node]) continue;
    if (node.origin && !node.origin->lost.empty()) {
      const auto& sources = node.origin->lost_sources;
      const bool matters = std::any_of(asked.begin(), asked.end(), [&](std::uint64_t id) {
        return id != node.id && std::binary_search(sources.begin(), sources.end(), id);
      });
      if (matters)
        throw ArgumentError("gradients: the loss reads an evaluated array, " +
                            std::string(samebytes::name_of(node.dtype)) + " " + node.shape.to_string() +
                            ", that was made of " + node.origin->lost +
                            "; take its gradient before that, or pass it through stop_gradient()");
    }
    const std::vector<detail::Edge>& inputs = node.tape_inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_connected(node, i)) continue;
      reached[inputs[i].node.get()] = true;
      if (!carries_gradient(node, i)) continue;
      const Node& base = inputs[i].node->base();
      if (base.version != inputs[i].version && tape.depends.at(&node))
        throw ArgumentError("gradients: " + name_of(node) + " read " + base.name() +
                            " as it was when the loss was built, but " + base.overwritten_by() +
                            " has overwritten it since; take the gradient before that");
    }
  }
  return reached;
}

Tape record(const detail::NodePtr& loss, std::span<const Array> wrt) {
  Tape tape;
  std::vector<detail::NodePtr> stack{loss};
  tape.depends.reserve(256);
  while (!stack.empty()) {
    const detail::NodePtr node = std::move(stack.back());
    stack.pop_back();
    if (!tape.depends.emplace(node.get(), false).second) continue;
    tape.nodes.push_back(node);
    for (const detail::Edge& edge : node->tape_inputs()) stack.push_back(edge.node);
  }
  std::sort(tape.nodes.begin(), tape.nodes.end(), detail::comes_before);
  for (const Array& w : wrt)
    if (const auto it = tape.depends.find(w.node().get()); it != tape.depends.end()) it->second = true;
  for (const detail::NodePtr& node : tape.nodes) {
    bool& depends = tape.depends[node.get()];
    const std::vector<detail::Edge>& inputs = node->tape_inputs();
    for (std::size_t i = 0; i < inputs.size() && !depends; ++i)
      depends = tape.depends[inputs[i].node.get()] && carries_gradient(*node, i);
  }
  return tape;
}

// Lets the op of `a` add b itself, if it can.
Array added_by_op(const Array& a, const Array& b) {
  const Node& node = *a.node();
  const bool is_open = node.op && !node.has_value && !node.is_view && node.output < 0 && a.dtype() == b.dtype();
  return is_open ? node.op->added_to(node, b) : Array();
}

void accumulate(std::unordered_map<const Node*, Array>& gradients, const Node* node, const Array& gradient) {
  Array& slot = gradients[node];
  if (!slot.defined()) {
    slot = gradient;
    return;
  }
  Array sum = added_by_op(gradient, slot);
  if (!sum.defined()) sum = added_by_op(slot, gradient);
  slot = sum.defined() ? sum : slot + gradient;
}

// Casts a gradient to the dtype of its node: an op of 16-bit values may read an f32 bias.
Array like(const Array& gradient, const Node& node) {
  return gradient.dtype() == node.dtype ? gradient : astype(gradient, node.dtype);
}

// Throws unless every requested array has a gradient.
void require_used(std::span<const Array> wrt, std::span<const Array> copies,
                  std::unordered_map<const Node*, bool>& reached) {
  constexpr std::size_t kShown = 5;
  std::string names;
  std::size_t unused = 0;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (reached[wrt[i].node().get()] || (copies[i].defined() && reached[copies[i].node().get()])) continue;
    if (++unused > kShown) continue;
    names += (names.empty() ? "" : ", ") + (is_cell(wrt[i]) ? cell_name(wrt[i]) : detail::describe(wrt[i]));
  }
  if (unused == 0) return;
  if (unused > kShown) names += ", ...";
  if (unused == wrt.size())
    throw ArgumentError("gradients: loss depends on none of the " + std::to_string(unused) +
                        (unused == 1 ? " array" : " arrays") + " to differentiate by (" + names +
                        "); is it built of other arrays, or cut by stop_gradient() or NoGrad?");
  throw ArgumentError("gradients: loss does not depend on " + std::to_string(unused) + " of the " +
                      std::to_string(wrt.size()) + " arrays to differentiate by (" + names +
                      "); leave them out, or set allow_unused, which gives them zeros");
}

// The derivative of the loss with respect to itself. Each engine makes it once, so that no step launches a kernel for
// it.
Array one_like(const Array& loss) {
  const detail::ContextPtr& context = loss.node()->context;
  context->check_alive("gradients");
  const std::lock_guard lock(context->mutex);
  detail::StoragePtr& storage = context->ones[loss.dtype()];
  if (!storage) {
    const EngineScope use(*context->engine);
    const DeviceScope on(0);  // the first loss may belong to a share in another context, but this array is kept
    const Array one = ones({}, loss.dtype());
    one.eval();
    storage = one.node()->storage;
  }
  return detail::make_leaf_on(context, loss.shape(), loss.dtype(), detail::Category::value, storage);
}

// The working copy of each array, or an empty handle.
std::vector<Array> working_copies(std::span<const Array> wrt) {
  std::vector<Array> copies;
  copies.reserve(wrt.size());
  for (const Array& w : wrt) copies.push_back(working_copy(w));
  return copies;
}

// The gradient of a parameter with a working copy, in the copy's dtype: the sum over the readers of both.
Array gradient_of_both(const std::unordered_map<const Node*, Array>& dy, const Array& parameter, const Array& copy) {
  Array whole;
  for (const Array& source : {copy, parameter})
    if (const auto it = dy.find(source.node().get()); it != dy.end()) {
      const Array own = like(it->second, *copy.node());
      whole = whole.defined() ? whole + own : own;
    }
  return whole.defined() ? whole : zeros(copy.shape(), copy.dtype());
}

// An unused result of the producer or of its stand-in, which has fewer results if it has no state.
Array unread_result(const detail::NodePtr& seen, const detail::NodePtr& producer, std::size_t k) {
  return detail::result_of(k < seen->results.size() ? seen : producer, static_cast<int>(k));
}

// Counts down the nodes that still add to the gradient of a parameter or of its working copy.
class Countdown {
 public:
  Countdown(const Tape& tape, std::span<const Array> wrt, std::span<const Array> copies) {
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      of_[wrt[i].node().get()].push_back(i);
      if (copies[i].defined()) of_[copies[i].node().get()].push_back(i);
    }
    open_.assign(wrt.size(), 0);
    for (const detail::NodePtr& node : tape.nodes) {
      if (!tape.depends.at(node.get())) continue;
      each_input(*node, [&](std::size_t i) { ++open_[i]; });
    }
  }
  // Call after `node`'s gradients were added: calls visit(i) for each parameter whose gradient is now complete.
  template <class Visit>
  void passed(const Node& node, Visit visit) {
    each_input(node, [&](std::size_t i) {
      if (--open_[i] == 0) visit(i);
    });
  }

 private:
  template <class Visit>
  void each_input(const Node& node, Visit visit) const {
    for (const detail::Edge& edge : node.tape_inputs())
      if (const auto found = of_.find(edge.node.get()); found != of_.end())
        for (const std::size_t i : found->second) visit(i);
  }
  std::unordered_map<const Node*, std::vector<std::size_t>> of_;
  std::vector<int> open_;
};

// Sets the thread's settings for building nodes of the reverse pass; the destructor restores them.
class ReverseScope {
 public:
  ReverseScope() {
    detail::grad_enabled = true;
    detail::is_in_reverse_pass = true;
  }
  ~ReverseScope() {
    detail::grad_enabled = grad_enabled_;
    detail::is_in_reverse_pass = is_in_reverse_pass_;
    detail::current_layer = layer_;
    detail::current_line = line_;
    detail::set_current_device(device_);
  }
  ReverseScope(const ReverseScope&) = delete;
  ReverseScope& operator=(const ReverseScope&) = delete;

 private:
  const bool grad_enabled_ = detail::grad_enabled, is_in_reverse_pass_ = detail::is_in_reverse_pass;
  const Label layer_ = detail::current_layer;
  const detail::SourceLine line_ = detail::current_line;
  const int device_ = detail::current_device();
};

void check_arguments(const Array& loss, std::span<const Array> wrt, bool has_upstream) {
  if (!loss.defined()) throw ArgumentError("gradients: loss is an empty array handle");
  if (loss.size() != 1 && !has_upstream)
    throw ArgumentError("gradients: loss must have one element, it is " + detail::describe(loss));
  if (!is_floating(loss.dtype()))
    throw ArgumentError("gradients: loss must be floating, it is " + detail::describe(loss));
  for (const Array& w : wrt) {
    if (!w.defined()) throw ArgumentError("gradients: an empty array handle is among the arrays to differentiate by");
    if (!is_floating(w.dtype()))
      throw ArgumentError("gradients: only floating arrays have gradients, one of them is " + detail::describe(w));
  }
}

// The arrays to differentiate by, and their working copies: what reads a copy depends on the parameter.
std::vector<Array> with_copies(std::span<const Array> wrt, std::span<const Array> copies) {
  std::vector<Array> sources(wrt.begin(), wrt.end());
  for (const Array& copy : copies)
    if (copy.defined()) sources.push_back(copy);
  return sources;
}

// Walks the tape from the loss to the arrays to differentiate by, and adds up the gradients that reach each node.
class ReversePass {
 public:
  // Throws ArgumentError if the loss depends on none or not all of `wrt`, unless options allow it.
  ReversePass(const Array& loss, std::span<const Array> wrt, const GradientOptions& options)
      : wrt_(wrt),
        options_(options),
        copies_(working_copies(wrt)),
        sources_(with_copies(wrt, copies_)),
        tape_(record(loss.node(), sources_)),
        recomputation_(tape_.nodes) {
    auto reached = reach_unchanged(tape_, *loss.node(), sources_);
    // Ops without elements depend on nothing: a batch of 0 samples has zero gradients.
    const bool is_of_nothing = std::any_of(tape_.nodes.begin(), tape_.nodes.end(),
                                           [](const detail::NodePtr& node) { return node->shape.size() == 0; });
    if (!options.allow_unused && !is_of_nothing) require_used(wrt, copies_, reached);
    for (const detail::NodePtr& node : tape_.nodes)  // each result passes its gradient to its producer
      if (is_result(*node)) put(results_, *node, Array(node));
  }

  // `upstream`: the derivative of the loss by itself, or an empty handle for one.
  std::vector<Array> run(const Array& loss, const Array& upstream, bool is_asked) {
    const ReverseScope scope;
    if (upstream.defined()) {
      dy_[loss.node().get()] = upstream;
    } else {
      dy_[loss.node().get()] = is_asked ? ones(loss.shape(), loss.dtype()) : one_like(loss);
      one_ = dy_[loss.node().get()].node()->storage;
    }
    std::vector<Array> result(wrt_.size());
    const auto finish = [&](std::size_t i) {
      result[i] = gradient_of(i);
      if (options_.on_final) options_.on_final(i, result[i]);
    };
    std::optional<Countdown> countdown;
    if (options_.on_final) countdown.emplace(tape_, wrt_, copies_);
    for (auto it = tape_.nodes.rbegin(); it != tape_.nodes.rend(); ++it) {
      if (!tape_.depends.at(it->get())) continue;
      add_gradients_of(*it);
      if (countdown) countdown->passed(**it, finish);
    }
    for (std::size_t i = 0; i < wrt_.size(); ++i)  // includes arrays that the loss does not depend on
      if (!result[i].defined()) finish(i);
    return result;
  }

 private:
  using ResultLists = std::unordered_map<const Node*, std::vector<Array>>;

  // One of several results of an op that the tape still knows.
  static bool is_result(const Node& node) { return node.output >= 0 && !node.tape_inputs().empty(); }
  bool is_wanted(const detail::NodePtr& node) const {
    return std::any_of(wrt_.begin(), wrt_.end(), [&](const Array& w) { return w.node() == node; });
  }

  // Stores a value in the list of the producer of several results to which `node` belongs.
  static void put(ResultLists& lists, const Node& node, const Array& value) {
    auto& list = lists[node.tape_inputs()[0].node.get()];
    list.resize(std::max<std::size_t>(list.size(), static_cast<std::size_t>(node.output) + 1));
    list[static_cast<std::size_t>(node.output)] = value;
  }

  // The upstream gradients of a node's results, and these results as its op's gradient sees them; false if there are
  // none.
  bool take_upstream(const detail::NodePtr& node, std::vector<Array>& upstream, std::vector<Array>& outputs) {
    if (const auto many = several_.find(node.get()); many != several_.end()) {
      upstream = std::move(many->second);
      outputs = results_[node.get()];
      outputs.resize(node->results.size());
      upstream.resize(outputs.size());
      for (std::size_t k = 0; k < outputs.size(); ++k)
        outputs[k] = outputs[k].defined() ? Array(recomputation_.seen_from(*node, outputs[k].node()))
                                          : unread_result(recomputation_.seen_from(*node, node), node, k);
      return true;
    }
    const auto one = dy_.find(node.get());
    if (one == dy_.end()) return false;
    upstream.push_back(one->second);
    outputs.emplace_back(recomputation_.seen_from(*node, node));
    if (!is_wanted(node)) dy_.erase(one);
    return true;
  }

  // Adds the gradients that a node's op computes to those of its inputs. A node of several results waits until the
  // gradients of all of them are complete.
  void add_gradients_of(const detail::NodePtr& node) {
    if (is_result(*node)) {
      const auto found = dy_.find(node.get());
      if (found == dy_.end()) return;
      put(several_, *node, found->second);
      if (!is_wanted(node)) dy_.erase(found);
      return;
    }
    const detail::Op* const op = node->tape_op().get();
    const std::vector<detail::Edge>& inputs = node->tape_inputs();
    std::vector<Array> upstream, outputs;
    if (!op || !take_upstream(node, upstream, outputs)) return;
    std::vector<Array> src;
    src.reserve(inputs.size());
    std::unique_ptr<bool[]> wanted(new bool[inputs.size()]);
    bool any = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      src.emplace_back(recomputation_.seen_from(*node, inputs[i].node));
      wanted[i] = tape_.depends.at(inputs[i].node.get()) && carries_gradient(*node, i);
      any = any || wanted[i];
    }
    if (!any) return;
    // Backward work belongs to the layer, and to the user's line, whose gradient it is.
    detail::current_layer = node->layer;
    detail::current_line = node->written_at;
    detail::set_current_device(node->device);
    const std::vector<Array> dx = op->gradient(
        {upstream, src, outputs, std::span<const bool>(wanted.get(), inputs.size()), node->tape_scalars()});
    for (std::size_t i = 0; i < src.size(); ++i) {
      if (!wanted[i]) continue;
      if (i < dx.size() && dx[i].defined())
        accumulate(dy_, inputs[i].node.get(), like(dx[i], *inputs[i].node));
      else if (is_floating(src[i].dtype()))
        throw ArgumentError(std::string(op->name()) + ": has no gradient for input " + std::to_string(i) + ", " +
                            detail::describe(src[i]));
    }
  }

  Array gradient_of(std::size_t i) const {
    const Array& w = wrt_[i];
    if (copies_[i].defined()) return gradient_of_both(dy_, w, copies_[i]);
    const auto it = dy_.find(w.node().get());
    if (it == dy_.end()) return zeros(w.shape(), w.dtype());
    if (one_ && it->second.node()->base().storage == one_)  // the caller may write to the gradient
      return w.size() == 1 ? ones(w.shape(), w.dtype()) : broadcast_to(ones({}, w.dtype()), w.shape());
    return it->second;
  }

  const std::span<const Array> wrt_;
  const GradientOptions& options_;
  const std::vector<Array> copies_, sources_;
  const Tape tape_;
  detail::Recomputation recomputation_;
  std::unordered_map<const Node*, Array> dy_;
  ResultLists several_, results_;  // complete gradients, by result; the results themselves
  detail::StoragePtr one_;         // the derivative of the loss with respect to itself
};

}  // namespace

namespace {

std::vector<Array> reversed(const Array& loss, std::span<const Array> wrt, const Array& upstream,
                            const GradientOptions& options) {
  check_arguments(loss, wrt, upstream.defined());
  const detail::NodePtr& root = loss.node();
  const bool is_asked = std::any_of(wrt.begin(), wrt.end(), [&](const Array& w) { return w.node() == root; });
  if (!root->tracks_gradient && !is_asked && !wrt.empty())
    throw ArgumentError(
        "gradients: loss was built under NoGrad, so nothing flows through it; build it outside of NoGrad");
  root->context->check_alive("gradients");
  const std::lock_guard lock(root->context->mutex);  // no evaluation may take the graph apart meanwhile
  const detail::NoCasts plainly;
  return ReversePass(loss, wrt, options).run(loss, upstream, is_asked);
}

}  // namespace

const std::vector<Array> gradients(const Array& loss, std::span<const Array> wrt, const GradientOptions& options) {
  return reversed(loss, wrt, Array(), options);
}
const std::vector<Array> gradients(const Array& y, std::span<const Array> wrt, const Array& upstream,
                                   const GradientOptions& options) {
  if (!y.defined() || !upstream.defined() || upstream.shape() != y.shape() || !is_floating(upstream.dtype()))
    throw ArgumentError("gradients: upstream must be floating and have the shape of y, y is " + detail::describe(y) +
                        ", upstream is " + detail::describe(upstream));
  return reversed(y, wrt, upstream.dtype() == y.dtype() ? upstream : astype(upstream, y.dtype()), options);
}

std::pair<Array, std::vector<Array>> value_and_grad(const std::function<Array(std::span<const Array>)>& f,
                                                    std::span<const Array> x) {
  const Array loss = f(x);
  return {loss, gradients(loss, x)};
}

}  // namespace samebytes
