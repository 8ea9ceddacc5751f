// The bits of `flags` of layer_norm, group_norm and rms_norm: which of scale and shift there are, and which gradients
// are asked for. Read by C++ and by OpenCL C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

enum { LAYER_NORM_SCALE = 1, LAYER_NORM_SHIFT = 2, LAYER_NORM_DSRC = 4, LAYER_NORM_DSCALE = 8 };
enum { GROUP_NORM_SCALE = 1, GROUP_NORM_SHIFT = 2, GROUP_NORM_DSRC = 4 };
enum { RMS_NORM_SCALE = 1, RMS_NORM_DSRC = 2, RMS_NORM_DSCALE = 4 };

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
