// The last steps of planning, once the launches and buffers are known.
#pragma once

#include "plan/plan.h"

namespace samebytes::detail {

// Lists how a run uses whole storages, and drops operands, except those that calls look up while they run.
void collect_uses(Plan& plan);

// With several devices: finds the launches of other devices that a launch waits for, because they wrote what it reads
// or use what it overwrites. Requires: the arena layout, and operands of all launches.
void order_devices(Plan& plan);

}  // namespace samebytes::detail
