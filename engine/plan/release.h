// Gradient release: where an update reads nothing but the flat gradient element by element, it need not wait for the
// last gradient. The flat gradient is cut into segments of neighbouring parts, each with bytes of its own, and each
// segment is updated as soon as its parts are final and nobody reads its parameters any more. The formulas are the
// same, and so are the bytes of the parameters; the gradients of a model are never all there at once.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/fuse.h"

namespace samebytes::detail {

struct GradientSegment {
  std::int64_t begin = 0, end = 0;           // elements of the pack
  std::size_t first_part = 0, end_part = 0;  // inputs of the pack
  int after = 0;                             // the place after whose launches it is updated
};

struct GradientRelease {
  int pack;   // place
  int group;  // of the update: runs once for each segment, and not at its own place
  std::vector<GradientSegment> segments;
};

// A large flat gradient, or one that asked for it (PackLayout::is_released), that only one group of updates reads.
// Nothing where several devices are at work.
std::vector<GradientRelease> release_gradients(const GraphList& list, const FuseResult& fusion);

}  // namespace samebytes::detail
