// Rematerialisation: pointwise values that are read early and again much later - in a training step by the forward pass
// and by the gradient - are computed twice instead of being kept in between. A value comes back in one of two ways: a
// later fused kernel that reads the value's own operands anyway computes it in registers, or a launch of its own writes
// it anew before its first late reader. Both evaluate the same formula as the first time, so nothing changes but
// memory.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "plan/release.h"

namespace samebytes::detail {

struct RematerialiseLimits {
  double most_cost = 0;                           // of launches of their own, as a share of the cost of the whole list
  std::size_t target = 0;                         // bytes of living temporaries at which it stops; 0: as few as it can
  std::function<bool(const Node&)> may_be = {};   // what may be recomputed; empty: everything that can
  std::size_t smallest = std::size_t{256} << 10;  // bytes of a value that is worth a launch of its own
  std::vector<GradientRelease> releases = {};     // how long the parts of flat gradients live; others live to the end
};

struct RematerialiseReport {
  std::size_t peak_before = 0,
              peak_after = 0;  // bytes of temporaries that live at once, small flat gradients not counted
  double cost = 0;             // share of the list's cost, of the launches that came on top
};

// Adds to `fusion` what is computed again. Results and order of all other launches stay as they are.
RematerialiseReport rematerialise(const GraphList& list, FuseResult& fusion, const RematerialiseLimits& limits);

// A temporary that is there from the launches of one place to those of another.
struct StoredValue {
  int place = 0;
  std::size_t bytes = 0;
  int first = 0, last = 0;
  bool is_parameters_gradient = false;  // lies in a flat gradient, in the arena
};
// The same, and what is stored then.
std::vector<StoredValue> stored_values(const GraphList& list, FuseResult& fusion, const RematerialiseLimits& limits);

}  // namespace samebytes::detail
