// The last steps of a plan, when its launches and buffers are there.
#pragma once

#include "plan/plan.h"

namespace samebytes::detail {

// Lists how a run uses whole storages, and drops the operands that only calls look up while they run.
void collect_uses(Plan& plan);

// Where several devices work: which launches of other devices a launch waits for, because they wrote what it reads, or
// use what it writes. Requires places in the arena, and operands of all launches.
void order_devices(Plan& plan);

}  // namespace samebytes::detail
