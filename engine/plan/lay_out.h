// Lay out: the pass of planning that gives every temporary its bytes in the arena, once all launches are known.
// Temporaries with disjoint lifetimes share bytes, and a result may overwrite an input that dies if a launch allows it.
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

// Sets the places of `buffers`, and turns those that take over the bytes of a pack's part into parts. Each context has
// its own arena.
Layout lay_out_arena(std::vector<PlanBuffer>& buffers, const std::vector<InPlacePair>& pairs,
                     const std::vector<PackPiece>& pieces, Runtime& runtime);
std::string describe(const Layout& layout);  // a line for explain()

}  // namespace samebytes::detail
