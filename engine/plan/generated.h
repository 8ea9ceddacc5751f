// The generated kernels of a plan: one program per compute type and device; equal bodies share one kernel.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "placement/fallback.h"
#include "plan/plan.h"

namespace samebytes::detail {

struct Generated {
  std::size_t launch;
  std::string body;         // with @NAME@ as the kernel's name
  std::vector<int> places;  // of the nodes that it computes
};

// Gives the launches their kernels, except those that the host does. If a program does not build, builds each of its
// kernels separately to find the one to blame.
void build_generated(Plan& plan, const std::vector<Generated>& generated, Runtime& runtime, KernelMaker& kernels);

}  // namespace samebytes::detail
