// The projections of transformers: their initial weights, and their names in PyTorch and GPT-2.
#pragma once

#include <string>

#include "nn/initial.h"
#include "samebytes/nn/attention.h"

namespace samebytes::nn {

// Normal with this deviation, or, if it is 0, uniform in +-bound.
inline Parameter weight_cell(const Shape& shape, double deviation, double bound, Dtype dtype, std::string name) {
  return Parameter(cell(deviation > 0 ? initial_normal(shape, deviation, dtype) : initial_uniform(shape, bound, dtype),
                        std::move(name)));
}

inline Layout layout_of(TransformerNames names) {
  return names == TransformerNames::gpt2 ? Layout::linear_transposed : Layout::linear;
}

inline void require_deviation(const char* layer, double deviation) {
  if (!(deviation >= 0.0 && std::isfinite(deviation)))
    throw ArgumentError(std::string(layer) + ": a deviation must be 0 or more, got " + std::to_string(deviation));
}
inline void require_dropout(const char* layer, double p) {
  if (!(p >= 0.0 && p < 1.0))
    throw ArgumentError(std::string(layer) + ": dropout must be in [0, 1), got " + std::to_string(p));
}

}  // namespace samebytes::nn
