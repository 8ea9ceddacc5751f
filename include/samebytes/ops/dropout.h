// Dropout: engine/ops/random.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// Zeroes each element with probability p and scales the rest by 1 / (1 - p). The mask is a function of the key and the
// element's index (as in uniform, array.h, with the domain `dropout`); the backward pass recomputes it. Without a key
// it uses the engine's next one.
Array dropout(const Input& a, double p);
Array dropout(const Input& a, double p, RandomKey key);

}  // namespace samebytes
