#include "models/layers.h"

#include <algorithm>
#include <numeric>

#include "nn/quantized.h"
#include "samebytes/autocast.h"
#include "samebytes/checkpoint.h"
#include "samebytes/error.h"
#include "samebytes/nn/lora.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

bool is_narrow(Dtype dtype) { return dtype == f16 || dtype == bf16; }

// True where query offset + i may see key j: those of the last `window` tokens, bool [T, S].
Array window_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset, std::int64_t window) {
  const Array rows = reshape(arange(0, static_cast<double>(queries), 1, i32), {queries, 1});
  const Array columns = arange(0, static_cast<double>(keys), 1, i32);
  // The offset is an array, so that another one is no other plan.
  const std::vector<std::int32_t> first{static_cast<std::int32_t>(offset - window)};
  return less(rows + array(first, {1}), columns);
}

}  // namespace

Array widened(const Array& a) { return is_narrow(a.dtype()) ? astype(a, f32) : a; }

namespace {

// x weight' + bias, as wide as the weight.
Array product(const Array& x, const Array& weight, const Array& bias) {
  return is_narrow(weight.dtype()) ? linear(astype(x, weight.dtype()), weight, bias) : linear(x, weight, bias);
}

// What a projection gives: f32, and in an Autocast scope the type of the scope.
Array result_of(const Array& y) {
  const auto narrow = autocast_dtype();
  return narrow && y.dtype() == f32 ? astype(y, *narrow) : narrow ? y : widened(y);
}

}  // namespace

Array project(const Array& x, const Array& weight, const Array& bias, const nn::Adapter& adapter) {
  const Array y = result_of(product(x, weight, bias));
  return adapter && !adapter->is_merged() ? y + (*adapter)(x) : y;
}

Activation activation_of(const Config& config, const std::string& key, const std::string& fallback) {
  struct Row {
    const char* name;
    Activation activation;
  };
  constexpr Row kRows[] = {{"silu", Activation::silu},
                           {"swish", Activation::silu},
                           {"gelu", Activation::gelu},
                           {"gelu_new", Activation::gelu_tanh},
                           {"gelu_pytorch_tanh", Activation::gelu_tanh},
                           {"relu", Activation::relu},
                           {"tanh", Activation::tanh}};
  const std::string name = config.text(key, fallback);
  for (const Row& row : kRows)
    if (name == row.name) return row.activation;
  config.fail(key, "silu, swish, gelu, gelu_new, gelu_pytorch_tanh, relu or tanh", "'" + name + "'");
}

Array activate(const Array& x, Activation activation) {
  switch (activation) {
    case Activation::silu: return silu(x);
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu(x, GeluForm::tanh);
    case Activation::relu: return relu(x);
    case Activation::tanh: break;
  }
  return tanh(x);
}

Projection::Projection(const Weights& at, const ProjectionOptions& o)
    : layout_(o.transposed ? nn::Layout::linear_transposed : nn::Layout::linear) {
  const Shape shape{o.out, o.in};
  if (o.is_head && layout_ == nn::Layout::linear)
    matrix_ = at.take_table("weight", shape);
  else
    matrix_ = at.take_matrix("weight", shape, layout_);
  if (o.bias) bias_ = at.take("bias", {o.out}, nn::Layout::plain, Initial::zeros);
}

Array Projection::forward(const Array& x) {
  if (matrix_.weight.quantized()) return nn::quantized_linear(x, matrix_.weight, bias_);
  if (!matrix_.is_quantised()) return project(x, matrix_.weight, bias_, adapter_);
  const Array y = result_of(quantised_linear(x, matrix_.blocks, matrix_.type, bias_));
  return adapter_ ? y + (*adapter_)(x) : y;
}

Array Projection::narrow(const Array& x) {
  const bool is_plain = !adapter_ && !matrix_.is_quantised() && !matrix_.weight.quantized();
  return is_plain ? call([&] { return product(x, matrix_.weight, bias_); }) : (*this)(x);
}

void Projection::visit(nn::Visitor& visitor) {
  if (!matrix_.is_quantised()) visitor.parameter("weight", matrix_.weight, layout_);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  // Quantised blocks are no parameter; what stands for the weight has its shape and is not computed.
  visitor.projection("", matrix_.is_quantised() ? dequantise(matrix_.blocks, matrix_.type) : Array(matrix_.weight),
                     adapter_);
  if (!matrix_.is_quantised()) visitor.quantizable("", matrix_.weight);
}

Norm::Norm(const Weights& at, std::int64_t features, NormKind kind, double eps)
    : kind_(kind),
      eps_(static_cast<float>(eps)),
      weight_(at.take("weight", {features}, nn::Layout::plain,
                      kind == NormKind::rms_plus_one ? Initial::zeros : Initial::ones)) {
  if (kind == NormKind::layer) bias_ = at.take("bias", {features}, nn::Layout::plain, Initial::zeros);
}

Array Norm::forward(const Array& x) {
  switch (kind_) {
    case NormKind::layer: return layer_norm(x, weight_, bias_, eps_);
    case NormKind::rms: return rms_norm(x, weight_, eps_);
    case NormKind::rms_plus_one: break;
  }
  return rms_norm(x, weight_ + 1.0, eps_);
}

void Norm::visit(nn::Visitor& visitor) {
  visitor.parameter("weight", weight_);
  if (bias_.defined()) visitor.parameter("bias", bias_);
}

Table::Table(const Weights& at, std::int64_t rows, std::int64_t width)
    : matrix_(at.take_table("weight", {rows, width})) {}
Array Table::forward(const Array& ids) {
  if (!matrix_.is_quantised()) return widened(embedding(ids, matrix_.weight));
  const Array rows = dequantise(take(matrix_.blocks, reshape(ids, {ids.size()}), 0), matrix_.type);
  return reshape(rows, {ids.shape()[0], ids.shape()[1], rows.shape()[1]});
}
Array Table::logits_of(const Array& hidden) const {
  return matrix_.is_quantised() ? quantised_linear(hidden, matrix_.blocks, matrix_.type)
                                : project(hidden, matrix_.weight);
}
void Table::visit(nn::Visitor& visitor) {
  if (!matrix_.is_quantised()) visitor.parameter("weight", matrix_.weight);
}

SelfAttentionOptions self_attention_of(const Config& config, const char* heads, const char* width) {
  SelfAttentionOptions o;
  o.width = config.size(width);
  o.heads = o.kv_heads = config.size(heads);
  if (o.width % o.heads != 0 && !config.has("head_dim"))
    config.fail(heads, "a divisor of " + std::string(width) + ", " + std::to_string(o.width), std::to_string(o.heads));
  o.depth = o.width / o.heads;
  return o;
}

SelfAttention::SelfAttention(const Weights& at, const SelfAttentionOptions& o)
    : options_(o),
      result_(at.at(o.result),
              {.in = o.heads * o.depth, .out = o.width, .bias = o.result_bias, .transposed = o.transposed}) {
  const auto make = [&](const std::string& name, std::int64_t count) {
    return Projection(at.at(name), {.in = o.width, .out = count * o.depth, .bias = o.bias, .transposed = o.transposed});
  };
  if (o.fused.empty()) {
    query_.emplace(make(o.query, o.heads));
    key_.emplace(make(o.key, o.kv_heads));
    value_.emplace(make(o.value, o.kv_heads));
  } else {
    fused_.emplace(make(o.fused, o.heads + 2 * o.kv_heads));
  }
  if (o.head_norm) {
    query_norm_.emplace(at.at("q_norm"), o.depth, *o.head_norm, o.eps);
    key_norm_.emplace(at.at("k_norm"), o.depth, *o.head_norm, o.eps);
  }
}

Array SelfAttention::turned(const Array& x, std::int64_t offset) const {
  return options_.rope ? options_.rope->turn(x, offset) : x;
}

Array SelfAttention::forward(const Array& x, const Sight& sight, nn::KeyValueCache* cache) {
  return call([&] { return result_(attend(heads_of(x), sight, cache)); });
}

Array SelfAttention::forward_texts(const Array& x, std::span<const std::int64_t> counts, std::span<const Sight> sights,
                                   std::span<nn::KeyValueCache* const> caches) {
  return call([&] {
    const Heads all = heads_of(x);
    std::vector<Array> texts;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < caches.size(); begin += counts[i++]) {
      const auto own = [&](const Array& heads) { return slice(heads, 1, begin, begin + counts[i]); };
      texts.push_back(attend({own(all.q), own(all.k), own(all.v)}, sights[i], caches[i]));
    }
    return result_(concat(texts, 1));
  });
}

SelfAttention::Heads SelfAttention::heads_of(const Array& x) {
  const auto& o = options_;
  const std::int64_t batch = x.shape()[0], tokens = x.shape()[1];
  Heads heads;
  if (fused_) {
    const Array all = reshape((*fused_)(x), {batch, tokens, o.heads + 2 * o.kv_heads, o.depth});
    heads.q = slice(all, 2, 0, o.heads);
    heads.k = slice(all, 2, o.heads, o.heads + o.kv_heads);
    heads.v = slice(all, 2, o.heads + o.kv_heads, o.heads + 2 * o.kv_heads);
  } else {
    heads.q = reshape((*query_)(x), {batch, tokens, o.heads, o.depth});
    heads.k = reshape((*key_)(x), {batch, tokens, o.kv_heads, o.depth});
    heads.v = reshape((*value_)(x), {batch, tokens, o.kv_heads, o.depth});
  }
  if (o.head_norm) {
    heads.q = (*query_norm_)(heads.q);
    heads.k = (*key_norm_)(heads.k);
  }
  return heads;
}

Array SelfAttention::attend(const Heads& heads, const Sight& sight, nn::KeyValueCache* cache) {
  const auto& o = options_;
  const std::int64_t batch = heads.q.shape()[0], tokens = heads.q.shape()[1];
  const std::int64_t offset = cache != nullptr ? cache->length() : 0;
  const Array q = turned(heads.q, offset);
  Array k = turned(heads.k, offset), v = heads.v;
  if (cache != nullptr) std::tie(k, v) = cache->append(concat({k, v}, 2));
  const std::int64_t keys = k.shape()[1];
  AttentionOptions how{.causal = o.causal, .lengths = sight.lengths, .soft_cap = o.soft_cap};
  if (o.scale > 0) how.scale = o.scale;
  if (o.causal) how.offset = offset;
  if (sight.mask.defined()) how.mask = reshape(sight.mask, {batch, 1, 1, tokens});
  if (sight.texts.defined()) how.mask = how.mask.defined() ? logical_and(how.mask, sight.texts) : sight.texts;
  if (o.window > 0 && keys > o.window) {
    auto made =
        std::find_if(sight.near.begin(), sight.near.end(), [&](const auto& one) { return one.first == o.window; });
    if (made == sight.near.end())
      made = sight.near.insert(made, {o.window, window_mask(tokens, keys, offset, o.window)});
    how.mask = how.mask.defined() ? logical_and(how.mask, made->second) : made->second;
  }
  return reshape(scaled_dot_product_attention(q, k, v, how), {batch, tokens, o.heads * o.depth});
}

nn::KeyValueCache SelfAttention::make_cache(std::int64_t batch, std::int64_t capacity) const {
  return nn::KeyValueCache({.batch = batch, .capacity = capacity, .heads = options_.kv_heads, .depth = options_.depth});
}

void SelfAttention::visit(nn::Visitor& visitor) {
  if (fused_) visitor.child(options_.fused, *fused_);
  if (query_) visitor.child(options_.query, *query_);
  if (key_) visitor.child(options_.key, *key_);
  if (value_) visitor.child(options_.value, *value_);
  visitor.child(options_.result, result_);
  if (query_norm_) visitor.child("q_norm", *query_norm_);
  if (key_norm_) visitor.child("k_norm", *key_norm_);
}

FeedForward::FeedForward(const Weights& at, const FeedForwardOptions& o)
    : options_(o),
      up_(at.at(o.up),
          {.in = o.width, .out = (o.fused ? 2 : 1) * o.hidden, .bias = o.bias, .transposed = o.transposed}),
      down_(at.at(o.down), {.in = o.hidden, .out = o.width, .bias = o.bias, .transposed = o.transposed}) {
  if (!o.gate.empty()) gate_.emplace(at.at(o.gate), ProjectionOptions{.in = o.width, .out = o.hidden, .bias = o.bias});
}

// The widest values of a model lie between its two products. The backward pass makes all of them again from the results
// of the first ones, 16 bits wide where the weights are: a few operations each, where an array costs memory and its
// way there and back.
Array FeedForward::forward(const Array& x) {
  const Array gate = gate_ ? gate_->narrow(x) : Array();
  const auto between = [&](const Array& given) -> Array {
    const Array up = result_of(given);
    if (gate_) return activate(result_of(gate), options_.activation) * up;
    if (!options_.fused) return activate(up, options_.activation);
    const int last = up.shape().rank() - 1;
    return activate(slice(up, last, 0, options_.hidden), options_.activation) *
           slice(up, last, options_.hidden, 2 * options_.hidden);
  };
  return down_(checkpoint(between, up_.narrow(x)));
}

void FeedForward::visit(nn::Visitor& visitor) {
  if (gate_) visitor.child(options_.gate, *gate_);
  visitor.child(options_.up, up_);
  visitor.child(options_.down, down_);
}

std::string head_of(const Config& config) {
  const std::vector<std::string> names = config.texts("architectures");
  const std::string name = names.empty() ? "Model" : names.front();
  if (name.ends_with("LMHeadModel")) return "CausalLM";
  if (name.ends_with("Model")) return "Model";
  const std::size_t at = name.rfind("For");
  return at == std::string::npos ? name : name.substr(at + 3);
}

std::string prefix_of(const Config& config, const Weights& weights, const std::string& prefix,
                      const std::string& probe) {
  if (weights.is_fresh()) return head_of(config) == "Model" ? "" : prefix;
  return weights.has(prefix + "." + probe, true) || !weights.has(probe, true) ? prefix : "";
}

std::int64_t labels_of(const Config& config, const Weights& weights, const std::string& head) {
  if (!weights.is_fresh()) {
    const Shape shape = weights.at(head).shape_of("weight");
    return shape.rank() == 2 ? std::max<std::int64_t>(shape[0], 1) : 1;
  }
  const auto named = static_cast<std::int64_t>(config.count("id2label"));
  return named > 0 ? named : config.size("num_labels", 2);
}

void require_ids(const Config& config, const Array& x, std::int64_t most) {
  const std::string name = config.text("model_type");
  if (!x.defined() || (x.dtype() != i32 && x.dtype() != i64 && x.dtype() != u8) || x.shape().rank() != 2 ||
      x.shape()[1] < 1 || x.shape()[0] < 1)
    throw ArgumentError(
        name + ": expected token ids, i32 or i64 [N, T], got " +
        (x.defined() ? std::string(name_of(x.dtype())) + " " + x.shape().to_string() : std::string("an empty handle")));
  if (x.shape()[1] > most)
    throw ArgumentError(name + ": expected at most " + std::to_string(std::max<std::int64_t>(most, 0)) +
                        " tokens, got " + std::to_string(x.shape()[1]));
}

void require_caches(const Pretrained& model, std::span<DecoderCache* const> caches, std::size_t layers) {
  for (const DecoderCache* cache : caches)
    if (cache->size() != layers)
      throw ArgumentError(model.kind() + ": expected one cache per layer, got " + std::to_string(cache->size()) +
                          " for " + std::to_string(layers) + " layers");
}

void require_texts(const Pretrained& model, const Array& ids, std::span<const std::int64_t> counts,
                   std::span<DecoderCache* const> caches, std::size_t layers) {
  require_ids(model.config(), ids);
  const bool has_all = std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; });
  const std::int64_t tokens = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (caches.empty() || counts.size() != caches.size() || !has_all || ids.shape() != Shape{1, tokens})
    throw ArgumentError(model.kind() + ": expected the tokens of " + std::to_string(caches.size()) +
                        " texts as ids [1, T] and their counts, 1 or more each, which add up to T; got ids " +
                        ids.shape().to_string() + " and " + std::to_string(counts.size()) + " counts of " +
                        std::to_string(tokens));
  require_caches(model, caches, layers);
}

Array last_of_each(const Array& x, std::span<const std::int64_t> counts) {
  const auto texts = static_cast<std::int64_t>(counts.size());
  const std::int64_t tokens = x.shape()[1], width = x.shape()[2];
  if (tokens == texts) return reshape(x, {texts, 1, width});
  std::vector<Array> last;
  std::int64_t end = 0;
  for (const std::int64_t count : counts) {
    end += count;
    last.push_back(slice(x, 1, end - 1, end));
  }
  return concat(last, 0);
}

std::vector<nn::KeyValueCache*> caches_of(std::span<DecoderCache* const> caches, std::size_t layer) {
  std::vector<nn::KeyValueCache*> own;
  for (DecoderCache* cache : caches) own.push_back(&(*cache)[layer]);
  return own;
}

}  // namespace samebytes::models
