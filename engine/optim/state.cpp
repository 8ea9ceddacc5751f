#include "samebytes/optim/state.h"

#include <algorithm>

#include "samebytes/error.h"

namespace samebytes::optim {

void load_arrays(const char* owner, const std::vector<StateArray>& to, const std::vector<StateArray>& from) {
  std::vector<const Array*> values;
  for (const StateArray& entry : to) {
    const auto found =
        std::find_if(from.begin(), from.end(), [&](const auto& other) { return other.name == entry.name; });
    if (found == from.end()) throw ArgumentError(std::string(owner) + ": the state has no array " + entry.name);
    if (!found->array.defined() || found->array.size() != entry.array.size() ||
        found->array.dtype() != entry.array.dtype())
      throw ArgumentError(
          std::string(owner) + ": " + entry.name + " must be " + std::string(name_of(entry.array.dtype())) + " " +
          entry.array.shape().to_string() + ", the state has " +
          (found->array.defined() ? std::string(name_of(found->array.dtype())) + " " + found->array.shape().to_string()
                                  : std::string("an empty handle")));
    values.push_back(&found->array);
  }
  for (const StateArray& entry : from)
    if (std::none_of(to.begin(), to.end(), [&](const auto& other) { return other.name == entry.name; }))
      throw ArgumentError(std::string(owner) + ": the state has an array " + entry.name +
                          " that there is no place for");
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i].array.node() != values[i]->node()) assign(to[i].array, *values[i]);
}

double number_of(const char* owner, const StateDict& state, const std::string& name) {
  for (const StateNumber& number : state.numbers)
    if (number.name == name) return number.value;
  throw ArgumentError(std::string(owner) + ": the state has no number " + name);
}

}  // namespace samebytes::optim
