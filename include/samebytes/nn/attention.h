// Multi-head self-attention and cross-attention, and the cache of keys and values that lets generation compute each
// token only once. Letters: N batch, T tokens, C width, H heads, G heads of keys and values, D = C / H.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

// Keys and values of the tokens so far, for one layer: a cell [N, capacity, 2 G, D] that is written in place. Its shape
// never changes and its length is a scalar argument of the launches, so every token reuses the plan of the previous
// one. A copy shares the cell. Use it from one thread at a time.
class KeyValueCache {
 public:
  explicit KeyValueCache(const KeyValueCacheOptions& options);  // throws ArgumentError for sizes below 1

  std::int64_t length() const { return length_; }  // tokens so far
  std::int64_t capacity() const { return options_.capacity; }
  const KeyValueCacheOptions& options() const { return options_; }

  // kv [N, T, 2 G, D], the heads of the keys, then those of the values. Returns keys and values, [N, capacity, G, D]
  // each; once evaluated they hold the T tokens after the earlier ones, and old values or zeros beyond length(). An
  // append changes length() at once: evaluate what depends on it before the next reset(). Throws ArgumentError if the
  // cache is full.
  std::pair<Array, Array> append(const Array& kv);
  // Keeps the first `length` tokens only.
  void reset(std::int64_t length = 0);

 private:
  KeyValueCacheOptions options_;
  Array cell_;
  std::int64_t length_ = 0;
};

// The names of parameters and the layout of weights in files: those of PyTorch's modules, or of GPT-2's published
// checkpoints, whose weights are [in, out].
enum class TransformerNames : std::uint8_t { pytorch, gpt2 };

struct MultiHeadAttentionOptions {
  std::int64_t width = 0;     // C
  std::int64_t heads = 0;     // H, a divisor of C
  std::int64_t kv_heads = 0;  // G, a divisor of H; 0: as many as heads
  bool bias = true;
  bool causal = false;
  double dropout = 0.0;                      // on the result, in training mode
  std::optional<RotaryOptions> rotary = {};  // rotary position embedding of queries and keys
  double deviation = 0.0;                    // weights start normal with it and biases as 0; 0: PyTorch's defaults
  double result_deviation = 0.0;             // the same for the output projection; 0: `deviation`
  TransformerNames names = TransformerNames::pytorch;
  Dtype dtype = f32;
};

// x [N, T, C] -> [N, T, C]: every token attends to all tokens, or, if causal, to those up to itself (A. Vaswani et al.,
// "Attention is all you need", 2017, section 3.2.2; grouped queries: J. Ainslie et al., "GQA", 2023). in_proj_weight
// [(H + 2 G) D, C], in_proj_bias and out_proj as in PyTorch's MultiheadAttention, which initialises them with
// xavier_uniform_, zeros and Linear's default. No T x T matrix is stored. Throws ArgumentError for sizes that do not
// divide.
class MultiHeadAttention final : public Module {
 public:
  explicit MultiHeadAttention(const MultiHeadAttentionOptions& options);
  Array forward(const Array& x) override;
  // lengths i32 or i64 [N]: tokens from that index on are padding and are masked out as keys (PyTorch's
  // key_padding_mask).
  Array forward(const Input& x, const Input& lengths);
  // Cross-attention: query [N, T, C] attends to key and value [N, S, C]. `options` are those of
  // scaled_dot_product_attention; causal is that of the module or theirs. Rotary positions count from 0 in both.
  Array forward(const Input& query, const Input& key, const Input& value, const AttentionOptions& options = {});
  // (x), (x, lengths), (query, key, value) or (query, key, value, lengths of the keys).
  Array forward_all(std::span<const Array> inputs) override;
  // The next T tokens, which also attend to those in the cache. Requires causal.
  Array forward(const Input& x, KeyValueCache& cache);
  KeyValueCache make_cache(std::int64_t batch, std::int64_t capacity) const;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "MultiHeadAttention"; }
  std::string describe() const override;

  const MultiHeadAttentionOptions& options() const { return options_; }

 private:
  void require_input(const Array& x) const;
  Array project(const Array& x, std::int64_t offset) const;  // [N, T, H + 2 G, D]
  Array finish(const Array& y) const;
  MultiHeadAttentionOptions options_;
  Parameter in_weight_, in_bias_, out_weight_, out_bias_;
  Adapter in_adapter_, out_adapter_;
};

}  // namespace samebytes::nn
