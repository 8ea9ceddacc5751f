// The state of an optimizer by the names of its parameters, for files of other programs, networks that have grown, and
// a look at single moments: "0.weight.momentum" has the shape of the parameter 0.weight. For optimizers whose state has
// an element for each element of a parameter (all but Adafactor) and that are not sharded; others throw ArgumentError.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

// Entries with a name and an array, such as module.named_parameters(), as a list.
template <class Entries>
std::vector<StateArray> named_arrays(const Entries& entries) {
  std::vector<StateArray> result;
  for (const auto& entry : entries) result.push_back({entry.name, entry.array});
  return result;
}

// `parameters`: module.named_parameters(). Kinds are those of Optimizer::state(): momentum, moment1, moment2, ... The
// values are views of the present state. Throws ArgumentError for a parameter of the optimizer without a name.
std::vector<StateArray> state_by_name(const Optimizer& optimizer, const std::vector<StateArray>& parameters);
template <class Entries>
std::vector<StateArray> state_by_name(const Optimizer& optimizer, const Entries& parameters) {
  return state_by_name(optimizer, named_arrays(parameters));
}

// Overwrites what `state` names and keeps the rest. A loaded moment counts from the next step on: `steps` are the steps
// that made it, for bias corrections and dampening; unset, the optimizer keeps its own number, at least 1. Throws
// ArgumentError for an unknown name and for a value of another shape; nothing is changed then.
void load_state_by_name(Optimizer& optimizer, const std::vector<StateArray>& parameters,
                        const std::vector<StateArray>& state, std::optional<std::int64_t> steps = {});
template <class Entries>
void load_state_by_name(Optimizer& optimizer, const Entries& parameters, const std::vector<StateArray>& state,
                        std::optional<std::int64_t> steps = {}) {
  load_state_by_name(optimizer, named_arrays(parameters), state, steps);
}

}  // namespace samebytes::optim
