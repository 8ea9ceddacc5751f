// The nodes that one run touches, in running order, with the key of their plan.
#pragma once

#include <vector>

#include "core/hash.h"
#include "graph/node.h"

namespace samebytes::detail {

struct GraphList {
  std::vector<NodePtr> nodes;  // includes leaves; a node's `place` is its index here
  std::vector<char> wanted;    // by place: gets its own storage (includes the bases of wanted views)
  std::vector<char> is_root;
  Key128 key;
};

}  // namespace samebytes::detail
