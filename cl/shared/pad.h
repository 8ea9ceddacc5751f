// What stands beyond the ends of a padded axis: the kernels' words for PadMode. Read by C++ and by OpenCL C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

enum { PAD_CONSTANT, PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR };

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
