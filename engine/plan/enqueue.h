// What a launch needs at each run before it is enqueued, or instead of being enqueued.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/run_access.h"

namespace samebytes::detail {

struct GraphList;

// Sets the kernel arguments that differ from the previous run: arrays, offsets, scalars.
void bind_arguments(PlanLaunch& launch, const GraphList& list, const std::vector<Bound>& bound);

// Runs a launch's host function on the evaluating thread, once the data that it uses is ready.
void run_host_call(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound, Submission& submission);

}  // namespace samebytes::detail
