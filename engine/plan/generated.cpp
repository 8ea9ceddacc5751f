#include "plan/generated.h"

#include <set>
#include <string>
#include <vector>

namespace samebytes::detail {
namespace {

void build_program(Plan& plan, const std::vector<const Generated*>& kernels_of_it, Device& device, Dtype real,
                   KernelMaker& kernels) {
  std::set<std::string> bodies;
  for (const Generated* g : kernels_of_it) bodies.insert(g->body);
  const auto placed = device.kernels().place(real, bodies);
  bool are_one = true;
  for (const Generated* g : kernels_of_it) {
    PlanLaunch& launch = plan.launches[g->launch];
    const auto build = [&] {
      try {
        const auto& at = placed.at(g->body);
        if (are_one) return device.kernels().make_generated(real, *at.text, at.entry, kFusedProgram);
      } catch (const BuildError&) {
        are_one = false;
      }
      return device.kernels().make_fused(real, g->body, "fused kernel of " + launch.what);
    };
    const KernelMaker::Request request{.op = launch.what,
                                       .places = g->places,
                                       .device = device,
                                       .real = real,
                                       .geometry = launch.kernel()->geometry,
                                       .text = g->body};
    launch.kernel()->kernel = kernels.make(request, build, &launch.kernel_key);
  }
}

}  // namespace

void build_generated(Plan& plan, const std::vector<Generated>& generated, Runtime& runtime, KernelMaker& kernels) {
  for (int d = 0; d < runtime.device_count(); ++d)
    for (const Dtype real : {Dtype::f32, Dtype::f64}) {
      std::vector<const Generated*> of_program;
      for (const Generated& g : generated) {
        const PlanLaunch& launch = plan.launches[g.launch];
        const PlanKernel* const work = launch.kernel();  // null: the host does it
        if (work && work->real == real && launch.device == d) of_program.push_back(&g);
      }
      if (!of_program.empty()) build_program(plan, of_program, runtime.device(d), real, kernels);
    }
}

}  // namespace samebytes::detail
