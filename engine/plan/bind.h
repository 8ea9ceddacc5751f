// Bind: the last pass of planning. Sets the arguments that never change once, in the kernels: sizes, strides,
// attributes, and null for absent arrays. The arguments that remain in a launch are set at each run.
#pragma once

#include <string>
#include <vector>

#include "plan/lower.h"
#include "plan/plan.h"

namespace samebytes::detail {

struct BoundConstants {
  std::size_t constants = 0, nulls = 0;
};

// Requires: every launch has its kernel, except those that the host does.
BoundConstants bind_constants(std::vector<PlanLaunch>& launches, const std::vector<ConstantArgument>& constants);
std::string describe(const BoundConstants& bound);  // a line for explain()

}  // namespace samebytes::detail
