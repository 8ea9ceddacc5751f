// Group: the second pass of planning, after collect(). It decides which nodes share a launch (chains of pointwise
// nodes, what a launch appends to its results, a loss and its gradient, an update that runs piece by piece) and which
// values are recomputed. It assigns no buffers.
#pragma once

#include <string>
#include <vector>

#include "plan/epilogue.h"
#include "plan/fuse.h"
#include "plan/loss_gradient.h"
#include "plan/release.h"

namespace samebytes::detail {

struct Grouping {
  EpilogueResult epilogues;
  FuseResult fusion;
  LossGradients loss_gradients;
  std::vector<GradientRelease> releases;

  // The release whose gradient is the pack at `place`, or whose update is `group`; null if there is none.
  const GradientRelease* release_of_pack(int place) const;
  const GradientRelease* release_of_group(int group) const;
};

// If `fused` is false, every node has its own launch (check_nan). `most_cost` as in RematerialiseLimits.
Grouping group_nodes(const GraphList& list, double most_cost, bool fused);
std::string describe(const Grouping& grouping);  // a line for explain()

}  // namespace samebytes::detail
