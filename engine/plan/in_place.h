// In place: a launch that reads each element of an input before it writes the same element of a result may overwrite
// that input if nothing reads it later. Writing a byte just read touches no second cache line.
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
  bool comes_first = false;  // takes precedence over pairs without it: a host call, which would have to copy
};

// By buffer: the buffer whose bytes it shares, or itself. `pairs` come in launch order; several for one result come in
// order of preference. Only temporaries of the arena share: a result lies where its input lay or, if the result is a
// part of a pack, the input lies where the part lies.
std::vector<int> share_in_place(const std::vector<PlanBuffer>& buffers, std::span<const InPlacePair> pairs);

// The pairs of a generated kernel: inputs with the layout and element size of a result, each read by only one argument.
// `inputs` and `results` are the buffers of its arguments, `offsets` the start of the inputs in their buffers.
std::vector<InPlacePair> in_place_pairs(const PointwiseKernel& kernel, int launch, std::span<const int> inputs,
                                        std::span<const std::int64_t> offsets, std::span<const int> results,
                                        const std::vector<PlanBuffer>& buffers);

}  // namespace samebytes::detail
