// Rematerialisation: pointwise values that are read early and again much later (in a training step by the forward pass
// and by the gradient) are computed twice instead of being kept in between. There are two ways: a later fused kernel
// that reads the value's own operands anyway computes it in registers, or a separate launch rewrites it before its
// first late reader. Both evaluate the same formula as the first time, so only memory changes.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "plan/release.h"

namespace samebytes::detail {

struct RematerialiseLimits {
  double most_cost = 0;                           // of separate launches, as a share of the cost of the whole list
  std::size_t target = 0;                         // stop at this many bytes of live temporaries; 0: as few as possible
  std::function<bool(const Node&)> may_be = {};   // what may be recomputed; empty: everything that can be
  std::size_t smallest = std::size_t{256} << 10;  // bytes of a value that is worth a separate launch
  std::vector<GradientRelease> releases = {};     // lifetimes of the parts of flat gradients; others live to the end
};

struct RematerialiseReport {
  std::size_t peak_before = 0,
              peak_after = 0;  // bytes of temporaries that live at once, without small flat gradients
  double cost = 0;             // of the added launches, as a share of the list's cost
};

// Adds the recomputed values to `fusion`. Results and order of all other launches stay as they are.
RematerialiseReport rematerialise(const GraphList& list, FuseResult& fusion, const RematerialiseLimits& limits);

// A temporary that is stored from the launches of one place to those of another.
struct StoredValue {
  int place = 0;
  std::size_t bytes = 0;
  int first = 0, last = 0;
  bool is_parameters_gradient = false;  // lies in a flat gradient, in the arena
};
// Rematerialises, and returns what is stored then.
std::vector<StoredValue> stored_values(const GraphList& list, FuseResult& fusion, const RematerialiseLimits& limits);

}  // namespace samebytes::detail
