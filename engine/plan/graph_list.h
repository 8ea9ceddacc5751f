// The nodes that one run touches, in the order in which they run, with the key under which their plan is kept.
#pragma once

#include <span>
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

// Collects what `roots` need, and what else must run or be copied before they overwrite it. Cells without storage are
// returned in `fresh_cells` and nothing else is valid then: run their initial values first. Throws ArgumentError for a
// node that reads what was overwritten since the node was built, and for two updates of the same bytes. Requires: the
// context's lock.
GraphList collect(std::span<const NodePtr> roots, std::uint64_t stamp, std::vector<NodePtr>& fresh_cells);

}  // namespace samebytes::detail
