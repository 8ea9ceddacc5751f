// The passes of planning, from a list of nodes to a plan. Each pass takes the results of earlier ones and returns its
// own value, which describes itself in a line; Plan::passes keeps these lines for explain().
#include <algorithm>

#include "placement/fallback.h"
#include "plan/bind.h"
#include "plan/contexts.h"
#include "plan/finish.h"
#include "plan/generated.h"
#include "plan/group.h"
#include "plan/host_run.h"
#include "plan/launch_info.h"
#include "plan/lay_out.h"
#include "plan/lower.h"
#include "plan/op_kernels.h"
#include "plan/place.h"
#include "plan/planner.h"

namespace samebytes::detail {
namespace {

std::string describe(const GraphList& list) {
  std::size_t leaves = 0, views = 0, wanted = 0;
  for (const NodePtr& node : list.nodes) {
    leaves += node->has_value;
    views += node->is_view && !node->has_value;
    wanted += list.wanted[static_cast<std::size_t>(node->place)] != 0;
  }
  return std::to_string(list.nodes.size()) + " nodes: " + std::to_string(leaves) + " have their value, " +
         std::to_string(views) + " are views, " + std::to_string(wanted) + " are wanted";
}

bool works_on_several_devices(const std::vector<PlanLaunch>& launches) {
  return std::any_of(launches.begin(), launches.end(),
                     [&](const PlanLaunch& launch) { return launch.device != launches[0].device; });
}

}  // namespace

std::unique_ptr<Plan> make_plan(const GraphList& list, Context& context, PersistentStorages& persistent,
                                HostShare& share, KernelMaker& kernels, bool fused) {
  auto plan = std::make_unique<Plan>();
  const auto note = [&](const char* pass, const std::string& line) { plan->passes.push_back({pass, line}); };
  note("collect", describe(list));
  const Grouping grouping = group_nodes(list, context.options.recompute, fused);
  note("group", describe(grouping));
  PlacedValues placed = place_values(list, grouping, context, persistent, kernels);
  note("place", describe(placed));
  Lowered lowered = lower(list, grouping, std::move(placed), context, kernels);
  note("lower", describe(lowered));
  make_op_kernels(lowered.launches, lowered.op_kernels, *context.runtime, kernels);
  kernels.stop_if_refused();

  plan->buffers = std::move(lowered.placed.buffers);
  plan->buffer_of = std::move(lowered.placed.buffer_of);
  plan->late_cells = std::move(lowered.placed.late_cells);
  plan->launches = std::move(lowered.launches);
  plan->relayout_bytes = lowered.relayout_bytes;
  plan->nodes_fused = grouping.fusion.nodes_fused + grouping.epilogues.nodes_fused;
  plan->several_devices = works_on_several_devices(plan->launches);

  lowered.renumber(cross_contexts(*plan, list, context));
  Layout layout = lay_out_arena(plan->buffers, lowered.pairs, lowered.pieces, *context.runtime);
  note("lay out", describe(layout));
  plan->arena_segments = std::move(layout.segments);
  plan->temporaries = std::move(layout.temporaries);
  count_bytes(*plan);
  note_cells(*plan, list);
  order_devices(*plan);
  share.take_from(*plan);
  build_generated(*plan, lowered.generated, *context.runtime, kernels);
  kernels.stop_if_refused();
  note("bind", describe(bind_constants(plan->launches, lowered.constants)));
  collect_uses(*plan);
  return plan;
}

}  // namespace samebytes::detail
