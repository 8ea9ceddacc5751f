#include "plan/generated.h"

#include <map>

namespace samebytes::detail {
namespace {

std::string named(const std::string& body, const std::string& name) {
  std::string text = body;
  return text.replace(text.find("@NAME@"), 6, name);
}

void build_program(Plan& plan, const std::vector<const Generated*>& kernels_of_it, Device& device, Dtype real,
                   KernelMaker& kernels) {
  std::map<std::string, std::string> names;  // by body
  std::string text;
  for (const Generated* g : kernels_of_it) {
    const auto [it, is_new] = names.emplace(g->body, "fused_" + std::to_string(names.size()));
    if (is_new) text += named(g->body, it->second);
  }
  bool are_one = true;
  for (const Generated* g : kernels_of_it) {
    PlanLaunch& launch = plan.launches[g->launch];
    const std::string& name = names.at(g->body);
    const auto build = [&] {
      try {
        if (are_one) return device.kernels().make_generated(real, text, name, "fused kernels of a plan");
      } catch (const BuildError&) {
        are_one = false;
      }
      return device.kernels().make_generated(real, named(g->body, name), name, "fused kernel of " + launch.what);
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
