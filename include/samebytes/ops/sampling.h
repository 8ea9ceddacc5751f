// Draws from discrete distributions: engine/ops/sampling.cpp. The draws are functions of the key and the element's
// index (as in uniform, array.h, in the domain of sampling); without a key they take the engine's next one. All throw
// ArgumentError: op, need, what came.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

// logits [..., C] -> i32 [...]: class c with probability softmax(logits)[c], found as the largest of logits + Gumbel
// noise (E. Gumbel, 1954). A class of -inf is never drawn; a row of nothing else, or with a NaN, gives -1.
Array categorical(const Array& logits);
Array categorical(const Array& logits, RandomKey key);
// weights [..., C], 0 or more, need not sum to 1 -> i32 [..., samples], as PyTorch's multinomial. Without replacement
// no class comes twice, and -1 stands where no class of positive weight is left. A row with a NaN or a negative weight
// gives -1.
struct MultinomialOptions {
  std::int64_t samples = 1;
  bool replacement = false;
};
Array multinomial(const Array& weights, const MultinomialOptions& options = {});
Array multinomial(const Array& weights, const MultinomialOptions& options, RandomKey key);

}  // namespace samebytes
