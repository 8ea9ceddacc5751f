// Devices of two contexts share no memory. What a launch reads or overwrites in another context is brought to its own
// by a transfer launch: once for each version of a value and each context that reads it, as soon as the value is there.
// docs/decisions/contexts.md has the reasons.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samebytes::detail {

struct GraphList;

// Adds the transfers and has launches use the copies. Returns the new number of each launch, by its old one; nothing
// where none was added. Requires operands with ranges, and no places in the arena yet. Nothing to do in an engine of
// one context.
std::vector<int> cross_contexts(Plan& plan, const GraphList& list, Context& context);

}  // namespace samebytes::detail
