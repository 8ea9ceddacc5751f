#include "graph/node.h"

#include "graph/op.h"

namespace samebytes::detail {

Strides dense_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

bool Node::is_dense() const {
  if (!is_view) return true;
  const Strides dense = dense_strides(shape);
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] != 1 && strides[i] != dense[i]) return false;
  return true;
}

Node::~Node() {
  // Only its own edges: another node may be found again, through a weak pointer and by another thread, until its last
  // reference is gone. What they lead to is dropped by the outermost destructor, one after the other.
  static thread_local std::vector<NodePtr>* dropped = nullptr;
  std::vector<NodePtr> own;
  const bool is_outermost = dropped == nullptr;
  if (is_outermost) dropped = &own;
  const auto take = [](std::vector<Edge>& edges) {
    for (Edge& edge : edges)
      if (edge.node) dropped->push_back(std::move(edge.node));
    edges.clear();
  };
  take(inputs);
  if (origin) take(origin->inputs);
  if (!is_outermost) return;
  while (!own.empty()) {
    const NodePtr node = std::move(own.back());
    own.pop_back();
  }
  dropped = nullptr;
}

std::string Node::name() const {
  return cell ? cell->name : "the array " + std::string(name_of(dtype)) + " " + shape.to_string();
}

std::string Node::overwritten_by() const {
  if (changed_at > 0) return "evaluation " + std::to_string(changed_at);
  return changed_in ? "a write by the host at " + std::string(changed_in) + ":" + std::to_string(changed_in_line)
                    : std::string("a write by the host");
}

bool comes_before(const NodePtr& a, const NodePtr& b) {
  return a->id != b->id ? a->id < b->id : a->is_snapshot < b->is_snapshot;
}

}  // namespace samebytes::detail
