// What the profile says about each launch of a plan: its op, kernel, layer and counts.
#pragma once

#include <memory>
#include <string>

#include "graph/node.h"
#include "plan/plan.h"
#include "profile/recorder.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"

namespace samebytes::detail {

// The info of a launch for node n. `kernel` is its entry, or says what else it is.
std::shared_ptr<LaunchInfo> info_of_launch(const Node& n, const std::string& what, const std::string& kernel);

// The source of a plan's launch in a run of this list.
LaunchSource source_of(const PlanLaunch& launch, const GraphList& list);
// The same error, with the launch's op before it and its source behind.
[[noreturn]] void throw_named(const PlanLaunch& launch, const LaunchSource& source, const DeviceError& error);
// ", layer 0 Linear, written at train.cpp:40"
std::string source_text(const Node& n);

// The arithmetic and bytes that the op of n counts.
Cost cost_of(const Node& n);

// Fills in bytes and the arena's use, once the arena is laid out.
void count_bytes(Plan& plan);

// Counts a run of the plan with `launches` commands of its queues; what the host did counts as the launches that it
// replaces. is_direct: the evaluating thread did everything.
void count_run(PlanReport& report, const Plan& plan, std::uint64_t launches, bool is_direct);

// The cells of the list, with their layers.
void note_cells(Plan& plan, const GraphList& list);

}  // namespace samebytes::detail
