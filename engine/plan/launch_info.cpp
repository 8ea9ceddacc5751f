#include "plan/launch_info.h"

#include <algorithm>
#include <set>
#include <vector>

#include "graph/op.h"
#include "runtime/ticket.h"

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

LaunchSource source_of(const PlanLaunch& launch, const GraphList& list) {
  if (launch.node < 0) return {launch.info, {}};
  return {launch.info, list.nodes[static_cast<std::size_t>(launch.node)]->written_at};
}

void throw_named(const PlanLaunch& launch, const LaunchSource& source, const DeviceError& error) {
  throw DeviceError(launch.what + ": " + error.what() + source.text(), error.call(), error.status(), error.device());
}

std::string source_text(const Node& n) { return source_text(n.layer.text(), n.is_gradient, n.written_at); }

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
  for (const PlanTemporary& t : plan.temporaries) {
    change[static_cast<std::size_t>(t.request.first)] += static_cast<std::ptrdiff_t>(t.request.bytes);
    change[static_cast<std::size_t>(t.request.last) + 1] -= static_cast<std::ptrdiff_t>(t.request.bytes);
  }
  const std::size_t arena = plan.arena_bytes();
  std::ptrdiff_t alive = 0, most = 0;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    PlanLaunch& launch = plan.launches[i];
    alive += change[i];
    if (alive > most) {
      most = alive;
      plan.peak_launch = static_cast<int>(i);
    }
    if (launch.transfer()) {
      launch.info->arena_bytes = std::min(arena, static_cast<std::size_t>(std::max<std::ptrdiff_t>(alive, 0)));
      continue;
    }
    std::set<int> buffers;
    for (const PlanOperand& operand : launch.operands)
      if (operand.buffer >= 0) buffers.insert(operand.buffer);
    double bytes = 0;
    for (const int buffer : buffers) bytes += static_cast<double>(plan.buffers[static_cast<std::size_t>(buffer)].bytes);
    // An op that reads only a part of an operand (a gather) states the bytes in its cost.
    launch.info->bytes = launch.info->bytes > 0 ? std::min(launch.info->bytes, bytes) : bytes;
    plan.flops += launch.info->flops;
    plan.bytes += launch.info->bytes;
    launch.info->arena_bytes = std::min(arena, static_cast<std::size_t>(std::max<std::ptrdiff_t>(alive, 0)));
  }
}

int Plan::weight() const {
  constexpr std::size_t most_launches = 16, bytes_of_one = 1 << 15;
  constexpr double most_bytes = 4e6, most_flops = 1e7;
  if (launches.size() > most_launches || bytes > most_bytes || flops > most_flops || transfer_bytes > 0)
    return Ticket::kStep;
  std::size_t made = 0;
  for (const PlanBuffer& buffer : buffers)
    if (buffer.kind == PlanBuffer::Kind::own) made += buffer.bytes;
  return static_cast<int>(std::min<std::size_t>(Ticket::kStep, 1 + made / bytes_of_one));
}

void count_run(PlanReport& report, const Plan& plan, std::uint64_t launches, bool is_direct) {
  report.launches += is_direct ? launches : launches - plan.host_runs + plan.launches_on_host;
  report.host_runs += is_direct ? 1 : plan.host_runs;
  report.launches_on_host += is_direct ? launches : plan.launches_on_host;
  report.flops += plan.flops;
  report.bytes += plan.bytes;
}

void note_cells(Plan& plan, const GraphList& list) {
  std::vector<const char*> layer_of(plan.buffers.size(), nullptr);
  for (const PlanLaunch& launch : plan.launches)
    for (const PlanOperand& operand : launch.operands)
      if (operand.buffer >= 0 && !layer_of[static_cast<std::size_t>(operand.buffer)])
        layer_of[static_cast<std::size_t>(operand.buffer)] = launch.info->layer.c_str();
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlanBuffer& buffer = plan.buffers[b];
    if (buffer.kind != PlanBuffer::Kind::leaf || !layer_of[b]) continue;
    const NodePtr& node = list.nodes[static_cast<std::size_t>(buffer.node)];
    if (node->cell) plan.cells.push_back({node, Label(layer_of[b])});
  }
}

}  // namespace samebytes::detail
