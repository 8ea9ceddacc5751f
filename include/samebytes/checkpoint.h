// Activation checkpointing: the intermediate values of a part of the forward pass are not kept, but recomputed when the
// backward pass reaches the part (T. Chen et al., "Training deep nets with sublinear memory cost", 2016).
//   Array y = checkpoint([&](const Array& x) { return block(x); }, x);
// Values and gradients are bit for bit those without it: the same ops run again with the same random counters, so
// dropout draws the same mask. Updates of cells (running statistics of a batch norm) are not repeated; their results
// are kept, as are all arrays that f reads from outside and those of its results that others read. f is called once.
// Checkpoints may be nested. Without a backward pass a checkpoint has no effect. Second-order gradients pass through
// both computations and are equal up to rounding.
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

// Everything that this thread builds while a scope lives is one checkpointed part, a segment. Scopes nest like blocks.
class CheckpointScope {
 public:
  CheckpointScope();
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

 private:
  std::shared_ptr<const detail::Segment> outer_;
};

// Calls f(inputs...) checkpointed, with any number of inputs and any result (an Array, a vector or tuple of them).
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

// Applies functions in `segments` parts of equal length, all but the last one checkpointed, as in PyTorch: the backward
// pass begins with the last part. Throws ArgumentError unless 1 <= segments <= the number of functions.
Array checkpoint_sequential(std::span<const std::function<Array(const Array&)>> functions, int segments,
                            const Array& x);

// How to checkpoint a stack of equal blocks: nn::Module::gradient_checkpointing, --gradient-checkpointing.
class Checkpointing {
 public:
  static Checkpointing off() { return {}; }
  // A segment is this many consecutive blocks. Throws ArgumentError for less than 1.
  static Checkpointing every(std::int64_t blocks);
  // In a stack of L blocks, a segment is sqrt(L) blocks, rounded to the nearest: the inputs of sqrt(L) segments and the
  // values of sqrt(L) blocks are in memory at a time.
  static Checkpointing sqrt();
  // "off", "block" (each block is a segment), "sqrt", or the number of blocks in a segment. Throws ArgumentError for
  // other text.
  static Checkpointing parse(std::string_view text);

  bool is_on() const { return blocks_ != 0; }
  // Blocks in a segment of a stack of `blocks` blocks; 0: no segments.
  std::int64_t length(std::int64_t blocks) const;
  std::string to_text() const;  // in the form that parse() takes
  bool operator==(const Checkpointing&) const = default;

 private:
  std::int64_t blocks_ = 0;  // 0: off; -1: the square root
};

}  // namespace samebytes
