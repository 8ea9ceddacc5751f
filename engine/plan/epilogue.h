// Epilogues: the launch that makes an operand of a sum with an existing array, of a ReLU, a hard swish, a ReLU6 or a
// ReLU's gradient also computes that node, if its op supports it (OpTraits::takes_epilogue). The value in between is
// never written to memory.
#pragma once

#include <vector>

#include "graph/graph_list.h"

namespace samebytes::detail {

// The epilogue of one node's launch. The launch runs at the place of `result` and stores that node's value.
struct AppendedEpilogue {
  int residual = -1;  // place of the array to add, -1 for none
  bool relu = false;
  int gate = -1;  // place of the array that selects the kept values, -1 for none
  bool hard_swish = false;
  bool relu6 = false;
  int result = -1;  // -1: no epilogue

  bool is_closed() const { return relu || hard_swish || relu6 || gate >= 0; }  // nothing can follow
};

struct EpilogueResult {
  std::vector<AppendedEpilogue> of;  // by place of the op whose launch has the epilogue
  std::vector<int> producer;         // by place of a result: that op; -1 for all other nodes
  std::vector<char> absorbed;        // by place: a pointwise node that needs no launch
  std::vector<int> moved_to;         // by place: where the launch that computes it runs, -1 without epilogue
  std::uint64_t nodes_fused = 0;
};

// If `enabled` is false, appends nothing (check_nan).
EpilogueResult append_epilogues(const GraphList& list, bool enabled);

}  // namespace samebytes::detail
