#include "plan/launch_info.h"

#include <algorithm>
#include <set>
#include <vector>

#include "graph/op.h"

namespace samebytes::detail {

std::shared_ptr<LaunchInfo> info_of_launch(const Node& n, const std::string& what, const std::string& kernel) {
  auto info = std::make_shared<LaunchInfo>();
  info->op = n.is_repeated ? what + " again" : what;
  info->kernel = kernel;
  info->layer = n.layer.text();
  info->shape = n.shape.to_string();
  info->is_gradient = n.is_gradient;
  return info;
}

Cost cost_of(const Node& n) {
  std::vector<Shape> src, dst;
  for (const Edge& edge : n.inputs) src.push_back(edge.node->shape);
  if (n.results.empty())
    dst.push_back(n.shape);
  else
    for (const auto& result : n.results) dst.push_back(result.first);
  return n.op->cost(src, dst);
}

void count_bytes(Plan& plan) {
  std::vector<std::ptrdiff_t> change(plan.launches.size() + 1, 0);
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.kind != PlanBuffer::Kind::arena || buffer.first < 0) continue;
    change[static_cast<std::size_t>(buffer.first)] += static_cast<std::ptrdiff_t>(buffer.bytes);
    change[static_cast<std::size_t>(buffer.last) + 1] -= static_cast<std::ptrdiff_t>(buffer.bytes);
  }
  std::size_t arena = 0;
  for (const std::size_t segment : plan.arena_segments) arena += segment;
  std::ptrdiff_t alive = 0;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    PlanLaunch& launch = plan.launches[i];
    alive += change[i];
    std::set<int> buffers;
    for (const auto& operand : launch.operands)
      if (operand.second >= 0) buffers.insert(operand.second);
    double bytes = 0;
    for (const int buffer : buffers) bytes += static_cast<double>(plan.buffers[static_cast<std::size_t>(buffer)].bytes);
    // An op that looks at a part of an operand (a gather) says so in its cost.
    launch.info->bytes = launch.info->bytes > 0 ? std::min(launch.info->bytes, bytes) : bytes;
    launch.info->arena_bytes = std::min(arena, static_cast<std::size_t>(std::max<std::ptrdiff_t>(alive, 0)));
  }
}

}  // namespace samebytes::detail
