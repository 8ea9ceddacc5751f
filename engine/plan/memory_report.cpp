// What a planner reports: the cause of a peak, its counts, and its part of a memory snapshot (plans, cells, layers).
// Also the snapshot itself.
#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <unordered_set>

#include "graph/context.h"
#include "graph/node.h"
#include "plan/planner.h"
#include "profile/memory_log.h"
#include "samebytes/error.h"

namespace samebytes {
namespace detail {
namespace {

constexpr std::size_t kMostPlansShown = 8;

MemoryPlan memory_of(const Plan& plan) {
  MemoryPlan result;
  result.arena_bytes = plan.arena_bytes();
  result.last_used = plan.last_used;
  for (const PlanLaunch& launch : plan.launches)
    result.launches.push_back({launch.info->op, launch.info->layer, launch.info->is_gradient, 0, 0});
  for (const PlanTemporary& t : plan.temporaries) {
    const MemoryLaunch& writer = result.launches[static_cast<std::size_t>(t.request.first)];
    const bool is_gradient = t.request.group >= 0;
    result.temporaries.push_back({writer.op, writer.layer,
                                  is_gradient ? MemoryCategory::gradients : MemoryCategory::activations,
                                  t.request.bytes, t.place.offset, t.place.segment, t.request.first, t.request.last});
    for (int i = t.request.first; i <= t.request.last; ++i) {
      MemoryLaunch& launch = result.launches[static_cast<std::size_t>(i)];
      (is_gradient ? launch.gradients : launch.activations) += t.request.bytes;
    }
  }
  return result;
}

MemoryCategory category_of(const Node& cell) {
  switch (cell.category) {
    case Category::optimizer: return MemoryCategory::optimizer;
    case Category::gradient: return MemoryCategory::gradients;
    case Category::parameter: return MemoryCategory::parameters;
    default: return MemoryCategory::other;
  }
}

// Divides the bytes that belong to parameters among layers, in proportion to their parameters' bytes.
std::size_t share_of(std::size_t part, std::size_t whole, std::size_t bytes) {
  return whole == 0 ? 0
                    : static_cast<std::size_t>(static_cast<double>(part) / static_cast<double>(whole) *
                                               static_cast<double>(bytes));
}

}  // namespace

PlanReport Planner::report() const {
  PlanReport report = report_;
  report.programs_built = context_.runtime->programs_built();
  return report;
}

// A run peaks where most of its arena is alive, unless a single kept value is larger than that.
void Planner::name_peak(const Plan& plan) {
  if (plan.peak_launch < 0) return;
  const std::size_t arena = plan.arena_bytes();
  std::size_t largest = 0;
  for (const PlanBuffer& buffer : plan.buffers)
    if (buffer.kind == PlanBuffer::Kind::own) largest = std::max(largest, buffer.bytes);
  const LaunchInfo& launch = *plan.launches[static_cast<std::size_t>(plan.peak_launch)].info;
  if (arena >= largest) context_.runtime->name_memory_peak(launch.op, launch.layer.c_str());
}

void Planner::fill(MemorySnapshot& snapshot) const {
  std::vector<const Plan*> plans;
  for (const auto& [key, plan] : plans_) plans.push_back(plan.get());
  const auto arena_of = [](const Plan* plan) { return plan->arena_bytes(); };
  std::sort(plans.begin(), plans.end(), [&](const Plan* a, const Plan* b) {
    const std::size_t most = arena_of(a), other = arena_of(b);
    return most != other ? most > other : a->last_used > b->last_used;
  });

  std::map<std::string, MemoryLayer> layers;
  std::unordered_set<const Node*> seen;
  for (const Plan* plan : plans)
    for (const PlanCell& one : plan->cells) {
      const NodePtr cell = one.cell.lock();
      if (!cell || !cell->storage || !seen.insert(cell.get()).second) continue;
      const std::size_t bytes = static_cast<std::size_t>(cell->shape.size()) * bytes_of(cell->dtype);
      const MemoryCategory category = category_of(*cell);
      // Skip a flat cell: layers read its parts.
      if (!cell->cell->members.empty()) continue;
      snapshot.arrays.push_back({cell->cell->name, one.layer.text(), category, bytes});
      if (category == MemoryCategory::parameters) layers[one.layer.text()].parameters += bytes;
    }
  std::stable_sort(snapshot.arrays.begin(), snapshot.arrays.end(),
                   [](const MemoryArray& a, const MemoryArray& b) { return a.bytes > b.bytes; });

  for (std::size_t i = 0; i < std::min(plans.size(), kMostPlansShown); ++i)
    snapshot.plans.push_back(memory_of(*plans[i]));
  snapshot.step = snapshot.report.live_by_category;
  const std::size_t arena = snapshot.step[MemoryCategory::activations];
  std::size_t gradients = 0;
  if (!snapshot.plans.empty() && snapshot.plans.front().peak_launch() >= 0) {
    const MemoryPlan& plan = snapshot.plans.front();
    const int peak = plan.peak_launch();
    gradients = std::min(arena, plan.launches[static_cast<std::size_t>(peak)].gradients);
    for (const MemoryTemporary& t : plan.temporaries) {
      if (t.category != MemoryCategory::activations || peak < t.first || t.last < peak) continue;
      layers[t.layer].activations += t.bytes;
    }
  }
  snapshot.step[MemoryCategory::activations] = arena - gradients;
  snapshot.step[MemoryCategory::gradients] += gradients;

  std::size_t parameters = 0;
  for (const auto& [name, layer] : layers) parameters += layer.parameters;
  for (auto& [name, layer] : layers) {
    layer.name = name;
    layer.optimizer = share_of(layer.parameters, parameters, snapshot.step[MemoryCategory::optimizer]);
    layer.gradients = share_of(layer.parameters, parameters, snapshot.step[MemoryCategory::gradients]);
    snapshot.layers.push_back(layer);
  }
  std::stable_sort(snapshot.layers.begin(), snapshot.layers.end(),
                   [](const MemoryLayer& a, const MemoryLayer& b) { return a.total() > b.total(); });
}

namespace {

std::size_t kilobytes_of(const char* key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::size_t number = 0;
    if (words >> name >> number && name == key) return number;
  }
  return 0;
}

}  // namespace
}  // namespace detail

MemorySnapshot take_memory_snapshot(const Engine& engine) {
  detail::Context& context = *engine.context();
  MemorySnapshot snapshot;
  const std::lock_guard lock(context.mutex);
  snapshot.device = context.runtime->device(0).info().name;
  snapshot.report = context.runtime->memory();
  snapshot.process_bytes = detail::kilobytes_of("VmRSS:") * 1024;
  snapshot.process_peak_bytes = detail::kilobytes_of("VmHWM:") * 1024;
  context.evaluator->fill(snapshot);
  if (const auto log = context.runtime->memory_log()) log->fill(snapshot);
  return snapshot;
}

MemoryHistory::MemoryHistory(Engine& engine, const MemoryHistoryOptions& options)
    : engine_(&engine), log_(std::make_shared<detail::MemoryLog>(options.most_events)) {
  if (!engine.context()->runtime->set_memory_log(log_))
    throw ArgumentError("MemoryHistory: the engine has one already");
}

MemoryHistory::~MemoryHistory() { engine_->context()->runtime->set_memory_log(nullptr); }

}  // namespace samebytes
