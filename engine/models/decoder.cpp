#include "models/decoder.h"

#include <algorithm>
#include <utility>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

constexpr const char* kHeads[] = {"Model", "CausalLM", "SequenceClassification", "TokenClassification"};

std::string checked_head(const Config& config) {
  std::string head = head_of(config);
  for (const char* known : kHeads)
    if (head == known) return head;
  config.fail("architectures",
              "a name that ends in Model, ForCausalLM, ForSequenceClassification or ForTokenClassification",
              "'" + head + "'");
}

}  // namespace

DecoderOptions decoder_of(const Config& config, double theta) {
  DecoderOptions o;
  SelfAttentionOptions attention = self_attention_of(config, "num_attention_heads", "hidden_size");
  attention.kv_heads = config.size("num_key_value_heads", attention.heads);
  if (attention.heads % attention.kv_heads != 0)
    config.fail("num_key_value_heads", "a divisor of the " + std::to_string(attention.heads) + " heads",
                std::to_string(attention.kv_heads));
  attention.depth = config.size("head_dim", attention.depth);
  attention.bias = attention.result_bias = config.flag("attention_bias", false);
  attention.causal = true;
  o.eps = attention.eps = config.number("rms_norm_eps", 1e-6);
  const auto rope = std::make_shared<Rope>(config, rope_section(config), attention.depth, theta);
  attention.rope = rope;
  o.ropes = {rope};
  o.width = attention.width;
  o.vocabulary = config.size("vocab_size");
  o.layers = config.size("num_hidden_layers");
  const FeedForwardOptions network{.width = o.width,
                                   .hidden = config.size("intermediate_size"),
                                   .activation = activation_of(config, "hidden_act", "silu"),
                                   .bias = config.flag("mlp_bias", false),
                                   .gate = "gate_proj"};
  const DecoderLayerOptions layer{.attention = attention, .network = network, .eps = o.eps};
  o.layer = [layer](std::int64_t) -> DecoderLayerOptions { return DecoderLayerOptions(layer); };
  return o;
}

DecoderLayer::DecoderLayer(const Weights& at, const DecoderLayerOptions& o)
    : attention_(at.at("self_attn"), o.attention),
      network_(at.at("mlp"), o.network),
      before_attention_(at.at("input_layernorm"), o.attention.width, o.norm, o.eps),
      before_network_(at.at(o.sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm"), o.attention.width,
                      o.norm, o.eps) {
  if (!o.sandwich) return;
  behind_attention_.emplace(at.at("post_attention_layernorm"), o.attention.width, o.norm, o.eps);
  behind_network_.emplace(at.at("post_feedforward_layernorm"), o.attention.width, o.norm, o.eps);
}

template <class Attend>
Array DecoderLayer::layer(const Array& x, const Attend& attend) {
  return call([&] {
    Array y = attend(before_attention_(x));
    if (behind_attention_) y = (*behind_attention_)(y);
    const Array middle = x + y;
    y = network_(before_network_(middle));
    return middle + (behind_network_ ? (*behind_network_)(y) : y);
  });
}

Array DecoderLayer::forward(const Array& x, const Sight& sight, nn::KeyValueCache* cache) {
  return layer(x, [&](const Array& y) { return attention_.forward(y, sight, cache); });
}
Array DecoderLayer::forward_texts(const Array& x, std::span<const std::int64_t> counts, std::span<const Sight> sights,
                                  std::span<nn::KeyValueCache* const> caches) {
  return layer(x, [&](const Array& y) { return attention_.forward_texts(y, counts, sights, caches); });
}

void DecoderLayer::visit(nn::Visitor& visitor) {
  visitor.child("self_attn", attention_);
  visitor.child("mlp", network_);
  visitor.child("input_layernorm", before_attention_);
  if (behind_attention_) visitor.child("post_attention_layernorm", *behind_attention_);
  visitor.child(behind_attention_ ? "pre_feedforward_layernorm" : "post_attention_layernorm", before_network_);
  if (behind_network_) visitor.child("post_feedforward_layernorm", *behind_network_);
}

Decoder::Decoder(const Config& config, const Weights& weights, const DecoderOptions& options)
    : Pretrained(config),
      options_(options),
      prefix_(prefix_of(config, weights, "model", "embed_tokens.weight")),
      head_name_(checked_head(config)),
      table_(weights.at(prefix_).at("embed_tokens"), options.vocabulary, options.width),
      norm_(weights.at(prefix_).at("norm"), options.width, options.norm, options.eps) {
  const Weights layers = weights.at(prefix_).at("layers");
  for (std::int64_t i = 0; i < options.layers; ++i)
    layers_.push_back(std::make_unique<DecoderLayer>(layers.at(std::to_string(i)), options.layer(i)));
  options_.layer = {};
  for (const auto& rope : options_.ropes) rope->prepare();
  if (head_name_ == "CausalLM") {
    is_tied_ = config.flag("tie_word_embeddings", true);
    if (!is_tied_)
      head_.emplace(weights.at("lm_head"),
                    ProjectionOptions{.in = options.width, .out = options.vocabulary, .bias = false, .is_head = true});
  } else if (head_name_ != "Model") {
    head_.emplace(weights.at("score"),
                  ProjectionOptions{.in = options.width,
                                    .out = labels_of(config, weights, "score"),
                                    .bias = weights.has("score.bias", head_name_ == "TokenClassification"),
                                    .is_head = true});
  }
}

Array Decoder::embedded(const Array& ids) {
  require_ids(config(), ids);
  const Array x = table_(ids);
  return options_.embedding_scale == 1 ? x : x * options_.embedding_scale;
}

Array Decoder::logits_of(const Array& hidden) {
  Array logits = head_ ? (*head_)(hidden) : table_.logits_of(hidden);
  if (options_.soft_cap > 0) logits = tanh(logits * (1 / options_.soft_cap)) * options_.soft_cap;
  return logits;
}

Array Decoder::vocabulary_weight() const {
  if (head_name_ != "CausalLM" || options_.soft_cap > 0) return {};
  if (!head_) return table_.weight();
  return head_->has_adapter() ? Array{} : Array(head_->weight());
}

// Those of each text's last token that is no padding.
Array Decoder::last_tokens(const Array& values, const ModelInput& input) const {
  const Shape& shape = values.shape();
  const std::int64_t padding = config().integer("pad_token_id", -1);
  Array last;  // i32 or i64 [N]
  if (input.lengths.defined()) {
    last = input.lengths - full({1}, 1, i32);
  } else if (padding >= 0) {
    const Array places = arange(0, static_cast<double>(shape[1]), 1, i32);
    const Array counts = not_equal(input.x, full({1}, padding, i32));
    last = max(places * astype(counts, i32), {1});
  } else {
    return reshape(slice(values, 1, shape[1] - 1, shape[1]), {shape[0], shape[2]});
  }
  const Array index = broadcast_to(reshape(last, {shape[0], 1, 1}), {shape[0], 1, shape[2]});
  return reshape(gather(values, 1, contiguous(index)), {shape[0], shape[2]});
}

ModelOutput Decoder::compute(const ModelInput& input) {
  Array x = embedded(input.x);
  Sight sight{input.lengths, input.mask};
  if (input.texts.defined()) {
    const std::int64_t batch = input.x.shape()[0], tokens = input.x.shape()[1];
    if ((input.texts.dtype() != i32 && input.texts.dtype() != i64) || input.texts.shape() != input.x.shape())
      throw ArgumentError(kind() + ": expected texts as i32 or i64 " + input.x.shape().to_string() + ", got " +
                          std::string(name_of(input.texts.dtype())) + " " + input.texts.shape().to_string());
    sight.texts = equal(reshape(input.texts, {batch, 1, tokens, 1}), reshape(input.texts, {batch, 1, 1, tokens}));
  }
  run_blocks(layers_.size(), [&](std::size_t i) { x = layers_[i]->forward(x, sight, nullptr); });
  ModelOutput output{.hidden = norm_(x)};
  if (head_name_ == "Model") return output;
  output.logits = logits_of(output.hidden);
  if (head_name_ == "SequenceClassification") output.logits = last_tokens(output.logits, input);
  return output;
}

Array Decoder::forward(const Input& ids, DecoderCache& cache) {
  DecoderCache* const caches[] = {&cache};
  require_caches(*this, caches, layers_.size());
  return call([&] {
    Array x = embedded(ids);
    const Sight sight;
    for (std::size_t i = 0; i < layers_.size(); ++i) x = layers_[i]->forward(x, sight, &cache[i]);
    const std::int64_t length = x.shape()[1];
    const Array hidden = norm_(slice(x, 1, length - 1, length));
    return head_name_ == "Model" ? hidden : logits_of(hidden);
  });
}

Array Decoder::forward_texts(const Input& ids, std::span<const std::int64_t> counts,
                             std::span<DecoderCache* const> caches) {
  require_texts(*this, ids, counts, caches, layers_.size());
  return call([&] {
    Array x = embedded(ids);
    const std::vector<Sight> sights(caches.size());
    for (std::size_t i = 0; i < layers_.size(); ++i)
      x = layers_[i]->forward_texts(x, counts, sights, caches_of(caches, i));
    const Array hidden = norm_(last_of_each(x, counts));
    return head_name_ == "Model" ? hidden : logits_of(hidden);
  });
}

bool Decoder::reads_in_parts(std::int64_t length) const {
  return std::all_of(options_.ropes.begin(), options_.ropes.end(),
                     [&](const auto& rope) { return !rope->turns_by_length(length); });
}

DecoderCache Decoder::make_cache(std::int64_t batch, std::int64_t capacity) const {
  DecoderCache cache;
  for (const auto& layer : layers_) cache.push_back(layer->make_cache(batch, capacity));
  return cache;
}

std::int64_t Decoder::turning_point() const {
  std::int64_t first = 0;
  for (const auto& rope : options_.ropes)
    if (rope->turning_point() > 0 && (first == 0 || rope->turning_point() < first)) first = rope->turning_point();
  return first;
}

void Decoder::visit(nn::Visitor& visitor) {
  const std::string prefix = prefix_.empty() ? "" : prefix_ + ".";
  visitor.child(prefix + "embed_tokens", table_);
  for (std::size_t i = 0; i < layers_.size(); ++i) visitor.child(prefix + "layers." + std::to_string(i), *layers_[i]);
  visitor.child(prefix + "norm", norm_);
  if (head_) visitor.child(head_name_ == "CausalLM" ? "lm_head" : "score", *head_);
}

}  // namespace samebytes::models
