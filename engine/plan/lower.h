// Lower: the fourth pass of planning. It turns groups, packs and ops into launches in running order, with the buffers
// that they read and write, and adds buffers for dense copies of views and for the ops' own temporaries. The launches
// have no kernels yet: op_kernels.h makes those of ops, generated.h those that the planner writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/launch.h"
#include "plan/generated.h"
#include "plan/group.h"
#include "plan/in_place.h"
#include "plan/op_kernels.h"
#include "plan/pack_parts.h"
#include "plan/place.h"
#include "plan/plan.h"

namespace samebytes::detail {

// A kernel argument that never changes; it is set once, when the kernel exists (bind.h).
struct ConstantArgument {
  std::size_t launch;
  int index;
  KernelArgument::Kind kind;
  std::int64_t integer;
  double real;
  std::vector<unsigned char> bytes = {};  // of a structure
};

struct Lowered {
  PlacedValues placed;
  std::vector<PlanLaunch> launches;
  std::vector<InPlacePair> pairs;  // in launch order
  std::vector<PackPiece> pieces;
  std::vector<OpKernel> op_kernels;
  std::vector<Generated> generated;
  std::vector<ConstantArgument> constants;
  std::size_t relayout_bytes = 0;

  void renumber(const std::vector<int>& number);  // after launches were inserted; an empty list changes nothing
};

// Throws whatever the ops' launch() throws; BuildError and Refused like KernelMaker.
Lowered lower(const GraphList& list, const Grouping& grouping, PlacedValues placed, Context& context,
              KernelMaker& kernels);
std::string describe(const Lowered& lowered);  // a line for explain()

}  // namespace samebytes::detail
