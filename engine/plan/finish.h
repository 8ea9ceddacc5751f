// The last steps of a plan, when its launches and buffers are there.
#pragma once

#include "plan/plan.h"

namespace samebytes::detail {

// Lists how a run uses whole storages, and drops the operands that only calls look up while they run.
void collect_uses(Plan& plan);

// Where several devices work, a launch waits for the devices that wrote what it reads, and a late overwrite for
// everybody.
void order_devices(Plan& plan, int devices);

}  // namespace samebytes::detail
