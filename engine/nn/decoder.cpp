// The block of a decoder (transformer.h).
#include "nn/projection.h"
#include "samebytes/nn/transformer.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

MultiHeadAttentionOptions attention_of(const TransformerDecoderBlockOptions& o) {
  return {.width = o.width, .heads = o.heads, .bias = o.bias, .dropout = o.dropout, .dtype = o.dtype};
}
MultiHeadAttentionOptions self_attention_of(const TransformerDecoderBlockOptions& o) {
  MultiHeadAttentionOptions result = attention_of(o);
  result.causal = o.causal;
  return result;
}
std::int64_t hidden_of(const TransformerDecoderBlockOptions& o) { return o.hidden > 0 ? o.hidden : 4 * o.width; }

}  // namespace

TransformerDecoderBlock::TransformerDecoderBlock(const TransformerDecoderBlockOptions& options)
    : options_(options),
      self_attention_(self_attention_of(options)),
      cross_attention_(attention_of(options)),
      linear1_({.in = options.width, .out = hidden_of(options), .bias = options.bias, .dtype = options.dtype}),
      linear2_({.in = hidden_of(options), .out = options.width, .bias = options.bias, .dtype = options.dtype}),
      norm1_({.features = options.width, .eps = options.eps, .dtype = options.dtype}),
      norm2_({.features = options.width, .eps = options.eps, .dtype = options.dtype}),
      norm3_({.features = options.width, .eps = options.eps, .dtype = options.dtype}) {}

Array TransformerDecoderBlock::forward_all(std::span<const Array> inputs) {
  if (inputs.size() < 2 || inputs.size() > 3)
    throw ArgumentError(describe() + ": takes (x, memory) or (x, memory, lengths of the memory), got " +
                        std::to_string(inputs.size()) + " inputs");
  Array x = inputs[0];
  const Array& memory = inputs[1];
  x = x + self_attention_(norm1_(x));
  const Array query = norm2_(x);
  x = x + (inputs.size() == 3 ? cross_attention_(query, memory, memory, inputs[2])
                              : cross_attention_(query, memory, memory));
  const Array y = linear2_(gelu(linear1_(norm3_(x)), GeluForm::tanh));
  return x + (is_training() && options_.dropout > 0 ? dropout(y, options_.dropout) : y);
}

void TransformerDecoderBlock::visit(Visitor& visitor) {
  visitor.child("self_attn", self_attention_);
  visitor.child("multihead_attn", cross_attention_);
  visitor.child("linear1", linear1_);
  visitor.child("linear2", linear2_);
  visitor.child("norm1", norm1_);
  visitor.child("norm2", norm2_);
  visitor.child("norm3", norm3_);
}

std::string TransformerDecoderBlock::describe() const {
  return "TransformerDecoderBlock(" + std::to_string(options_.width) + ", heads=" + std::to_string(options_.heads) +
         ")";
}

}  // namespace samebytes::nn
