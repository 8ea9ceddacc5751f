// A network as a text table: each layer with its output shape and number of parameters.
#pragma once

#include <string>
#include <vector>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

// Follows an input of this shape ([N, H, W, C], [N, features], ...) through the module; builds a graph and runs no
// kernel. The random counter, the mode and running statistics stay as they are. Throws ArgumentError if a layer does
// not fit.
std::string summary(Module& module, const Shape& input, Dtype dtype = f32);

// One input of a module: summary(net, {{.shape = {8, 32, 64}}, {.shape = {8}, .dtype = i32}}).
struct InputShape {
  Shape shape = {};
  Dtype dtype = f32;
};
std::string summary(Module& module, const std::vector<InputShape>& inputs);

// Makes the first call fast: builds the kernels and the plan of the module's forward pass in its present mode for
// inputs like these, by running it once on zeros and waiting; a frozen one (inference.h) until it repeats its graph. No
// gradient is built and no running statistics move; a layer that draws random numbers, dropout in training mode,
// advances the engine's counter. Throws as forward() does.
void warm(Module& module, const std::vector<InputShape>& inputs);

}  // namespace samebytes::nn
