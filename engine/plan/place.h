// Place: the third pass of planning. It gives every stored value a buffer: the storage of a leaf, fresh storage for a
// wanted value, the arena for a temporary, or a piece of a flat gradient for an input of a pack. The offset in the
// arena is decided later (lay_out.h), when all launches are known.
#pragma once

#include <string>
#include <vector>

#include "placement/fallback.h"
#include "plan/group.h"
#include "plan/plan.h"

namespace samebytes::detail {

struct PlacedValues {
  std::vector<PlanBuffer> buffers;
  std::vector<int> buffer_of;              // by place: the buffer that holds the node's value, -1 for none
  std::vector<std::vector<int>> results;   // by place: the buffers of a node with several results
  std::vector<std::vector<int>> segments;  // by release of the grouping: buffers of its segments
  std::vector<int> late_cells;             // places of nodes whose run overwrites cells

  int add(PlanBuffer::Kind kind, const Shape& shape, Dtype dtype, int place, int device, Runtime& runtime);
};

// Throws what PersistentStorages::get throws, unless `kernels` handles it as a refusal.
PlacedValues place_values(const GraphList& list, const Grouping& grouping, Context& context,
                          PersistentStorages& persistent, KernelMaker& kernels);
std::string describe(const PlacedValues& placed);  // a line for explain()

}  // namespace samebytes::detail
