// The generated kernels of a plan: all of one compute type and device are one program, and equal bodies one kernel.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "placement/fallback.h"
#include "plan/plan.h"

namespace samebytes::detail {

struct Generated {
  std::size_t launch;
  std::string body;         // with @NAME@ for its name
  std::vector<int> places;  // of the nodes that it is for
};

// Gives the launches their kernels, but those that the host does. Where a program does not build, each of its kernels
// is built by itself, so that the one to blame is known.
void build_generated(Plan& plan, const std::vector<Generated>& generated, Runtime& runtime, KernelMaker& kernels);

}  // namespace samebytes::detail
