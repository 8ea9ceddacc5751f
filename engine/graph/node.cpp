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
  take(inputs);
  while (!chain.empty()) {
    const NodePtr node = std::move(chain.back());
    chain.pop_back();
    take(node->inputs);
  }
}

}  // namespace samebytes::detail
