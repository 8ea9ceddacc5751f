// The gradient of a loss, made by the launch of the loss itself where its op offers that (Op::makes_gradient): what
// both read is read once, and the gradient may lie where the logits lay.
#pragma once

#include <vector>

#include "graph/graph_list.h"
#include "plan/fuse.h"

namespace samebytes::detail {

struct LossGradients {
  std::vector<int> gradient;  // by place of a node: the place of the gradient that its launch makes, -1 for none
  std::vector<int> made_by;   // by place of such a gradient: that node; -1 for every other one
};

// Pairs what can be paired, and says in `fusion` where the gradients are made. The upstream gradient must be there when
// the loss runs, as the derivative of the loss by itself is. With `enabled` false nothing is paired (check_nan).
LossGradients pair_loss_gradients(const GraphList& list, FuseResult& fusion, bool enabled);

}  // namespace samebytes::detail
