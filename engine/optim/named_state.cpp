#include "samebytes/optim/named_state.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

// A parameter's part of a cell of the state.
struct Place {
  std::size_t cell, member;  // of state(), and of the arena's parameters
};

std::size_t arena_of(const StateArray& cell) { return static_cast<std::size_t>(std::stoul(cell.name)); }

// The parts of `cells` by name.
std::map<std::string, Place> places_of(const Optimizer& optimizer, const std::vector<StateArray>& cells,
                                       const std::vector<StateArray>& parameters) {
  std::unordered_map<const void*, std::string> names;
  for (const StateArray& entry : parameters) names.emplace(entry.array.node().get(), entry.name);
  std::map<std::string, Place> places;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const ParameterArena& arena = optimizer.arenas()[arena_of(cells[c])];
    const std::string kind = cells[c].name.substr(cells[c].name.find('.'));
    if (optimizer.is_sharded() || cells[c].array.size() != arena.size())
      throw ArgumentError("state by name: " + cells[c].name + " has " + std::to_string(cells[c].array.size()) +
                          " values for " + std::to_string(arena.size()) +
                          " of the parameters; only a state with one value for each can be named");
    for (std::size_t i = 0; i < arena.parameters().size(); ++i) {
      const auto name = names.find(arena.parameters()[i].node().get());
      if (name == names.end())
        throw ArgumentError("state by name: parameter " + std::to_string(i) + " of the optimizer, " +
                            cell_name(arena.parameters()[i]) +
                            ", is not among the named ones; pass named_parameters() "
                            "of the module that it trains");
      places.emplace(name->second + kind, Place{c, i});
    }
  }
  return places;
}

Array part(const Optimizer& optimizer, const StateArray& cell, std::size_t member) {
  const ParameterArena& arena = optimizer.arenas()[arena_of(cell)];
  const Shape& shape = arena.parameters()[member].shape();
  const std::int64_t begin = arena.offsets()[member];
  return reshape(slice(cell.array, 0, begin, begin + shape.size()), shape);
}

}  // namespace

std::vector<StateArray> state_by_name(const Optimizer& optimizer, const std::vector<StateArray>& parameters) {
  const std::vector<StateArray> cells = optimizer.state();
  std::vector<StateArray> result;
  for (const auto& [name, place] : places_of(optimizer, cells, parameters))
    result.push_back({name, part(optimizer, cells[place.cell], place.member)});
  return result;
}

void load_state_by_name(Optimizer& optimizer, const std::vector<StateArray>& parameters,
                        const std::vector<StateArray>& state, std::optional<std::int64_t> steps) {
  const std::vector<StateArray> cells = optimizer.state();
  const std::map<std::string, Place> places = places_of(optimizer, cells, parameters);
  std::vector<std::vector<Array>> parts(cells.size());
  for (const StateArray& entry : state) {
    const auto found = places.find(entry.name);
    if (found == places.end())
      throw ArgumentError("state by name: the optimizer has no " + entry.name +
                          (places.empty() ? std::string() : "; it has " + places.begin()->first + " among others"));
    const StateArray& cell = cells[found->second.cell];
    const ParameterArena& arena = optimizer.arenas()[arena_of(cell)];
    const Shape& shape = arena.parameters()[found->second.member].shape();
    if (!entry.array.defined() || !(entry.array.shape() == shape))
      throw ArgumentError(
          "state by name: " + entry.name + " must be " + shape.to_string() + ", as its parameter is, " +
          (entry.array.defined() ? "it is " + entry.array.shape().to_string() : "it is an empty handle"));
    std::vector<Array>& members = parts[found->second.cell];
    members.resize(arena.parameters().size());
    members[found->second.member] = astype(entry.array, cell.array.dtype());
  }
  std::vector<Array> updates;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (parts[c].empty()) continue;
    const ParameterArena& arena = optimizer.arenas()[arena_of(cells[c])];
    for (std::size_t i = 0; i < parts[c].size(); ++i)
      if (!parts[c][i].defined()) parts[c][i] = part(optimizer, cells[c], i);
    updates.push_back(update(cells[c].array, pack(parts[c], arena.offsets(), arena.size())));
  }
  eval(updates);
  optimizer.set_step_count(steps.value_or(std::max<std::int64_t>(optimizer.step_count(), state.empty() ? 0 : 1)));
}

}  // namespace samebytes::optim
