// Writes the OpenCL C of one fused group, for the personality of a device.
//
// The iteration space is the shape of the group, with neighbouring axes merged where every input allows it: `outer`
// axes, walked by index arithmetic, and one inner axis, walked in vectors. Along the inner axis each input is read as
// neighbours (stride 1, or -1 in reverse), as one element for all lanes (stride 0), or lane by lane. Results are dense.
#pragma once

#include <string>
#include <vector>

#include "graph/graph_list.h"
#include "graph/launch.h"

namespace samebytes::detail {

struct PointwiseInput {
  const Node* node;                   // its dtype
  std::vector<std::int64_t> strides;  // per merged axis, in elements
};

struct PointwiseKernel {
  std::string body;  // text with the entry spelled @NAME@
  Dtype real = Dtype::f32;
  std::vector<std::int64_t> sizes;                   // merged axes
  std::vector<PointwiseInput> inputs;                // distinct operands from outside the group, in argument order
  std::vector<const Node*> outputs;                  // in argument order
  std::vector<std::pair<const Node*, int>> scalars;  // node and index, in argument order
  Dtype plain = Dtype::f32;                          // dtype of the result of a copy or fill, which has no outputs
  Geometry geometry;
  std::vector<std::int64_t> numbers;  // long arguments between the arrays and the scalars
};

// members: pointwise nodes in running order; outputs: those whose value leaves the group. `elements`: if not 0, the
// kernel computes this many neighbouring elements of a group of rank 1 instead of all.
PointwiseKernel write_pointwise_kernel(std::span<const Node* const> members, std::span<const Node* const> outputs,
                                       const Device& device, std::int64_t elements = 0);

// dst = src for a node of any layout: the planner's relayout, the parts of a pack.
PointwiseKernel write_copy_kernel(const Node& src, const Device& device);

// dst[0 .. n) = 0.
PointwiseKernel write_zero_kernel(std::int64_t n, Dtype dtype, const Device& device);

}  // namespace samebytes::detail
