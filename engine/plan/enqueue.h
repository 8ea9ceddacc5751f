// What a launch needs at each run before it is enqueued, or instead of it.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/run_access.h"

namespace samebytes::detail {

struct GraphList;

// Sets the arguments of a kernel that are not those of the run before: arrays, offsets, scalars.
void bind_arguments(PlanLaunch& launch, const GraphList& list, const std::vector<Bound>& bound);

// Runs the host function of a launch on the thread that evaluates, when what it touches is there.
void run_host_call(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound, Submission& submission);

}  // namespace samebytes::detail
