#include "samebytes/nn/attention.h"

#include <cmath>

#include "nn/projection.h"
#include "samebytes/nn/lora.h"
#include "samebytes/ops.h"
#include "samebytes/ops/update_slice.h"

namespace samebytes::nn {

KeyValueCache::KeyValueCache(const KeyValueCacheOptions& options) : options_(options) {
  require_positive("KeyValueCache", "batch", options.batch);
  require_positive("KeyValueCache", "capacity", options.capacity);
  require_positive("KeyValueCache", "heads", options.heads);
  require_positive("KeyValueCache", "depth", options.depth);
  require_real("KeyValueCache", options.dtype);
  cell_ =
      cell(zeros({options.batch, options.capacity, 2 * options.heads, options.depth}, options.dtype), "KeyValueCache");
}

std::pair<Array, Array> KeyValueCache::append(const Array& kv) {
  const Shape& shape = kv.shape();
  if (shape.rank() != 4 || shape[0] != options_.batch || shape[2] != 2 * options_.heads || shape[3] != options_.depth)
    throw ArgumentError("KeyValueCache: kv must be [" + std::to_string(options_.batch) + ", T, " +
                        std::to_string(2 * options_.heads) + ", " + std::to_string(options_.depth) + "], it is " +
                        shape.to_string());
  if (length_ + shape[1] > options_.capacity)
    throw ArgumentError("KeyValueCache: no room for " + std::to_string(shape[1]) + " tokens behind " +
                        std::to_string(length_) + " of " + std::to_string(options_.capacity));
  const Array all = update_slice(cell_, kv, 1, length_);
  length_ += shape[1];
  return {slice(all, 2, 0, options_.heads), slice(all, 2, options_.heads, 2 * options_.heads)};
}

void KeyValueCache::reset(std::int64_t length) {
  if (length < 0 || length > length_)
    throw ArgumentError("KeyValueCache: can go back to between 0 and " + std::to_string(length_) + " tokens, got " +
                        std::to_string(length));
  length_ = length;
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options) : options_(options) {
  constexpr const char* kLayer = "MultiHeadAttention";
  auto& o = options_;
  require_positive(kLayer, "width", o.width);
  require_positive(kLayer, "heads", o.heads);
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  require_positive(kLayer, "kv_heads", o.kv_heads);
  require_dropout(kLayer, o.dropout);
  require_deviation(kLayer, o.deviation);
  require_deviation(kLayer, o.result_deviation);
  require_real(kLayer, o.dtype);
  if (o.width % o.heads != 0 || o.heads % o.kv_heads != 0)
    throw ArgumentError("MultiHeadAttention: heads must divide the width and kv_heads the heads, got width " +
                        std::to_string(o.width) + ", heads " + std::to_string(o.heads) + ", kv_heads " +
                        std::to_string(o.kv_heads));
  if (o.rotary && o.width / o.heads % 2 != 0)
    throw ArgumentError("MultiHeadAttention: rotary positions need an even number of values per head, got " +
                        std::to_string(o.width / o.heads));
  if (o.rotary) o.rotary->heads = o.heads + o.kv_heads;  // rotates queries and keys but not values
  const std::int64_t rows = (o.heads + 2 * o.kv_heads) * (o.width / o.heads);
  const double xavier = std::sqrt(6.0 / static_cast<double>(o.width + rows));
  const double kaiming = 1.0 / std::sqrt(static_cast<double>(o.width));
  in_weight_ = weight_cell({rows, o.width}, o.deviation, xavier, o.dtype, describe() + ".in_proj_weight");
  if (o.bias) in_bias_ = Parameter(cell(zeros({rows}, o.dtype), describe() + ".in_proj_bias"));
  out_weight_ = weight_cell({o.width, o.width}, o.result_deviation > 0 ? o.result_deviation : o.deviation, kaiming,
                            o.dtype, describe() + ".out_proj.weight");
  if (o.bias) out_bias_ = Parameter(cell(zeros({o.width}, o.dtype), describe() + ".out_proj.bias"));
}

void MultiHeadAttention::require_input(const Array& x) const {
  if (x.shape().rank() != 3 || x.shape()[2] != options_.width)
    throw ArgumentError("MultiHeadAttention: x must be [N, T, " + std::to_string(options_.width) + "], it is " +
                        x.shape().to_string());
}

Array MultiHeadAttention::project(const Array& x, std::int64_t offset) const {
  require_input(x);
  const Shape& shape = x.shape();
  Array qkv = reshape(adapted_linear(x, in_weight_, in_bias_, in_adapter_),
                      {shape[0], shape[1], options_.heads + 2 * options_.kv_heads, options_.width / options_.heads});
  if (!options_.rotary) return qkv;
  RotaryOptions rotary_options = *options_.rotary;
  rotary_options.offset += offset;
  return rotary(qkv, rotary_options);
}

Array MultiHeadAttention::finish(const Array& y) const {
  const Shape& shape = y.shape();
  const Array result =
      adapted_linear(reshape(y, {shape[0], shape[1], options_.width}), out_weight_, out_bias_, out_adapter_);
  return is_training() && options_.dropout > 0 ? dropout(result, options_.dropout) : result;
}

Array MultiHeadAttention::forward(const Array& x) { return forward(x, Array()); }

Array MultiHeadAttention::forward(const Input& x, const Input& lengths) {
  return finish(packed_attention(project(x, 0), options_.heads, {.causal = options_.causal, .lengths = lengths}));
}

Array MultiHeadAttention::forward(const Input& query, const Input& key, const Input& value,
                                  const AttentionOptions& options) {
  const std::int64_t heads = options_.heads, kv_heads = options_.kv_heads, depth = options_.width / heads;
  // Heads [first, first + count) of x: with an adapter or in int8 all heads are computed, since their rows are not cut.
  const auto heads_of = [&](const Array& x, std::int64_t first, std::int64_t count) {
    if (in_adapter_ || in_weight_.quantized()) return slice(project(x, 0), 2, first, first + count);
    require_input(x);
    const std::int64_t begin = first * depth, end = begin + count * depth;
    const Array bias = in_bias_.defined() ? slice(in_bias_, 0, begin, end) : Array();
    Array y = reshape(linear(x, slice(in_weight_, 0, begin, end), bias), {x.shape()[0], x.shape()[1], count, depth});
    if (!options_.rotary || first == heads + kv_heads) return y;
    RotaryOptions positions = *options_.rotary;
    positions.heads = 0;
    return rotary(y, positions);
  };
  AttentionOptions all = options;
  all.causal = all.causal || options_.causal;
  return finish(scaled_dot_product_attention(heads_of(query, 0, heads), heads_of(key, heads, kv_heads),
                                             heads_of(value, heads + kv_heads, kv_heads), all));
}

Array MultiHeadAttention::forward_all(std::span<const Array> inputs) {
  switch (inputs.size()) {
    case 1: return forward(inputs[0]);
    case 2: return forward(inputs[0], inputs[1]);
    case 3: return forward(inputs[0], inputs[1], inputs[2]);
    case 4: return forward(inputs[0], inputs[1], inputs[2], {.lengths = inputs[3]});
    default:
      throw ArgumentError(describe() +
                          ": takes (x), (x, lengths), (query, key, value) or (query, key, value, lengths), got " +
                          std::to_string(inputs.size()) + " inputs");
  }
}

Array MultiHeadAttention::forward(const Input& x, KeyValueCache& cache) {
  if (!options_.causal) throw ArgumentError("MultiHeadAttention: a cache needs causal attention");
  const std::int64_t offset = cache.length(), heads = options_.heads;
  const Array qkv = project(x, offset);
  const auto [k, v] = cache.append(slice(qkv, 2, heads, qkv.shape()[2]));
  return finish(scaled_dot_product_attention(slice(qkv, 2, 0, heads), k, v, {.causal = true, .offset = offset}));
}

KeyValueCache MultiHeadAttention::make_cache(std::int64_t batch, std::int64_t capacity) const {
  return KeyValueCache({.batch = batch,
                        .capacity = capacity,
                        .heads = options_.kv_heads,
                        .depth = options_.width / options_.heads,
                        .dtype = options_.dtype});
}

void MultiHeadAttention::visit(Visitor& visitor) {
  const bool gpt2 = options_.names == TransformerNames::gpt2;
  visitor.parameter(gpt2 ? "c_attn.weight" : "in_proj_weight", in_weight_, layout_of(options_.names));
  if (in_bias_.defined()) visitor.parameter(gpt2 ? "c_attn.bias" : "in_proj_bias", in_bias_);
  visitor.projection(gpt2 ? "c_attn" : "in_proj", in_weight_, in_adapter_);
  visitor.quantizable(gpt2 ? "c_attn" : "in_proj", in_weight_);
  visitor.parameter(gpt2 ? "c_proj.weight" : "out_proj.weight", out_weight_, layout_of(options_.names));
  if (out_bias_.defined()) visitor.parameter(gpt2 ? "c_proj.bias" : "out_proj.bias", out_bias_);
  visitor.projection(gpt2 ? "c_proj" : "out_proj", out_weight_, out_adapter_);
  visitor.quantizable(gpt2 ? "c_proj" : "out_proj", out_weight_);
}

std::string MultiHeadAttention::describe() const {
  std::string text =
      "MultiHeadAttention(" + std::to_string(options_.width) + ", heads=" + std::to_string(options_.heads);
  if (options_.kv_heads != options_.heads) text += ", kv_heads=" + std::to_string(options_.kv_heads);
  if (options_.causal) text += ", causal";
  if (options_.rotary) text += ", rotary";
  return text + ")";
}

}  // namespace samebytes::nn
