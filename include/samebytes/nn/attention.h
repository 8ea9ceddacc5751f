// Self-attention with several heads, and the cache of keys and values that makes generation cost one token per token.
// Letters: N batch, T tokens, C width, H heads, G heads of keys and values, D = C / H.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "samebytes/nn/module.h"
#include "samebytes/ops/attention.h"

namespace samebytes::nn {

struct KeyValueCacheOptions {
  std::int64_t batch = 1;     // N
  std::int64_t capacity = 0;  // most tokens
  std::int64_t heads = 0;     // G
  std::int64_t depth = 0;     // D
  Dtype dtype = f32;
};

// Keys and values of the tokens so far, of one layer: a cell [N, capacity, 2 G, D] that is written in place. Its shape
// never changes and its length is a scalar of the launches, so every further token finds the plan of the one before. A
// copy shares the cell. Used by one thread at a time.
class KeyValueCache {
 public:
  explicit KeyValueCache(const KeyValueCacheOptions& options);  // throws ArgumentError for sizes below 1

  std::int64_t length() const { return length_; }  // tokens so far
  std::int64_t capacity() const { return options_.capacity; }
  const KeyValueCacheOptions& options() const { return options_; }

  // kv [N, T, 2 G, D], the heads of the keys, then those of the values. The results, [N, capacity, G, D] each, hold the
  // T tokens behind the others when they are evaluated; what lies beyond length() is old or zero. An append counts at
  // once: evaluate what depends on it before the next reset(). Throws ArgumentError where there is no room.
  std::pair<Array, Array> append(const Array& kv);
  // Back to the first `length` tokens.
  void reset(std::int64_t length = 0);

 private:
  KeyValueCacheOptions options_;
  Array cell_;
  std::int64_t length_ = 0;
};

// Which names parameters have, and how weights lie in files: PyTorch's modules, or GPT-2's published checkpoints, whose
// weights are [in, out].
enum class TransformerNames : std::uint8_t { pytorch, gpt2 };

struct MultiHeadAttentionOptions {
  std::int64_t width = 0;     // C
  std::int64_t heads = 0;     // H, a divisor of C
  std::int64_t kv_heads = 0;  // G, a divisor of H; 0: as many as heads
  bool bias = true;
  bool causal = false;
  double dropout = 0.0;                      // of the result, in training mode
  std::optional<RotaryOptions> rotary = {};  // positions by turning queries and keys
  double deviation = 0.0;                    // weights start normal with it and biases as 0; 0: PyTorch's start
  double result_deviation = 0.0;             // the same of the projection of the result; 0: `deviation`
  TransformerNames names = TransformerNames::pytorch;
  Dtype dtype = f32;
};

// x [N, T, C] -> [N, T, C]: every token attends to all, or where causal to those up to itself (A. Vaswani et al.,
// "Attention is all you need", 2017, section 3.2.2; grouped queries: J. Ainslie et al., "GQA", 2023). in_proj_weight
// [(H + 2 G) D, C], in_proj_bias and out_proj as in PyTorch's MultiheadAttention, which starts them with
// xavier_uniform_, zeros and the start of Linear. Nothing of size T x T is stored. Throws ArgumentError for sizes that
// do not divide.
class MultiHeadAttention final : public Module {
 public:
  explicit MultiHeadAttention(const MultiHeadAttentionOptions& options);
  Array forward(const Array& x) override;
  // lengths i32 [N]: tokens from there on are padding that nobody attends to (PyTorch's key_padding_mask).
  Array forward(const Array& x, const Array& lengths);
  // The next T tokens, which see those in the cache, too. Needs causal.
  Array forward(const Array& x, KeyValueCache& cache);
  KeyValueCache make_cache(std::int64_t batch, std::int64_t capacity) const;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "MultiHeadAttention"; }
  std::string describe() const override;

  const MultiHeadAttentionOptions& options() const { return options_; }

 private:
  Array project(const Array& x, std::int64_t offset) const;  // [N, T, H + 2 G, D]
  Array finish(const Array& y) const;
  MultiHeadAttentionOptions options_;
  Parameter in_weight_, in_bias_, out_weight_, out_bias_;
  Adapter in_adapter_, out_adapter_;
};

}  // namespace samebytes::nn
