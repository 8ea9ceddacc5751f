// check_nan: evaluates op by op and stops at the first value that is not finite.
#include <cmath>

#include "graph/op.h"
#include "plan/collect.h"
#include "plan/launch_info.h"
#include "plan/planner.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

// Whether the value has an element that is not finite.
bool has_nan(const Node& node) {
  if (!is_floating(node.dtype) || node.shape.size() == 0) return false;
  const std::size_t n = static_cast<std::size_t>(node.shape.size()), width = bytes_of(node.dtype);
  const std::size_t offset = static_cast<std::size_t>(node.offset) * width;
  std::uint64_t id = 0;
  const char* bytes =
      static_cast<const char*>(node.storage->acquire_host(false, offset, n * width, __FILE__, __LINE__, &id)) + offset;
  bool found = false;
  for (std::size_t i = 0; i < n && !found; ++i) {
    switch (node.dtype) {
      case Dtype::f64: found = !std::isfinite(reinterpret_cast<const double*>(bytes)[i]); break;
      case Dtype::f32: found = !std::isfinite(reinterpret_cast<const float*>(bytes)[i]); break;
      case Dtype::f16: found = (reinterpret_cast<const std::uint16_t*>(bytes)[i] & 0x7c00u) == 0x7c00u; break;
      case Dtype::bf16: found = (reinterpret_cast<const std::uint16_t*>(bytes)[i] & 0x7f80u) == 0x7f80u; break;
      default: break;
    }
  }
  node.storage->release_host(id);
  return found;
}

}  // namespace

void Planner::evaluate_checked(const GraphList& list) {
  for (const NodePtr& node : list.nodes) {
    if (node->has_value || node->is_view || !node->results.empty()) continue;
    std::string name = node->op ? std::string(node->op->name()) : std::string();
    if (node->output >= 0) name = std::string(node->inputs[0].node->op->name());
    // Runs all results of one node together, so that its state is written once.
    std::vector<NodePtr> together{node};
    if (node->output >= 0)
      for (const NodePtr& other : list.nodes)
        if (other != node && !other->has_value && other->output >= 0 && other->inputs[0].node == node->inputs[0].node)
          together.push_back(other);
    std::vector<NodePtr> fresh;
    GraphList single = collect(together, ++context_.stamp, fresh);
    bool replayed = false;
    while (!try_run(find_or_make(single, &replayed), single)) {
    }
    for (const NodePtr& done : together) {
      const Node& base = done->base();
      if (base.storage && has_nan(base))
        throw Error("check_nan: " + name + " produced the first NaN or infinity, its result is " +
                    std::string(name_of(done->dtype)) + " " + done->shape.to_string() + source_text(*done));
    }
  }
  context_.forget_finished();
}

}  // namespace samebytes::detail
