// Recomputation of what the reverse pass reads from checkpointed segments. When it reaches a segment, it builds the
// segment's nodes again, with the same ops, scalars and outside inputs, so that they run just before their gradients
// and the first ones need not be kept.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/node.h"

namespace samebytes::detail {

class Recomputation {
 public:
  // `tape`: all nodes that the loss (the last one) depends on, in ascending order.
  explicit Recomputation(std::span<const NodePtr> tape);
  // What the gradient of `reader` reads instead of `node`, which is `reader` itself or one of its inputs or results.
  NodePtr seen_from(const Node& reader, const NodePtr& node);

 private:
  struct Part {
    std::vector<NodePtr> nodes;            // includes those of nested segments
    std::unordered_set<const Node*> kept;  // read from outside
    std::unordered_map<const Node*, NodePtr> again;
    bool is_built = false;
  };
  Part* part_of(const Segment* segment);
  void keep(const NodePtr& node, const Segment* segment);
  void keep_small_results(Part& part);
  NodePtr seen_from(const Segment* segment, const NodePtr& node);
  void build(const Segment* segment, Part& part);
  NodePtr again(const Segment* segment, const NodePtr& node);

  std::unordered_map<const Segment*, Part> parts_;
};

}  // namespace samebytes::detail
