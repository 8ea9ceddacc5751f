// Draws from discrete distributions: engine/ops/sampling.cpp. A draw is a function of the key and the element's index
// (as in uniform, array.h, with the domain `sampling`); without a key it uses the engine's next one. All throw
// ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

// logits [..., C] -> i32 [...]: class c with probability softmax(logits)[c], as the argmax of logits + Gumbel noise (E.
// Gumbel, 1954). A class with logit -inf is never drawn; a row of only -inf, or with a NaN, gives -1.
Array categorical(const Input& logits);
Array categorical(const Input& logits, RandomKey key);
// weights [..., C], 0 or more with any sum -> i32 [..., samples], as PyTorch's multinomial. Without replacement no
// class repeats, and the result is -1 once no class with positive weight is left. A row with a NaN or a negative weight
// gives -1.
struct MultinomialOptions {
  std::int64_t samples = 1;
  bool replacement = false;
};
Array multinomial(const Input& weights, const MultinomialOptions& options = {});
Array multinomial(const Input& weights, const MultinomialOptions& options, RandomKey key);

}  // namespace samebytes
