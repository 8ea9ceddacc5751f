// Bind: the last pass of planning. What never changes is set once in the kernels: sizes, strides, attributes, and null
// for arrays that are not there. What is left in a launch's arguments is set at each run.
#pragma once

#include <string>
#include <vector>

#include "plan/lower.h"
#include "plan/plan.h"

namespace samebytes::detail {

struct BoundConstants {
  std::size_t constants = 0, nulls = 0;
};

// Requires the kernels of all launches that the host does not do.
BoundConstants bind_constants(std::vector<PlanLaunch>& launches, const std::vector<ConstantArgument>& constants);
std::string describe(const BoundConstants& bound);  // a line for explain()

}  // namespace samebytes::detail
