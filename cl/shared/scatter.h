// How scatter combines a new value with the one that is there. Read by C++ and by OpenCL C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

enum { SCATTER_REPLACE, SCATTER_PROD, SCATTER_AMAX, SCATTER_AMIN };

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
