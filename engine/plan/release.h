// Gradient release: an update that reads the flat gradient only element by element need not wait for the last gradient.
// The flat gradient is split into segments of neighbouring parts, each with its own bytes, and each segment is updated
// as soon as its parts are final and nobody reads its parameters any more. The formulas are the same, and so are the
// bytes of the parameters; the gradients of a model never all exist at once.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/fuse.h"

namespace samebytes::detail {

struct GradientSegment {
  std::int64_t begin = 0, end = 0;           // elements of the pack
  std::size_t first_part = 0, end_part = 0;  // inputs of the pack
  int after = 0;                             // it is updated after the launches of this place
};

struct GradientRelease {
  int pack;   // place
  int group;  // of the update: runs once per segment, and not at its own place
  std::vector<GradientSegment> segments;
};

// For each large flat gradient, or one that requested it (PackLayout::is_released), that only one group of updates
// reads. Empty if several devices are at work.
std::vector<GradientRelease> release_gradients(const GraphList& list, const FuseResult& fusion);

}  // namespace samebytes::detail
