// How trust and adafactor read the tables of a flat arena: elements of a unit, in which places are counted, and ints of
// a row of the table of tiles. Read by C++ and by OpenCL C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

enum { TRUST_UNIT = 16, ADAFACTOR_UNIT = 16, ADAFACTOR_FIELDS = 16 };

#ifdef __cplusplus
}  // namespace samebytes::detail
#endif
