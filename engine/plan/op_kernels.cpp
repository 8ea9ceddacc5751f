#include "plan/op_kernels.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/op.h"
#include "runtime/kernel_cache.h"
#include "runtime/runtime.h"

namespace samebytes::detail {
namespace {

// PoCL compiles a kernel once for its group and once more for grids as wide as this, so that one group stands for any
// grid below.
constexpr std::size_t kWideGrid = 65'535;

constexpr int kRankOfFilters = 3;  // and above: cells of so many axes are mostly filters of convolutions

bool is_wide(const Geometry& geometry) {
  for (int d = 0; d < geometry.dimensions; ++d)
    if (geometry.groups[d] * geometry.local[d] >= kWideGrid) return true;
  return false;
}

// What the driver was given.
std::shared_ptr<const ProgramSource> source_of(const Kernel& kernel, const Key128& key, const Device& device) {
  return on_device(device.info().name, [&] {
    const auto program = kernel.handle().getInfo<CL_KERNEL_PROGRAM>();
    return std::make_shared<const ProgramSource>(
        ProgramSource{.text = program.getInfo<CL_PROGRAM_SOURCE>(),
                      .options = program.getBuildInfo<CL_PROGRAM_BUILD_OPTIONS>(device.handle()),
                      .key = key});
  });
}

}  // namespace

void build_ahead(const std::vector<NodePtr>& nodes, Runtime& runtime) {
  std::map<int, std::set<std::pair<Dtype, std::string>>> entries;  // by device
  for (const NodePtr& node : nodes) {
    if (runtime.device(node->device).compilers() == nullptr) continue;
    auto& of_device = entries[node->device];
    of_device.emplace(Dtype::f32, "fill");  // of the new cells
    const Dtype dtype = node->inputs.empty() ? node->dtype : node->inputs[0].node->dtype;
    if (dtype != Dtype::f32 && dtype != Dtype::f64 && !is_16_bit(dtype)) continue;
    if (node->op && !node->has_value && !node->is_view) of_device.emplace(dtype, node->op->name());
    if (node->cell && node->shape.rank() >= kRankOfFilters) of_device.emplace(dtype, "conv");
  }
  for (const auto& [d, of_device] : entries) {
    Device& device = runtime.device(d);
    runtime.compile(device, device.kernels().programs_to_build(of_device));
  }
}

void make_op_kernels(std::vector<PlanLaunch>& launches, const std::vector<OpKernel>& wanted, Runtime& runtime,
                     KernelMaker& kernels) {
  std::map<int, std::set<std::pair<Dtype, std::string>>> entries;  // by device
  for (const OpKernel& each : wanted)
    if (const PlanLaunch& launch = launches[each.launch];
        each.source.empty() && runtime.device(launch.device).compilers() != nullptr)
      entries[launch.device].emplace(launch.kernel()->real, each.entry);
  for (const auto& [d, of_device] : entries) {
    Device& device = runtime.device(d);
    runtime.compile(device, device.kernels().programs_to_build(of_device));
  }
  for (const OpKernel& each : wanted) {
    PlanLaunch& launch = launches[each.launch];
    Device& device = runtime.device(launch.device);
    const Dtype real = launch.kernel()->real;
    const auto build = [&] {
      return each.source.empty() ? device.kernels().make_kernel(real, each.entry)
                                 : device.kernels().make_generated(real, each.source, each.entry, each.what);
    };
    const KernelMaker::Request request{.op = each.what,
                                       .places = each.places,
                                       .device = device,
                                       .real = real,
                                       .geometry = launch.kernel()->geometry,
                                       .text = each.entry + each.source};
    launch.kernel()->kernel = kernels.make(request, build, &launch.kernel_key);
  }
}

bool needs_compiling(const Plan& plan) {
  return std::any_of(plan.launches.begin(), plan.launches.end(), [](const PlanLaunch& launch) {
    const PlanKernel* const work = launch.kernel();
    return work && work->kernel && work->kernel->is_noting();
  });
}

void compile_ahead(Plan& plan, Runtime& runtime) {
  struct Work {
    std::vector<CompileJob> jobs;
    std::map<std::uint64_t, std::shared_ptr<const ProgramSource>> sources;  // by the first half of their keys
    std::set<std::string> seen;
  };
  std::map<int, Work> work;  // by device
  for (PlanLaunch& launch : plan.launches) {
    PlanKernel* const kernel = launch.kernel();
    const std::unique_ptr<Kernel::Noted> noted = kernel && kernel->kernel ? kernel->kernel->take_noted() : nullptr;
    if (!noted) continue;
    Device& device = runtime.device(launch.device);
    const Geometry& geometry = kernel->geometry;
    const std::string& entry = kernel->kernel->entry();
    std::string form = std::to_string(noted->program.a) + " " + entry + (is_wide(geometry) ? " wide" : "");
    for (const std::size_t local : geometry.local) form += " " + std::to_string(local);
    Work& of_device = work[launch.device];
    if (!of_device.seen.insert(form).second ||
        !device.kernel_cache()->lacks_kernel(noted->program, entry, geometry.local))
      continue;
    auto& source = of_device.sources[noted->program.a];
    if (!source) source = source_of(*kernel->kernel, noted->program, device);
    CompileJob job{.source = source, .entry = entry, .dimensions = geometry.dimensions};
    std::copy(std::begin(geometry.local), std::end(geometry.local), std::begin(job.local));
    if (is_wide(geometry)) std::copy(std::begin(geometry.groups), std::end(geometry.groups), std::begin(job.groups));
    job.arguments = std::move(noted->arguments);
    of_device.jobs.push_back(std::move(job));
  }
  for (auto& [d, of_device] : work) {
    // Kernels of many arguments take longest; what begins last leaves the other processes without work.
    std::stable_sort(of_device.jobs.begin(), of_device.jobs.end(),
                     [](const CompileJob& a, const CompileJob& b) { return a.arguments.size() > b.arguments.size(); });
    runtime.compile(runtime.device(d), of_device.jobs);
  }
}

}  // namespace samebytes::detail
