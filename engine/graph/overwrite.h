// What it means that bytes are overwritten: every leaf that shows some of them has a new version, and what was made of
// the old one can be differentiated no more.
#pragma once

#include <vector>

#include "graph/context.h"
#include "graph/node.h"

namespace samebytes::detail {

// The leaves that share bytes with this one: itself, the flat cell that it is a part of, the cells that are parts of
// it.
std::vector<NodePtr> overlapping(const NodePtr& leaf);

// The host, or a kernel of the user's, is about to write to what `leaf` holds: first what waits for it is kept, then it
// counts as overwritten. `file` and `line` say where. Requires: the context's lock.
void before_foreign_write(const NodePtr& leaf, const char* file, int line);

// What `node` was made of becomes its origin; it drops it where no gradient can be asked for. Requires: the lock.
void keep_origin(const NodePtr& node);

// Looks through all that have an origin: one that was made of what has been overwritten since is lost, one behind which
// there is nothing that somebody could differentiate by is dropped. Requires: the lock.
void sweep_origins(Context& context);

// The leaf itself of a node: what its views look at.
NodePtr base_of(const NodePtr& node);

}  // namespace samebytes::detail
