// The nodes that one run touches, in the order in which they run, with the key under which their plan is kept.
#pragma once

#include <vector>

#include "core/hash.h"
#include "graph/node.h"

namespace samebytes::detail {

struct GraphList {
  std::vector<NodePtr> nodes;  // leaves included; a node's `place` is its index here
  std::vector<char> wanted;    // by place: gets storage of its own (bases of wanted views included)
  std::vector<char> is_root;
  Key128 key;
};

}  // namespace samebytes::detail
