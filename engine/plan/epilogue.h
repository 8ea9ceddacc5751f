// Epilogues: a sum with an array that is there anyway, and a ReLU or the gradient of one, are taken over by the launch
// that makes their operand, where its op offers that (OpTraits::takes_epilogue). What lies between is never written to
// memory.
#pragma once

#include <vector>

#include "graph/graph_list.h"

namespace samebytes::detail {

// What the launch of one node appends. It runs at the place of `result` and stores that node's value.
struct AppendedEpilogue {
  int residual = -1;  // place of the array that is added, -1 for none
  bool relu = false;
  int gate = -1;    // place of the array that says which values are kept, -1 for none
  int result = -1;  // -1: nothing is appended
};

struct EpilogueResult {
  std::vector<AppendedEpilogue> of;  // by place of the op whose launch appends
  std::vector<int> producer;         // by place of a result: that op; -1 for every other node
  std::vector<char> absorbed;        // by place: a pointwise node that needs no launch
  std::vector<int> moved_to;         // by place: where the launch that computes it runs, -1 where nothing was appended
  std::uint64_t nodes_fused = 0;
};

// With `enabled` false nothing is appended (check_nan).
EpilogueResult append_epilogues(const GraphList& list, bool enabled);

}  // namespace samebytes::detail
