// What an optimizer, an average of weights or a schedule remembers between steps, as names and values that a file can
// hold: all of it in one place, so that a run can be saved and go on.
#pragma once

#include <string>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::optim {

// A flat cell, to be read with host() and restored with assign().
struct StateArray {
  std::string name;  // "0.moment1": number of the arena and what it is
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

// The values of `from` into the cells of `to`, by name. Throws ArgumentError, naming `owner`, where a name is missing
// or too many, or a size or dtype differs; nothing is changed then. A cell whose value is itself is left as it is.
void load_arrays(const char* owner, const std::vector<StateArray>& to, const std::vector<StateArray>& from);
// Throws ArgumentError where there is no number of that name.
double number_of(const char* owner, const StateDict& state, const std::string& name);

}  // namespace samebytes::optim
