// The state of optimizers, weight averages and schedules as named values that a file can hold, so that a run can be
// saved and resumed.
#pragma once

#include <string>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::optim {

// A flat cell; read it with host() and restore it with assign().
struct StateArray {
  std::string name;  // "0.moment1": index of the arena and kind
  Array array;
};

struct StateNumber {
  std::string name;  // "step_count"
  double value;      // counts are whole numbers below 2^53
};

struct StateDict {
  std::vector<StateArray> arrays;
  std::vector<StateNumber> numbers;
};

// Copies the values of `from` into the cells of `to`, by name. Throws ArgumentError, naming `owner` and without any
// change, for a missing or unexpected name and for a different size or dtype. Skips a cell that is its own source.
void load_arrays(const char* owner, const std::vector<StateArray>& to, const std::vector<StateArray>& from);
// Throws ArgumentError if no number has that name.
double number_of(const char* owner, const StateDict& state, const std::string& name);

}  // namespace samebytes::optim
