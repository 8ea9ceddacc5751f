// Fusion: chains of pointwise nodes of one shape become one launch with several inputs and results.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph_list.h"
#include "plan/epilogue.h"

namespace samebytes::detail {

// Per group: keeps the argument block within 1024 bytes and limits register pressure.
inline constexpr std::size_t kMostMembers = 48;

struct FuseResult {
  // By place: the group of a pointwise node, -1 for all other nodes. A group runs at the place of its last member.
  std::vector<int> group;
  std::vector<std::vector<int>> members;  // by group, ascending places; includes recomputed nodes of other groups
  std::vector<char> is_output;            // by place: a pointwise node whose value other launches or the user read
  std::vector<int> moved_to;              // by place: where the launch with its epilogue runs (epilogue.h), else -1
  std::uint64_t nodes_fused = 0;          // nodes without their own launch

  // A value that is written a second time, to another buffer, for its later readers (rematerialise.h).
  struct Again {
    int before;                // runs before the launches of this place
    int value;                 // the place of the value
    std::vector<int> members;  // ascending places
  };
  std::vector<Again> again;  // ascending `before`, then `value`

  int runs_at(const GraphList& list, int place) const;  // the place at which the launches of a node are recorded
};

// If `enabled` is false, every pointwise node is its own group (check_nan). Nodes computed by an epilogue belong to no
// group.
FuseResult fuse(const GraphList& list, const EpilogueResult& epilogues, bool enabled);

}  // namespace samebytes::detail
