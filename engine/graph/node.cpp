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
  std::vector<NodePtr> chain;
  const auto take = [&chain](std::vector<Edge>& edges) {
    for (Edge& edge : edges)
      if (edge.node && edge.node.use_count() == 1) chain.push_back(std::move(edge.node));
    edges.clear();
  };
  const auto take_all = [&](Node& node) {
    take(node.inputs);
    if (node.origin) take(node.origin->inputs);
  };
  take_all(*this);
  while (!chain.empty()) {
    const NodePtr node = std::move(chain.back());
    chain.pop_back();
    take_all(*node);
  }
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
