// Gradients of ops with a fused kernel, computed by a formula of public ops. A fused gradient op uses this for its own
// gradient, which only second derivatives need.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/op.h"

namespace samebytes::detail {

// The gradients of the wanted inputs of an op that computes formula(inputs): one array per result, differentiable with
// respect to each input separately. The results come from public ops, so they can be differentiated again. No gradient
// flows to inputs that the op declares flat, whatever the formula does with them.
using Formula = std::function<std::vector<Array>(std::span<const Array> inputs)>;
std::vector<Array> formula_gradient(const GradientRequest& request, const Formula& formula);

// 1 / sqrt(var + eps) of a normalisation as a function of the variance, given its value: eps follows from the two.
Array rstd_of(const Array& var, const Array& rstd);

}  // namespace samebytes::detail
