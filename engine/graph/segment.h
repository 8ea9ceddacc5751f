// Segment: a part of the forward pass that the reverse pass computes anew (samebytes/checkpoint.h). Nodes remember the
// innermost one they were built in.
#pragma once

#include <memory>

namespace samebytes::detail {

struct Node;

struct Segment {
  std::shared_ptr<const Segment> outer;  // the one around it, if there is one
};
using SegmentPtr = std::shared_ptr<const Segment>;

extern thread_local SegmentPtr open_segment;  // of the nodes that this thread builds

bool is_within(const Node& node, const Segment* segment);  // in it, or in one inside it
bool is_open(const Segment* segment);                      // its scope has not ended

}  // namespace samebytes::detail
