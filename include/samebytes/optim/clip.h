// Clipping of gradients, as options of every optimizer and as free functions. Everything stays on the device.
#pragma once

#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::optim {

// sqrt of the sum of all squares, one element. Throws ArgumentError for an empty list.
Array global_norm(std::span<const Array> gradients);
// All gradients times min(1, most / (global norm + 1e-6)) (R. Pascanu et al., "On the difficulty of training recurrent
// neural networks", 2013; the constant is PyTorch's). Throws ArgumentError unless most > 0.
std::vector<Array> clip_by_global_norm(std::span<const Array> gradients, double most);
// Each element into [-most, most]. Throws ArgumentError unless most > 0.
std::vector<Array> clip_by_value(std::span<const Array> gradients, double most);

}  // namespace samebytes::optim
