// What optimizers need for flat cells beyond the public ops of array.h.
#pragma once

#include <cstdint>
#include <span>

#include "samebytes/array.h"

namespace samebytes::detail {

// Like pack(), but if only the updates of cells read the result, element by element, each run of neighbouring arrays is
// updated as soon as it is complete, and its bytes are freed. The values are the same. An engine with one device always
// does this for flat arrays of 64 MiB and more.
Array pack_to_release(std::span<const Array> arrays, std::span<const std::int64_t> offsets, std::int64_t n);

}  // namespace samebytes::detail
