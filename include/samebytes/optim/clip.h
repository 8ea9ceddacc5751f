// Gradient clipping, for the options of every optimizer and as free functions. Everything stays on the device.
#pragma once

#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::optim {

// The global norm of a step's gradients, on the device. A value that holds four bytes per array of gradients and may be
// read steps later.
class GradientNorm {
 public:
  GradientNorm() = default;  // none
  // Adds the nodes that compute the norm; nothing runs. Throws ArgumentError for an empty list.
  explicit GradientNorm(std::span<const Array> gradients);
  explicit operator bool() const { return !squares_.empty(); }
  const std::vector<Array>& squares() const { return squares_; }  // of each of the gradients, one element
  Array array() const;                                            // the norm, one element
  // Waits for the step. Not finite if the gradients are not. Throws ArgumentError if empty.
  double value() const;

 private:
  std::vector<Array> squares_;
};

// sqrt of the sum of all squares, one element. Throws ArgumentError for an empty list.
Array global_norm(std::span<const Array> gradients);
// All gradients times min(1, most / (global norm + 1e-6)) (R. Pascanu et al., "On the difficulty of training recurrent
// neural networks", 2013; the constant is PyTorch's). Throws ArgumentError unless most > 0.
std::vector<Array> clip_by_global_norm(std::span<const Array> gradients, double most);
// The same with a norm that the caller already has.
std::vector<Array> clip_by_global_norm(std::span<const Array> gradients, double most, const GradientNorm& norm);
// Clips each element to [-most, most]. Throws ArgumentError unless most > 0.
std::vector<Array> clip_by_value(std::span<const Array> gradients, double most);

}  // namespace samebytes::optim
