// Transformer blocks: attention and a network of two layers, each preceded by a norm and with a residual connection;
// for a decoder with attention to an encoder's result between them.
#pragma once

#include <span>

#include "samebytes/nn/attention.h"
#include "samebytes/nn/linear.h"
#include "samebytes/nn/norm.h"

namespace samebytes::nn {

struct TransformerBlockOptions {
  std::int64_t width = 0;     // C
  std::int64_t heads = 0;     // a divisor of C
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t hidden = 0;    // of the network; 0: 4 C
  bool causal = true;
  bool bias = true;
  double dropout = 0.0;  // on both results before they are added, in training mode
  std::optional<RotaryOptions> rotary = {};
  float eps = 1e-5f;              // of the norms
  double deviation = 0.0;         // weights start normal with it and biases as 0; 0: PyTorch's defaults
  double result_deviation = 0.0;  // the same for the two projections before an addition; 0: `deviation`
  TransformerNames names = TransformerNames::pytorch;
  Dtype dtype = f32;
};

// x [N, T, C] -> [N, T, C]: x = x + attention(norm1(x)), then x + linear2(gelu(linear1(norm2(x)))) with the tanh form
// of GELU: the pre-norm block of GPT-2 (A. Radford et al., "Language models are unsupervised multitask learners",
// 2019). Names are those of PyTorch's TransformerEncoderLayer (self_attn, linear1, linear2, norm1, norm2) or of GPT-2
// (ln_1, attn, ln_2, mlp).
class TransformerBlock final : public Module {
 public:
  explicit TransformerBlock(const TransformerBlockOptions& options);
  Array forward(const Array& x) override;
  Array forward(const Input& x, const Input& lengths);        // lengths i32 or i64 [N]: padding from that index on
  Array forward_all(std::span<const Array> inputs) override;  // (x) or (x, lengths)
  Array forward(const Input& x, KeyValueCache& cache);        // the next T tokens; requires causal
  KeyValueCache make_cache(std::int64_t batch, std::int64_t capacity) const {
    return attention_.make_cache(batch, capacity);
  }
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "TransformerBlock"; }
  std::string describe() const override;

  const TransformerBlockOptions& options() const { return options_; }

 private:
  Array network(const Array& x);
  TransformerBlockOptions options_;
  LayerNorm norm1_, norm2_;
  MultiHeadAttention attention_;
  Parameter weight1_, bias1_, weight2_, bias2_;
  Adapter adapter1_, adapter2_;
};

struct TransformerDecoderBlockOptions {
  std::int64_t width = 0;   // C
  std::int64_t heads = 0;   // a divisor of C
  std::int64_t hidden = 0;  // of the network; 0: 4 C
  bool causal = true;       // of the attention of x to itself
  bool bias = true;
  double dropout = 0.0;  // on the three results before they are added, in training mode
  float eps = 1e-5f;     // of the norms
  Dtype dtype = f32;
};

// (x [N, T, C], memory [N, S, C]) -> [N, T, C]: x + self_attn(norm1(x)), then + multihead_attn(norm2(x), memory,
// memory), then + linear2(gelu(linear1(norm3(x)))) with the tanh form of GELU: the pre-norm block of a decoder (A.
// Vaswani et al., "Attention is all you need", 2017, section 3.1). Names are those of PyTorch's
// TransformerDecoderLayer.
class TransformerDecoderBlock final : public Module {
 public:
  explicit TransformerDecoderBlock(const TransformerDecoderBlockOptions& options);
  // (x, memory) or (x, memory, lengths i32 or i64 [N] of the memory).
  Array forward_all(std::span<const Array> inputs) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "TransformerDecoderBlock"; }
  std::string describe() const override;

 private:
  TransformerDecoderBlockOptions options_;
  MultiHeadAttention self_attention_, cross_attention_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_, norm3_;
};

}  // namespace samebytes::nn
