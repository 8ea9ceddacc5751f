// A transformer block: attention and a network of two layers, each preceded by a norm and with a residual connection.
#pragma once

#include "samebytes/nn/attention.h"
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
  Array forward(const Input& x, const Input& lengths);  // lengths i32 [N]: tokens from that index on are padding
  Array forward(const Input& x, KeyValueCache& cache);  // the next T tokens; requires causal
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

}  // namespace samebytes::nn
