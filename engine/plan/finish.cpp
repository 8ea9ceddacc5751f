#include "plan/finish.h"

#include <algorithm>
#include <map>
#include <vector>

namespace samebytes::detail {
namespace {

int root_buffer(const Plan& plan, int buffer) {
  return plan.buffers[buffer].kind == PlanBuffer::Kind::part ? plan.buffers[buffer].parent : buffer;
}

}  // namespace

void collect_uses(Plan& plan) {
  std::map<int, std::size_t> seen;
  for (const PlanLaunch& launch : plan.launches)
    for (std::size_t o = 0; o < launch.operands.size(); ++o) {
      int buffer = launch.operands[o].second;
      if (buffer < 0) continue;
      if (plan.buffers[buffer].kind == PlanBuffer::Kind::part) buffer = plan.buffers[buffer].parent;
      const PlanBuffer::Kind kind = plan.buffers[buffer].kind;
      if (kind == PlanBuffer::Kind::arena || kind == PlanBuffer::Kind::empty) continue;
      const bool writes = launch.operand_writes[o];
      const auto [it, fresh] = seen.emplace(buffer, plan.uses.size());
      if (fresh)
        plan.uses.push_back({buffer, writes, launch.what});
      else if (writes && !plan.uses[it->second].writes)
        plan.uses[it->second] = {buffer, true, launch.what};
    }
  for (PlanLaunch& launch : plan.launches)
    if (launch.kernel) {  // only calls look operands up while they run
      launch.operands.clear();
      launch.operand_offsets.clear();
      launch.operand_writes.clear();
    }
}

void order_devices(Plan& plan, int devices) {
  if (!plan.several_devices) return;
  std::vector<int> writer(plan.buffers.size(), -1);
  for (PlanLaunch& launch : plan.launches) {
    bool overwrites = false;
    for (const PlanArgument& argument : launch.arguments) {
      if (argument.kind != PlanArgument::Kind::array) continue;
      const int buffer = root_buffer(plan, argument.buffer);
      if (writer[buffer] >= 0 && writer[buffer] != launch.device) launch.after.push_back(writer[buffer]);
      if (!argument.writes) continue;
      overwrites = overwrites || plan.buffers[buffer].kind == PlanBuffer::Kind::leaf;
      writer[buffer] = launch.device;
    }
    if (overwrites)
      for (int d = 0; d < devices; ++d)
        if (d != launch.device) launch.after.push_back(d);
    std::sort(launch.after.begin(), launch.after.end());
    launch.after.erase(std::unique(launch.after.begin(), launch.after.end()), launch.after.end());
  }
}

}  // namespace samebytes::detail
