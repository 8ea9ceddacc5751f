// OpTraits: the facts about an op that autograd and the passes of the planner go by. An op hands them to the
// constructor of Op, once, and they never change; the passes ask for nothing else, so that none of them knows any op by
// its class or name. What is said of no input and no result needs no line: the defaults are those of an op that reads
// dense rows and writes results of its own.
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

// Results that lie in the places of inputs: result `result` in that of input `input`, the next one in that of the next.
struct ResultsInInputs {
  int result = std::numeric_limits<int>::max();
  int input = 0;
  // The input of result k, -1 for none.
  constexpr int operator()(int k) const { return k >= result ? input + (k - result) : -1; }
};

// Several arrays side by side in one flat one, which the planner lets their producers write into directly.
struct PackLayout {
  std::vector<std::int64_t> offsets;  // of each array, in elements, ascending
  std::int64_t n = 0;                 // elements in all
  bool is_released = false;  // what reads it should run piece by piece, also where it is small (plan/release.h)
};

// What a pointwise op is to a launch before it that takes an epilogue (plan/epilogue.h).
enum class EpilogueStep : std::uint8_t {
  none,
  sum,   // a + b of one shape
  relu,  // relu(a)
  gate,  // a where b > 0, else 0
};

struct OpTraits {
  // Inputs that are taken with strides (Launch::strides). The planner makes dense copies of views for all others.
  InputSet takes_strides = {};
  // Inputs that only carry state: their version is not checked and no gradient flows to them.
  InputSet is_state = {};
  // Inputs in which the results are piecewise constant, or to which the op says that nothing flows: gradient() is not
  // asked for theirs. An input that is neither this nor state, floating and wanted gets a gradient or an error.
  InputSet is_flat = {};
  // Results whose storage is that of an input: a cell, or a value that dies here.
  ResultsInInputs in_place = {};
  // Results that may lie in the place of an input where nothing reads it later: the op's last launch reads each of the
  // input's elements before it writes the same element, and none of it afterwards; it alone writes the result.
  ResultsInInputs may_overwrite = {};

  // A pointwise op: the value of one element, in the words of ops/pointwise.h. The planner writes its kernel and fuses
  // it with its neighbours; launch() is never called. Empty: the op has launches of its own. A text that lives as long
  // as the program.
  std::string_view expression = {};
  EpilogueStep epilogue_step = EpilogueStep::none;
  bool is_copy = false;  // of its input, which may be used in its place where nobody can tell
  // Writes the whole of the cell that its result lies in, whatever was there before: it runs after all readers of the
  // old value. A pointwise one takes input 1 as it is.
  bool updates_cell = false;
  // Not null: the inputs, but for the cell that updates_cell speaks of, are laid side by side. The planner does it.
  std::shared_ptr<const PackLayout> pack = nullptr;

  bool cuts_gradient =
      false;               // the result counts as a constant: a gradient by what is behind it is a mistake, not zero
  bool runs_late = false;  // does best just before its first reader: makes something large of what is kept anyway
  bool takes_epilogue = false;  // the launch adds Launch::epilogue() to its one result as it stores it
  bool takes_gate = false;      // ... which may have a gate

  bool is_pointwise() const { return !expression.empty(); }
  bool is_pointwise_value() const { return is_pointwise() && !updates_cell; }
  bool is_pointwise_update() const { return is_pointwise() && updates_cell; }
};

}  // namespace samebytes::detail
