// The bits of `flags` of attention: what a query may see, and whether sequences have lengths. Read by C++ and by OpenCL
// C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

enum { ATTENTION_CAUSAL = 1, ATTENTION_LENGTHS = 2 };

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
