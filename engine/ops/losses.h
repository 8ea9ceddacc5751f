// Shared by the loss files: argument checks, dtypes and reductions.
#pragma once

#include "ops/dtypes.h"
#include "ops/pointwise.h"
#include "samebytes/ops/losses.h"
#include "samebytes/ops/pointwise.h"
#include "samebytes/ops/reduce.h"

namespace samebytes::detail {

Array reduce_loss(const Array& losses, Reduction reduction);

// Requires two floating arrays of one shape. Returns the dtype in which the loss is computed: f32 for 16-bit inputs.
Dtype check_pair(const char* op, const Array& a, const char* a_name, const Array& b, const char* b_name);

// Requires values of 1 and -1 in the shape of `like`; returns them as `dtype`.
Array check_signs(const char* op, const Array& target, const Array& like, const char* like_name, Dtype dtype);

// Truth: a != value. Requires: a is floating.
Array differs(const Array& a, double value);

// max(a, 0) with the gradient of PyTorch's clamp_min: 1 where a is 0.
inline Array above_zero(const Array& a) { return clip(a, {.low = 0.0}); }

}  // namespace samebytes::detail
