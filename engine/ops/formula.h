// Gradients of ops that have a fused kernel, by a formula of public ops: what a fused gradient op uses for its own
// gradient, which is asked for by second derivatives alone.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/op.h"

namespace samebytes::detail {

// The gradients of the wanted inputs where the op gives formula(inputs), one array per result, differentiable with
// respect to each input by itself; the results are those of public ops, so they can be differentiated again. No
// gradient flows to inputs that the op calls flat, whatever the formula does with them.
using Formula = std::function<std::vector<Array>(std::span<const Array> inputs)>;
std::vector<Array> formula_gradient(const GradientRequest& request, const Formula& formula);

// 1 / sqrt(var + eps) of a normalisation, as a function of the variance, from its value: eps is what both leave.
Array rstd_of(const Array& var, const Array& rstd);

}  // namespace samebytes::detail
