// Flat gradients in the arena. A small one is a storage of the plan, zeroed once. A large one is laid out with the
// temporaries: its parts keep their distances, but each occupies its bytes only from its first write on, so that
// activations can use the space of gradients that do not exist yet. Gaps between parts are then zeroed at every run.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "plan/plan.h"

namespace samebytes::detail {

// Offset and length, in elements, of a range of a pack that no part covers.
using Gap = std::pair<std::int64_t, std::int64_t>;
std::vector<Gap> gaps_of(const Node& pack);

// Requires: a node whose op packs its inputs.
bool lies_in_arena(const Node& pack);

// A piece of a pack in the arena that a launch of the plan writes: a copied part, or a gap.
struct PackPiece {
  int whole;  // buffer of the pack
  std::size_t offset, bytes;
  int first;  // launch
};

// The requests of all packs in the arena, each pack a group numbered by its buffer; `pieces` beside their parts.
std::vector<ArenaRequest> requests_of_packs(const std::vector<PlanBuffer>& buffers,
                                            const std::vector<PackPiece>& pieces);

}  // namespace samebytes::detail
