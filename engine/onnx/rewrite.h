// What a graph becomes when it is read, so that it runs in fewer steps.
#pragma once

#include "onnx/proto.h"

namespace samebytes::onnx {

// Attention in single nodes (a product, perhaps a scale and masks, a soft-max, a product) becomes one node of the
// domain "samebytes", which keeps no scores where the library's attention keeps none. Values between them that anything
// else reads leave the nodes as they are. Returns how many there are.
int fuse_attention(::onnx::GraphProto& graph, int opset);

// A Conv that a BatchNormalization alone reads becomes one node with it, of the domain "samebytes", so that nobody else
// holds the images between them and the norm can fold into the filter. Returns how many there are.
int fuse_norms(::onnx::GraphProto& graph);

}  // namespace samebytes::onnx
