// OpTraits: the facts about an op that autograd and the planner's passes rely on. An op hands them to the constructor
// of Op once, and they never change; the passes ask for nothing else, so that none of them knows an op by its class or
// name. An op states only what differs from the defaults: dense inputs, and results with their own storage.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

namespace samebytes::detail {

// A set of inputs of an op, by their numbers.
class InputSet {
 public:
  constexpr InputSet() = default;                          // none
  constexpr InputSet(std::initializer_list<int> inputs) {  // each below 64
    for (const int input : inputs) bits_ |= std::uint64_t{1} << input;
  }
  static constexpr InputSet all() { return from(0); }
  static constexpr InputSet from(int first) { return InputSet(0, first); }
  static constexpr InputSet below(int end) { return InputSet((std::uint64_t{1} << end) - 1, kNever); }
  static constexpr InputSet of_bits(std::uint64_t bits) { return InputSet(bits, kNever); }
  constexpr InputSet with(int input) const { return InputSet(bits_ | std::uint64_t{1} << input, from_); }

  constexpr bool operator()(int input) const { return input >= from_ || (input < 64 && (bits_ >> input & 1) != 0); }

 private:
  static constexpr int kNever = std::numeric_limits<int>::max();
  constexpr InputSet(std::uint64_t bits, int from) : bits_(bits), from_(from) {}
  std::uint64_t bits_ = 0;
  int from_ = kNever;
};

// Results that lie in the places of inputs: result `result` in input `input`, the next result in the next input, and so
// on.
struct ResultsInInputs {
  int result = std::numeric_limits<int>::max();
  int input = 0;
  // The input that holds result k, -1 for none.
  constexpr int operator()(int k) const { return k >= result ? input + (k - result) : -1; }
};

// Several arrays side by side in one flat array; the planner lets their producers write into it directly.
struct PackLayout {
  std::vector<std::int64_t> offsets;  // of each array, in elements, ascending
  std::int64_t n = 0;                 // total number of elements
  bool is_released = false;           // run its readers piece by piece even if it is small (plan/release.h)
};

// What a pointwise op can become in the epilogue of an earlier launch (plan/epilogue.h).
enum class EpilogueStep : std::uint8_t {
  none,
  sum,         // a + b of one shape
  relu,        // relu(a)
  hard_swish,  // hard_swish(a)
  relu6,       // relu6(a)
  gate,        // a where b > 0, else 0
};

struct OpTraits {
  // Inputs that the op reads with strides (Launch::strides). For all others the planner makes dense copies of views.
  InputSet takes_strides = {};
  // Inputs that only carry state: autograd does not check their version and no gradient flows to them.
  InputSet is_state = {};
  // Inputs in which the results are piecewise constant, or that the op declares to have no gradient: gradient() is not
  // asked for them. Every other floating input gets a gradient if wanted, or an error, unless it is state.
  InputSet is_flat = {};
  // Results stored in the storage of an input: a cell, or a value that dies here.
  ResultsInInputs in_place = {};
  // Results that may overwrite an input that nothing reads later: the op's last launch reads each of the input's
  // elements before it writes the same element, and none of it afterwards; no other launch writes the result.
  ResultsInInputs may_overwrite = {};

  // A pointwise op: the expression for one element, in the terms of ops/pointwise.h. The planner writes its kernel and
  // fuses it with its neighbours; launch() is never called. Empty: the op has its own launches. The text must live as
  // long as the program.
  std::string_view expression = {};
  EpilogueStep epilogue_step = EpilogueStep::none;
  bool is_copy = false;  // copies its input, which may replace it if nobody can tell
  // Writes the whole cell that holds its result, whatever was there before: it runs after all readers of the old value.
  // A pointwise one takes input 1 unchanged.
  bool updates_cell = false;
  // Not null: the planner lays the inputs side by side, except for the cell of updates_cell.
  std::shared_ptr<const PackLayout> pack = nullptr;

  bool cuts_gradient =
      false;               // the result counts as a constant: a gradient by what is behind it is a mistake, not zero
  bool runs_late = false;  // best run just before its first reader: makes something large of what is kept anyway
  bool takes_epilogue = false;    // the launch applies Launch::epilogue() to its one result as it stores it
  bool takes_gate = false;        // ... which may contain a gate
  bool takes_activation = false;  // ... or end with a hard swish or a ReLU6

  bool is_pointwise() const { return !expression.empty(); }
  bool is_pointwise_value() const { return is_pointwise() && !updates_cell; }
  bool is_pointwise_update() const { return is_pointwise() && updates_cell; }
};

}  // namespace samebytes::detail
