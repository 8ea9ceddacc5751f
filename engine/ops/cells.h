// What optimizers ask of flat cells beyond the public ops of array.h.
#pragma once

#include <cstdint>
#include <span>

#include "samebytes/array.h"

namespace samebytes::detail {

// As pack(), but where nothing except the updates of cells reads the result, element by element, each run of
// neighbouring arrays is updated as soon as they are there, and their bytes are free again. The values are the same. An
// engine of one device does that for flat arrays of 64 MiB and more without being asked.
Array pack_to_release(std::span<const Array> arrays, std::span<const std::int64_t> offsets, std::int64_t n);

}  // namespace samebytes::detail
