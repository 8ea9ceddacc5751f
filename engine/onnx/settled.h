// What a graph becomes once its constants are known (those of Constant nodes, and what follows from them), so that it
// runs in fewer and cheaper steps. Parameters are not touched: they may change.
#pragma once

#include <map>
#include <set>
#include <string>

#include "onnx/item.h"
#include "onnx/proto.h"

namespace samebytes::onnx {

using Constants = std::map<std::string, Item>;

// Null for a name that none has.
const Item* constant_of(const Constants& constants, const std::string& name);

// A QuantizeLinear and the DequantizeLinear behind it become one node of the domain "samebytes", which rounds on the
// device. A Conv, Gemm or MatMul that reads such a node and a DequantizeLinear of a constant int8 weight multiplies
// integers: int8_conv2d() and its like. Packed weights are constants, taken off `bytes_left` as far as it goes. Returns
// how many products and convolutions there are.
int fuse_quantised(::onnx::GraphProto& graph, Constants& constants, std::size_t& bytes_left);

// x * clip(x + 3, 0, 6) / 6, in four nodes, becomes a HardSwish. Returns how many there are.
int fuse_hard_swish(::onnx::GraphProto& graph, const Constants& constants);

// A norm over the last axis, in seven to nine nodes, becomes a LayerNormalization where its scale and shift are there:
// `sizes` has those of the parameters. Returns how many there are.
int fuse_layer_norms(::onnx::GraphProto& graph, const Constants& constants, const std::map<std::string, Sizes>& sizes);

// A Conv of constants takes in the norm, and the sums and products with constants, that alone read it. Returns how many
// nodes are gone.
int fold_into_filters(::onnx::GraphProto& graph, Constants& constants);

// Filters that convolutions alone read are turned to the library's order of axes, once. Returns how many there are.
int turn_filters(const ::onnx::GraphProto& graph, Constants& constants);

// Constants that neither the graph reads nor `others` name go.
void drop_unread(const ::onnx::GraphProto& graph, const std::set<std::string>& others, Constants& constants);

}  // namespace samebytes::onnx
