// Activation checkpointing: what a part of the forward pass computes on its way is not kept for the backward pass but
// computed anew when that reaches the part (T. Chen et al., "Training deep nets with sublinear memory cost", 2016).
//   Array y = checkpoint([&](const Array& x) { return block(x); }, x);
// Values and gradients are bit for bit those without it: the same ops run once more with the same random counters, so
// dropout draws the same mask, and what overwrites a cell (running statistics of a batch norm) is not repeated; its
// results are kept, as are what f reads from outside, arguments or not, and what others read of its results. f is
// called once. Checkpoints may be nested. Where there is no backward pass a checkpoint is nothing. Gradients of
// gradients go through both computations and are equal to within rounding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "samebytes/array.h"

namespace samebytes {

namespace detail {
struct Segment;
}

// All that this thread builds while one lives is one checkpointed part, a segment. Scopes are nested as blocks are.
class CheckpointScope {
 public:
  CheckpointScope();
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

 private:
  std::shared_ptr<const detail::Segment> outer_;
};

// f(inputs...), checkpointed: any number of inputs and whatever f returns (an Array, a vector, a tuple of them).
template <class F, class First, class... Rest>
decltype(auto) checkpoint(F&& f, First&& first, Rest&&... rest) {
  const CheckpointScope scope;
  return std::invoke(std::forward<F>(f), std::forward<First>(first), std::forward<Rest>(rest)...);
}

// The same as a function to call later: checkpoint(f)(x, y).
template <class F>
auto checkpoint(F f) {
  return [f = std::move(f)](auto&&... inputs) mutable -> decltype(auto) {
    const CheckpointScope scope;
    return std::invoke(f, std::forward<decltype(inputs)>(inputs)...);
  };
}

// Functions one after the other in `segments` parts of equal length, all but the last part checkpointed, as PyTorch
// does: the backward pass begins with that one. Throws ArgumentError unless 1 <= segments <= the number of functions.
Array checkpoint_sequential(std::span<const std::function<Array(const Array&)>> functions, int segments,
                            const Array& x);

// How a stack of equal blocks is checkpointed: nn::Module::gradient_checkpointing, --gradient-checkpointing.
class Checkpointing {
 public:
  static Checkpointing off() { return {}; }
  // So many neighbouring blocks are a segment. Throws ArgumentError below 1.
  static Checkpointing every(std::int64_t blocks);
  // As many as the square root of their number, rounded to the nearest: of L blocks the inputs of sqrt(L) segments are
  // kept, and the values of sqrt(L) blocks are there at once.
  static Checkpointing sqrt();
  // "off", "block" (every block by itself), "sqrt" or the number of blocks of a segment. Throws ArgumentError.
  static Checkpointing parse(std::string_view text);

  bool is_on() const { return blocks_ != 0; }
  // Blocks of a segment in a stack of so many; 0: there are no segments.
  std::int64_t length(std::int64_t blocks) const;
  std::string to_text() const;  // what parse() takes
  bool operator==(const Checkpointing&) const = default;

 private:
  std::int64_t blocks_ = 0;  // 0: off; -1: the square root
};

}  // namespace samebytes
