// Lay out: the pass of planning that gives every temporary its bytes in the arena, once all launches are there: those
// whose lives do not meet share bytes, and a result lies over an input that dies where a launch allows it.
#pragma once

#include <string>
#include <vector>

#include "plan/in_place.h"
#include "plan/pack_parts.h"
#include "plan/plan.h"

namespace samebytes::detail {

struct Layout {
  std::vector<ArenaSegment> segments;
  std::vector<PlanTemporary> temporaries;
};

// Sets the places of `buffers`, and makes those parts of a pack that take over a part's bytes. Each context has an
// arena of its own.
Layout lay_out_arena(std::vector<PlanBuffer>& buffers, const std::vector<InPlacePair>& pairs,
                     const std::vector<PackPiece>& pieces, Runtime& runtime);
std::string describe(const Layout& layout);  // a line for explain()

}  // namespace samebytes::detail
