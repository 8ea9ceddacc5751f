// Collect: the first pass of planning. It lists what an evaluation runs, in order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph_list.h"

namespace samebytes::detail {

// Collects what `roots` need, and what else must run or be copied before they overwrite it. If cells have no storage
// yet, returns them in `fresh_cells` and nothing else is valid: run their initial values first. Throws ArgumentError
// for a node that reads what was overwritten since the node was built, and for two updates of the same bytes. Requires:
// the context's lock.
GraphList collect(std::span<const NodePtr> roots, std::uint64_t stamp, std::vector<NodePtr>& fresh_cells);

}  // namespace samebytes::detail
