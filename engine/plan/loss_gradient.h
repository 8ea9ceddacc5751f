// The launch of a loss also makes its gradient, if its op supports that (Op::makes_gradient): shared inputs are read
// once, and the gradient may overwrite the logits.
#pragma once

#include <vector>

#include "graph/graph_list.h"
#include "plan/fuse.h"

namespace samebytes::detail {

struct LossGradients {
  std::vector<int> gradient;  // by place of a node: the place of the gradient that its launch makes, -1 for none
  std::vector<int> made_by;   // by place of such a gradient: that node; -1 for all other nodes
};

// Pairs losses with gradients, and records in `fusion` where the gradients are made. The upstream gradient must exist
// when the loss runs, as the derivative of the loss with respect to itself does. If `enabled` is false, pairs nothing
// (check_nan).
LossGradients pair_loss_gradients(const GraphList& list, FuseResult& fusion, bool enabled);

}  // namespace samebytes::detail
