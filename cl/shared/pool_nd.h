// The sizes of a pooling over three axes, as its kernels and the code that launches them (engine/ops/pool_nd.cpp) both
// say them. Read by C++ and by OpenCL C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

// src [batch, d, h, w, c] to [batch, od, oh, ow, c]; a window has kd x kh x kw places.
typedef struct {
  int batch, d, h, w, c, od, oh, ow, kd, kh, kw;
} pool_nd_sizes;

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
