// Fusion: chains of pointwise nodes of one shape become one launch with several inputs and results.
#pragma once

#include <vector>

#include "plan/graph_list.h"

namespace samebytes::detail {

struct FuseResult {
  // By place: the group of a pointwise node, -1 for every other one. A group runs at the place of its last member.
  std::vector<int> group;
  std::vector<std::vector<int>> members;  // by group, ascending places
  std::vector<char> is_output;            // by place: a pointwise node whose value leaves its group
  std::uint64_t nodes_fused = 0;          // nodes that need no launch of their own
};

// With `enabled` false every pointwise node is a group of its own (check_nan). `absorbed`, by place: nodes that another
// launch computes (epilogue.h); they belong to no group.
FuseResult fuse(const GraphList& list, const std::vector<char>& absorbed, bool enabled);

}  // namespace samebytes::detail
