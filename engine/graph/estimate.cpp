#include "samebytes/estimate.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "graph/context.h"
#include "graph/node.h"
#include "runtime/allocator.h"
#include "samebytes/autograd.h"

namespace samebytes {
namespace {

std::size_t bytes_in(const detail::Node& node) {
  return static_cast<std::size_t>(node.shape.size()) * bytes_of(node.dtype);
}

}  // namespace

MemoryParts memory_at_peak(const Engine& engine, std::span<const Array> state) {
  const detail::HeldPeak peak = engine.context()->runtime->held_peak();
  const auto of = [&](detail::Category category) { return peak.by_category[static_cast<std::size_t>(category)]; };
  MemoryParts parts{.parameters = of(detail::Category::parameter),
                    .gradients = of(detail::Category::gradient),
                    .optimizer = of(detail::Category::optimizer),
                    .activations = of(detail::Category::arena),
                    .batches = of(detail::Category::slot),
                    .other = of(detail::Category::value) + of(detail::Category::library) + peak.cached};
  std::size_t listed = 0;
  for (const Array& array : state)
    if (const auto& storage = array.node()->base().storage;
        storage && storage->category() == detail::Category::parameter)
      listed += storage->bytes();
  listed = std::min(listed, parts.parameters);
  parts.parameters -= listed;
  parts.optimizer += listed;
  return parts;
}

MemoryParts plan_memory(EngineOptions options, const std::function<void()>& work) {
  options.dry_run = true;
  Engine engine(options);
  const EngineScope scope(engine);
  work();
  return memory_at_peak(engine);
}

std::size_t pool_bytes(std::size_t bytes) { return detail::size_class(bytes); }

MemoryParts closed_form(const StepSize& step) {
  constexpr std::size_t kOwnMemory = std::size_t{4}
                                     << 20;  // smaller flat gradients have their own (plan/pack_parts.cpp)
  const auto of_parameters = [&](double bytes) {
    return static_cast<std::size_t>(std::llround(static_cast<double>(step.parameters) * bytes));
  };
  const auto batch = static_cast<std::size_t>(step.batch);
  MemoryParts parts{.parameters = pool_bytes(of_parameters(step.weight_bytes)),
                    .activations = pool_bytes(batch * step.intermediate_bytes + step.gradients_then),
                    .other = step.frozen_bytes};
  if (of_parameters(step.gradient_bytes) < kOwnMemory) parts.gradients = pool_bytes(of_parameters(step.gradient_bytes));
  for (const double bytes : step.state_bytes) parts.optimizer += pool_bytes(of_parameters(bytes));
  for (const std::size_t bytes : step.sample_bytes)
    parts.batches += static_cast<std::size_t>(step.slots) * pool_bytes(batch * bytes);
  return parts;
}

std::size_t kept_for_backward(const Array& loss, std::span<const Array> parameters) {
  const std::vector<Array> found = gradients(loss, parameters);
  std::unordered_set<const detail::Node*> seen, kept;
  std::vector<const detail::Node*> stack;
  for (const Array& gradient : found)
    if (gradient.defined()) stack.push_back(gradient.node().get());
  while (!stack.empty()) {
    const detail::Node* const node = stack.back();
    stack.pop_back();
    if (node->has_value || !node->is_gradient || !seen.insert(node).second) continue;
    for (const detail::Edge& edge : node->inputs) {
      const detail::Node& base = edge.node->base();
      if (base.is_gradient || edge.node->is_gradient)
        stack.push_back(edge.node.get());
      else if (!base.has_value && !base.cell && &base != loss.node().get())
        kept.insert(&base);
    }
  }
  std::size_t bytes = 0;
  for (const detail::Node* const node : kept)
    if (node->results.empty()) bytes += bytes_in(*node);
  return bytes;
}

}  // namespace samebytes
