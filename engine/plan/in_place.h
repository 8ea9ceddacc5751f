// In place: a launch that reads each element of an input before it writes the same element of a result may write over
// that input, where nothing reads it later. A byte that is written where it was just read costs no second cache line.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"
#include "plan/pointwise_kernel.h"

namespace samebytes::detail {

// A result that may take the place of an input of its launch.
struct InPlacePair {
  int launch;
  int input, result;         // buffers
  bool comes_first = false;  // before all pairs that do not: of a host call, which would have to copy
};

// By buffer: the one whose bytes it shares, itself where it shares none. `pairs` in the order of their launches,
// several for one result in order of preference. Temporaries of the arena share: a result lies where its input lay, or,
// where the result is a part of a pack, the input where the part lies.
std::vector<int> share_in_place(const std::vector<PlanBuffer>& buffers, std::span<const InPlacePair> pairs);

// The pairs of a generated kernel: inputs of the layout and the width of a result, each read by one argument alone.
// `inputs` and `results` are the buffers of its arguments, `offsets` where in their buffers the inputs begin.
std::vector<InPlacePair> in_place_pairs(const PointwiseKernel& kernel, int launch, std::span<const int> inputs,
                                        std::span<const std::int64_t> offsets, std::span<const int> results,
                                        const std::vector<PlanBuffer>& buffers);

}  // namespace samebytes::detail
