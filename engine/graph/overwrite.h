// What happens when bytes are overwritten: every leaf that shows some of them gets a new version, and nodes made from
// the old values can no longer be differentiated.
#pragma once

#include <vector>

#include "graph/context.h"
#include "graph/node.h"

namespace samebytes::detail {

// The leaves that share bytes with this one: itself, the flat cell that contains it, the cells that it contains.
std::vector<NodePtr> overlapping(const NodePtr& leaf);

// Call before the host or a user's kernel writes to what `leaf` holds: keeps what waits for the old values, then marks
// the leaf as overwritten. `file` and `line` say where. Requires: the context's lock.
void before_foreign_write(const NodePtr& leaf, const char* file, int line);

// Keeps what `node` was made from as its origin, or drops it if no gradient can be asked for. Requires: the lock.
void keep_origin(const NodePtr& node);

// Checks every node with an origin: marks the origin as lost if an ancestor was overwritten since, and drops it if no
// gradient can be taken by anything behind it. Requires: the lock.
void sweep_origins(Context& context);

// The leaf that a node's views show: the node itself unless it is a view.
NodePtr base_of(const NodePtr& node);

}  // namespace samebytes::detail
