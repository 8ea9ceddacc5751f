// Segment: a part of the forward pass that the reverse pass recomputes (samebytes/checkpoint.h). Nodes remember the
// innermost segment they were built in.
#pragma once

#include <memory>

namespace samebytes::detail {

struct Node;

struct Segment {
  std::shared_ptr<const Segment> outer;  // the enclosing one, if any
};
using SegmentPtr = std::shared_ptr<const Segment>;

extern thread_local SegmentPtr open_segment;  // of the nodes that this thread builds

bool is_within(const Node& node, const Segment* segment);  // in it or in a nested one
bool is_open(const Segment* segment);                      // its scope has not ended

}  // namespace samebytes::detail
