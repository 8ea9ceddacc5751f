// Fusion: chains of pointwise nodes of one shape become one launch with several inputs and results.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph_list.h"
#include "plan/epilogue.h"

namespace samebytes::detail {

// Of a group: keeps the argument block within 1024 bytes and the registers in sight.
inline constexpr std::size_t kMostMembers = 48;

struct FuseResult {
  // By place: the group of a pointwise node, -1 for every other one. A group runs at the place of its last member.
  std::vector<int> group;
  std::vector<std::vector<int>> members;  // by group, ascending places; with nodes of other groups that it computes too
  std::vector<char> is_output;            // by place: a pointwise node whose value leaves its group
  std::vector<int> moved_to;              // by place: where the launch with its epilogue runs (epilogue.h), else -1
  std::uint64_t nodes_fused = 0;          // nodes that need no launch of their own

  // A value that is written once more, into another buffer, for its readers from there on (rematerialise.h).
  struct Again {
    int before;                // the place before whose launches it runs
    int value;                 // the place of the value
    std::vector<int> members;  // ascending places
  };
  std::vector<Again> again;  // ascending `before`, then `value`

  int runs_at(const GraphList& list, int place) const;  // the place at which the launches of a node are recorded
};

// With `enabled` false every pointwise node is a group of its own (check_nan). What a launch with an epilogue computes
// belongs to no group.
FuseResult fuse(const GraphList& list, const EpilogueResult& epilogues, bool enabled);

}  // namespace samebytes::detail
