// Dropout: engine/ops/random.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// Zeroes each element with probability p and scales the rest by 1 / (1 - p). The mask is a function of the key and the
// element's index (as in uniform, array.h, in the domain of dropout): it is recomputed in the gradient, never stored.
// Without a key it takes the engine's next one.
Array dropout(const Array& a, double p);
Array dropout(const Array& a, double p, RandomKey key);

}  // namespace samebytes
