// 3x3 convolutions of stride 1 by minimal filtering: a tile of 2 x 4 outputs costs 24 multiplications per pair of
// channels instead of 72 (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, Fast
// algorithms for convolutional neural networks, 2016). conv.cpp asks here before it launches its direct kernels;
// docs/decisions/winograd.md says where it pays and how exact it is.
#pragma once

#include "graph/launch.h"
#include "ops/conv.h"
#include "ops/conv_geometry.h"

namespace samebytes::detail {

enum class ConvPass : std::uint8_t { forward, input, filter };

// SAMEBYTES_CONV: automatic where it is not set; throws ArgumentError for an unknown word.
ConvAlgorithm conv_algorithm_asked_for();

// Whether a pass goes by minimal filtering: what the attributes or else SAMEBYTES_CONV ask for, where the kernels can;
// else what the tuner's choice says, on shapes where it wins, for values that are computed in f32.
bool is_winograd(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype dtype);

// The forward pass, or transposed the input gradient, of src and weight into the node's result, with its epilogue.
void launch_winograd(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias, bool transposed);

// The gradient for the weight, of the node's inputs src and dy.
void launch_winograd_filter(Launch& run, const ConvGeometry& g);

}  // namespace samebytes::detail
