// The kernels of ops, made once all launches are known: the programs that they come from are built at once, by several
// processes where the engine has compilers (runtime/compilers.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/node.h"
#include "placement/fallback.h"
#include "plan/plan.h"

namespace samebytes::detail {

// What a launch of an op needs: an entry of the .cl files or, with a source, of a text of the op's own.
struct OpKernel {
  std::size_t launch;
  std::string what, entry, source;
  std::vector<int> places;  // of the nodes that it computes
};

// Gives the launches their kernels. Throws like KernelMaker.
void make_op_kernels(std::vector<PlanLaunch>& launches, const std::vector<OpKernel>& wanted, Runtime& runtime,
                     KernelMaker& kernels);

// Before the first evaluation with new cells: builds, at once, the programs that the nodes' ops probably need, by their
// names and the shapes of the cells. A wrong guess costs only time of cores that would be idle.
void build_ahead(const std::vector<NodePtr>& nodes, Runtime& runtime);
// Whether a kernel of it may not be compiled yet, and a compiler could do it.
bool needs_compiling(const Plan& plan);
// Before a plan's first run, whose arguments are set: compiles, at once, those of its kernels that the driver does not
// have, on devices with compilers. What they leave, the driver compiles at the launch.
void compile_ahead(Plan& plan, Runtime& runtime);

}  // namespace samebytes::detail
