// Gradient release: a flat gradient that is never there as a whole. Optimizers use it (release_gradients).
#pragma once

#include <cstdint>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

// As pack(), but where nothing except the updates of cells reads the result, element by element, each run of
// neighbouring parts is updated as soon as they are final, and their bytes are free again. The values are the same. An
// engine of one device does that for flat arrays of 64 MiB and more without being asked.
Array pack_to_release(std::span<const Array> arrays, std::span<const std::int64_t> offsets, std::int64_t n);

}  // namespace samebytes
