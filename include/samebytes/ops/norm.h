// Normalisation over channels or rows: engine/ops/batch_norm.cpp, layer_norm.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

struct BatchNormOptions {
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch, the variance unbiased
};
// src [..., C], scale, shift, running_mean, running_var [C] (Ioffe and Szegedy 2015). Uses the batch's statistics and,
// unless gradients are off, updates the running cells once when the node runs. Throws for fewer than two values per
// channel.
Array batch_norm_train(const Array& src, const Array& scale, const Array& shift, const Array& running_mean,
                       const Array& running_var, const BatchNormOptions& options = {});
Array batch_norm_eval(const Array& src, const Array& scale, const Array& shift, const Array& running_mean,
                      const Array& running_var, const BatchNormOptions& options = {});
// Over the last axis: src [..., C], scale and shift [C] or empty handles (Ba et al. 2016).
Array layer_norm(const Array& src, const Array& scale = {}, const Array& shift = {}, float eps = 1e-5f);

}  // namespace samebytes
