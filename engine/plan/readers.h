// Finds who still reads what is about to be overwritten.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "graph/context.h"
#include "graph/node.h"

namespace samebytes::detail {

struct Readers {
  std::vector<NodePtr> waiting;  // nodes with a user's handle that have not run
  std::vector<NodePtr> views;    // views with a handle that show the bytes themselves
};
// Those that read one of `targets` (leaves) as it is now. Waiting updates are not among them: they run only when
// requested. Requires: the context's lock.
Readers readers_of(const Context& context, const std::unordered_set<const Node*>& targets);

// Replaces the leaf under each view by a snapshot, one per leaf. Returns the snapshots, which must run before the
// leaves are overwritten.
std::vector<NodePtr> detach_views(std::span<const NodePtr> views);

// Sums carried along by a loop (total = total + loss): small pointwise nodes that wait, have a handle, continue from an
// earlier value that nobody holds any more, and whose inputs are all evaluated. They run after every evaluation, so
// that no chain of them grows.
std::vector<NodePtr> carried_sums(const Context& context);

}  // namespace samebytes::detail
