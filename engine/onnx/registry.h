// The operators that the importer knows: one table for each family, one function for each operator. Those of another
// domain than ONNX's own have it in front: "ai.onnx.ml.Binarizer".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/call.h"

namespace samebytes::onnx {

using Outputs = std::vector<Item>;
using Operator = Outputs (*)(const Call&);
using Registry = std::map<std::string, Operator>;

void add_elementwise(Registry& registry);
void add_integers(Registry& registry);
void add_shapes(Registry& registry);
void add_indexing(Registry& registry);
void add_reductions(Registry& registry);
void add_images(Registry& registry);
void add_pooling(Registry& registry);
void add_resizing(Registry& registry);
void add_grids(Registry& registry);
void add_norms(Registry& registry);
void add_recurrent(Registry& registry);
void add_trigonometry(Registry& registry);
void add_quantised(Registry& registry);
void add_scatter(Registry& registry);
void add_attention(Registry& registry);
void add_states(Registry& registry);
void add_signal(Registry& registry);
void add_detection(Registry& registry);
void add_sets(Registry& registry);
void add_random(Registry& registry);
void add_optimizers(Registry& registry);
void add_losses(Registry& registry);
void add_fused(Registry& registry);
void add_int8(Registry& registry);
void add_linear_algebra(Registry& registry);

const Registry& registry();

// Binary arithmetic, comparison and logic of integers and bools on the host, exact in their type.
Outputs integer_binary(const Call& call);

// a^b, element by element.
Array power_of(const Array& a, const Array& b);

}  // namespace samebytes::onnx
