// Normalisation over channels or rows: engine/ops/batch_norm.cpp, layer_norm.cpp, rms_norm.cpp, group_norm.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <optional>

#include "samebytes/array.h"

namespace samebytes {

struct BatchNormOptions {
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch, the variance unbiased
};
// src [..., C], scale, shift, running_mean, running_var [C] (Ioffe and Szegedy 2015). Uses the batch's statistics and,
// unless gradients are off, updates the running cells once, when the node runs. Throws for fewer than two values per
// channel.
Array batch_norm_train(const Input& src, const Input& scale, const Input& shift, const Input& running_mean,
                       const Input& running_var, const BatchNormOptions& options = {});
Array batch_norm_eval(const Input& src, const Input& scale, const Input& shift, const Input& running_mean,
                      const Input& running_var, const BatchNormOptions& options = {});
// Over the axis, by default the last: src [..., C], scale and shift [C] or empty handles (Ba et al. 2016).
Array layer_norm(const Input& src, const Input& scale = {}, const Input& shift = {}, float eps = 1e-5f, int axis = -1);
// src / sqrt(mean(src^2) + eps) * scale over the last axis: src [..., C], scale [C] or an empty handle (Zhang and
// Sennrich 2019). Unset, eps is the machine epsilon of src's dtype: 2^-23 for f32, 2^-52 for f64, 2^-10 for f16, 2^-7
// for bf16.
Array rms_norm(const Input& src, const Input& scale = {}, std::optional<float> eps = {});
// Over each group of C / groups neighbouring channels of each sample: src [N, ..., C], scale and shift [C] or empty
// handles (Wu and He 2018). groups must divide C.
Array group_norm(const Input& src, std::int64_t groups, const Input& scale = {}, const Input& shift = {},
                 float eps = 1e-5f);
struct InstanceNormOptions {
  float eps = 1e-5f;
  float momentum =
      0.1f;  // running = (1 - momentum) * running + momentum * mean over the samples, the variance unbiased
};
// Over each channel of each sample: src [N, ..., C], scale and shift [C] or empty handles (Ulyanov et al. 2016).
// Updates running_mean and running_var, cells [C], if given, once, when the node runs, unless gradients are off. Throws
// for fewer than two values per sample and channel, and if only one of the running statistics is given.
Array instance_norm(const Input& src, const Input& scale = {}, const Input& shift = {}, const Input& running_mean = {},
                    const Input& running_var = {}, const InstanceNormOptions& options = {});

}  // namespace samebytes
