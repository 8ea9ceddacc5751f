// Devices of two contexts share no memory. A transfer launch copies what a launch reads or overwrites in another
// context: once for each version of a value and each context that reads it, as soon as the value exists.
// docs/decisions/contexts.md explains why.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samebytes::detail {

struct GraphList;

// Adds the transfers and makes launches use the copies. Returns the new number of each launch, by its old one, or an
// empty list if it added none. Requires: operands with ranges, and no arena layout yet. Does nothing in an engine with
// one context.
std::vector<int> cross_contexts(Plan& plan, const GraphList& list, Context& context);

}  // namespace samebytes::detail
