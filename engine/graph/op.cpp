#include "graph/op.h"

#include <algorithm>

#include "graph/recording.h"

namespace samebytes::detail {
namespace {

std::atomic<std::uint64_t> next_id{1};

NodePtr new_node(const ContextPtr& context, const Shape& shape, Dtype dtype) {
  shape.size();  // throws for shapes that no array can have, however computed
  auto node = std::make_shared<Node>();
  node->context = context;
  node->shape = shape;
  node->dtype = dtype;
  node->layer = current_layer;
  node->written_at = current_line;
  node->is_gradient = is_in_reverse_pass;
  node->segment = open_segment;
  node->id = next_id.fetch_add(1, std::memory_order_relaxed);
  return node;
}

constexpr std::int64_t kSmallSum = 64;      // elements of a sum carried along by a loop
constexpr std::size_t kWaitingMost = 4096;  // nodes built between two evaluations before the list is swept

bool is_small(const Node& node) {
  return !node.is_view && node.shape.size() <= kSmallSum && !node.inputs.empty() &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [](const Edge& edge) { return edge.node->shape.size() <= kSmallSum; });
}

// The engine remembers nodes that have not run, so that it can run them before their inputs are overwritten.
void note_waiting(const NodePtr& node) {
  Context& context = *node->context;
  const std::lock_guard lock(context.mutex);
  if (context.waiting.size() == context.waiting.capacity() && context.waiting.size() >= kWaitingMost)
    context.forget_finished();
  context.waiting.push_back(node);
  if (is_small(*node)) context.small.push_back(node);
}

// Not among the readers of its inputs yet: other threads look at those, so all that a node is comes before connect().
NodePtr new_op_node(const OpPtr& op, const Shape& shape, Dtype dtype, std::span<const Array> inputs,
                    std::vector<Scalar> scalars) {
  const std::string name(op->name());
  ContextPtr context;
  for (const Array& input : inputs) {
    if (!input.defined()) throw ArgumentError(name + ": an empty array handle was passed");
    if (!context) context = input.node()->context;
    if (input.node()->context != context) throw ArgumentError(name + ": the arrays belong to two engines");
  }
  if (!context) context = current_context();
  context->check_alive(name.c_str());
  NodePtr node = new_node(context, shape, dtype);
  node->op = op;
  node->device = current_device();
  node->scalars = std::move(scalars);
  node->tracks_gradient = grad_enabled;
  return node;
}

void connect(const NodePtr& node, std::span<const Array> inputs) {
  node->inputs.reserve(inputs.size());
  const std::lock_guard lock(node->context->mutex);  // no evaluation may turn an input into a view meanwhile
  for (const Array& input : inputs) node->inputs.push_back({input.node(), input.node()->base().version.load()});
  note_waiting(node);
}

}  // namespace

std::uint64_t next_node_id() { return next_id.load(std::memory_order_relaxed); }

Cost Op::cost(std::span<const Shape> src, std::span<const Shape> dst) const {
  Cost cost;
  for (const Shape& s : src) cost.bytes += 4.0 * static_cast<double>(s.size());
  for (const Shape& s : dst) cost.bytes += 4.0 * static_cast<double>(s.size());
  cost.flops = dst.empty() ? 0 : static_cast<double>(dst[0].size());
  return cost;
}

std::vector<Array> Op::gradient(const GradientRequest&) const {
  throw ArgumentError(std::string(name()) + ": has no gradient");
}

Array Op::added_to(const Node&, const Array&) const { return {}; }

Array Op::companion(const Node&) const { return {}; }

Array Op::settled(const Launch&, std::span<const bool>) const { return {}; }

std::uint64_t Op::fingerprint() const {
  std::uint64_t fingerprint = fingerprint_.load(std::memory_order_relaxed);
  if (fingerprint != 0) return fingerprint;
  Hasher hasher;
  hasher.add(std::string_view(typeid(*this).name()));
  hasher.add(name());
  hash(hasher);
  fingerprint = hasher.key().a ^ (hasher.key().b << 1);
  if (fingerprint == 0) fingerprint = 1;
  fingerprint_.store(fingerprint, std::memory_order_relaxed);  // concurrent threads store the same value
  return fingerprint;
}

Array make_array(const OpPtr& op, const Shape& shape, Dtype dtype, std::span<const Array> inputs,
                 std::vector<Scalar> scalars) {
  NodePtr node = new_op_node(op, shape, dtype, inputs, std::move(scalars));
  connect(node, inputs);
  return Array(std::move(node));
}

std::vector<Array> make_arrays(const OpPtr& op, std::span<const Result> results, std::span<const Array> inputs,
                               std::vector<Scalar> scalars) {
  const NodePtr producer = new_op_node(op, results[0].shape, results[0].dtype, inputs, std::move(scalars));
  for (const Result& result : results) producer->results.emplace_back(result.shape, result.dtype);
  connect(producer, inputs);
  std::vector<Array> arrays;
  arrays.reserve(results.size());
  for (std::size_t k = 0; k < results.size(); ++k) arrays.push_back(result_of(producer, static_cast<int>(k)));
  return arrays;
}

Array result_of(const NodePtr& producer, int k) {
  const auto& [shape, dtype] = producer->results[static_cast<std::size_t>(k)];
  NodePtr node = new_node(producer->context, shape, dtype);
  node->output = k;
  node->device = producer->device;
  node->tracks_gradient = producer->tracks_gradient;
  node->inputs.push_back({producer, 0});
  note_waiting(node);
  return Array(std::move(node));
}

NodePtr repeat_node(const Node& node, const OpPtr& op, std::vector<Edge> inputs) {
  NodePtr again = new_node(node.context, node.shape, node.dtype);
  again->op = op;
  again->layer = node.layer;
  again->written_at = node.written_at;
  again->device = node.device;
  again->scalars = node.scalars;
  again->tracks_gradient = node.tracks_gradient;
  again->is_repeated = true;
  again->output = node.output;
  again->is_view = node.is_view;
  again->offset = node.offset;
  again->strides = node.strides;
  again->inputs = std::move(inputs);
  for (std::size_t k = 0; k < node.results.size(); ++k)
    if (op == node.op || node.op->traits().in_place(static_cast<int>(k)) < 0) again->results.push_back(node.results[k]);
  note_waiting(again);
  return again;
}

Array make_view(const OpPtr& op, const Array& a, const Shape& shape, std::int64_t offset, const Strides& strides) {
  NodePtr node = new_op_node(op, shape, a.dtype(), std::span<const Array>(&a, 1), {});
  node->is_view = true;
  node->device = a.node()->device;
  node->offset = offset;
  node->strides = strides;
  connect(node, std::span<const Array>(&a, 1));
  return Array(std::move(node));
}

Array make_leaf(const ContextPtr& context, const Shape& shape, Dtype dtype, Category category) {
  const int device = current_device() < context->runtime->device_count() ? current_device() : 0;
  return make_leaf_on(context, shape, dtype, category,
                      context->runtime->allocate(static_cast<std::size_t>(shape.size()) * bytes_of(dtype), category,
                                                 "array", "", device));
}

Array make_leaf_on(const ContextPtr& context, const Shape& shape, Dtype dtype, Category category, StoragePtr storage) {
  NodePtr node = new_node(context, shape, dtype);
  node->device = current_device();
  node->category = category;
  node->storage = std::move(storage);
  node->has_value = true;
  // A leaf belongs to a device that reads it without a copy.
  if (node->storage && context->runtime->space_count() > 1 &&
      &context->runtime->device(node->device).space() != &node->storage->space())
    node->device = node->storage->space().first_device().index();
  return Array(std::move(node));
}

std::string describe(const Array& a) {
  return a.defined() ? std::string(name_of(a.dtype())) + " " + a.shape().to_string() : std::string("an empty handle");
}

void require(bool ok, const char* op, const char* need, const Array& came, const char* name) {
  if (!ok) throw ArgumentError(std::string(op) + ": " + need + ", " + name + " is " + describe(came));
}

}  // namespace samebytes::detail
