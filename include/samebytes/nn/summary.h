// A network as a text table: each layer with its output shape and number of parameters.
#pragma once

#include <string>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

// Follows an input of this shape ([N, H, W, C], [N, features], ...) through the module; builds a graph and runs no
// kernel. The random counter, the mode and running statistics stay as they are. Throws ArgumentError if a layer does
// not fit.
std::string summary(Module& module, const Shape& input, Dtype dtype = f32);

}  // namespace samebytes::nn
