// Who still reads what is about to be overwritten.
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
// Those that read one of `targets`, leaves, as it is now. An update that waits is not among them: it runs when it is
// asked for or not at all. Requires: the context's lock.
Readers readers_of(const Context& context, const std::unordered_set<const Node*>& targets);

// The leaf under each view becomes a snapshot of it, one for each leaf. They are returned and must run before the
// leaves are overwritten.
std::vector<NodePtr> detach_views(std::span<const NodePtr> views);

// Sums that a loop carries on (total = total + loss): small pointwise nodes that wait, have a handle, go on from an
// earlier value that nobody holds any more and find all they read evaluated. They are run behind every evaluation, so
// that no chain of them grows.
std::vector<NodePtr> carried_sums(const Context& context);

}  // namespace samebytes::detail
