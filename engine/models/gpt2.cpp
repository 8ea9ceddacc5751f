// GPT-2 (A. Radford et al., "Language models are unsupervised multitask learners", 2019): learned positions, layer
// norms, biases, weights stored as [in, out]. models::Gpt is the same network with weights of its own; this one reads a
// folder.
#include "models/architectures.h"
#include "models/layers.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

class Block final : public nn::Module {
 public:
  Block(const Weights& at, const SelfAttentionOptions& attention, const FeedForwardOptions& network, double eps)
      : norm1_(at.at("ln_1"), attention.width, NormKind::layer, eps),
        attention_(at.at("attn"), attention),
        norm2_(at.at("ln_2"), attention.width, NormKind::layer, eps),
        network_(at.at("mlp"), network) {}
  using Module::forward;
  Array forward(const Array& x, const Sight& sight, nn::KeyValueCache* cache) {
    return call([&] { return behind(x, attention_.forward(norm1_(x), sight, cache)); });
  }
  Array forward_texts(const Array& x, std::span<const std::int64_t> counts, std::span<const Sight> sights,
                      std::span<nn::KeyValueCache* const> caches) {
    return call([&] { return behind(x, attention_.forward_texts(norm1_(x), counts, sights, caches)); });
  }
  void visit(nn::Visitor& visitor) override {
    visitor.child("ln_1", norm1_);
    visitor.child("attn", attention_);
    visitor.child("ln_2", norm2_);
    visitor.child("mlp", network_);
  }
  std::string kind() const override { return "Gpt2Block"; }
  const SelfAttention& attention() const { return attention_; }

 private:
  Array behind(const Array& x, const Array& attended) {
    const Array middle = x + attended;
    return middle + network_(norm2_(middle));
  }
  Norm norm1_;
  SelfAttention attention_;
  Norm norm2_;
  FeedForward network_;
};

class Gpt2 final : public Pretrained {
 public:
  Gpt2(const Config& config, const Weights& weights)
      : Pretrained(config),
        width_(config.size("n_embd")),
        positions_(config.size("n_positions")),
        prefix_(prefix_of(config, weights, "transformer", "wte.weight")),
        head_(head_of(config)),
        tokens_(weights.at(prefix_).at("wte"), config.size("vocab_size"), width_),
        places_(weights.at(prefix_).at("wpe"), positions_, width_),
        norm_(weights.at(prefix_).at("ln_f"), width_, NormKind::layer, config.number("layer_norm_epsilon", 1e-5)) {
    if (head_ != "CausalLM" && head_ != "Model")
      config.fail("architectures", "GPT2Model or GPT2LMHeadModel", "'" + head_ + "'");
    for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
      if (config.flag(key, false)) config.fail(key, "false", "true");
    SelfAttentionOptions attention = self_attention_of(config, "n_head", "n_embd");
    attention.bias = attention.result_bias = attention.transposed = attention.causal = true;
    attention.fused = "c_attn";
    attention.result = "c_proj";
    if (!config.flag("scale_attn_weights", true)) attention.scale = 1;
    const FeedForwardOptions network{.width = width_,
                                     .hidden = config.size("n_inner", 4 * width_),
                                     .activation = activation_of(config, "activation_function", "gelu_new"),
                                     .bias = true,
                                     .up = "c_fc",
                                     .down = "c_proj",
                                     .transposed = true};
    const Weights layers = weights.at(prefix_).at("h");
    for (std::int64_t i = 0, count = config.size("n_layer"); i < count; ++i)
      blocks_.push_back(std::make_unique<Block>(layers.at(std::to_string(i)), attention, network,
                                                config.number("layer_norm_epsilon", 1e-5)));
  }

  bool is_decoder() const override { return true; }
  Array vocabulary_weight() const override { return head_ == "CausalLM" ? Array(tokens_.weight()) : Array{}; }
  std::string adapter_prefix() const override { return prefix_.empty() && head_ != "Model" ? "transformer" : ""; }
  using Pretrained::forward;
  Array forward(const Input& ids, DecoderCache& cache) override {
    DecoderCache* const caches[] = {&cache};
    require_caches(*this, caches, blocks_.size());
    return call([&] {
      Array x = embedded(ids, cache.front().length());
      for (std::size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i]->forward(x, {}, &cache[i]);
      const std::int64_t length = x.shape()[1];
      return logits_of(norm_(slice(x, 1, length - 1, length)));
    });
  }
  Array forward_texts(const Input& ids, std::span<const std::int64_t> counts,
                      std::span<DecoderCache* const> caches) override {
    require_texts(*this, ids, counts, caches, blocks_.size());
    std::vector<std::int32_t> places;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const std::int64_t begin = caches[i]->front().length(), end = begin + counts[i];
      if (end > positions_)
        throw ArgumentError("gpt2: expected at most " + std::to_string(positions_) + " tokens, got " +
                            std::to_string(end));
      for (std::int64_t place = begin; place < end; ++place) places.push_back(static_cast<std::int32_t>(place));
    }
    return call([&] {
      Array x = tokens_(ids) + places_(array(places, {1, static_cast<std::int64_t>(places.size())}));
      const std::vector<Sight> sights(caches.size());
      for (std::size_t i = 0; i < blocks_.size(); ++i)
        x = blocks_[i]->forward_texts(x, counts, sights, caches_of(caches, i));
      return logits_of(norm_(last_of_each(x, counts)));
    });
  }
  DecoderCache make_cache(std::int64_t batch, std::int64_t capacity) const override {
    DecoderCache cache;
    for (const auto& block : blocks_) cache.push_back(block->attention().make_cache(batch, capacity));
    return cache;
  }

  void visit(nn::Visitor& visitor) override {
    const std::string prefix = prefix_.empty() ? "" : prefix_ + ".";
    visitor.child(prefix + "wte", tokens_);
    visitor.child(prefix + "wpe", places_);
    for (std::size_t i = 0; i < blocks_.size(); ++i) visitor.child(prefix + "h." + std::to_string(i), *blocks_[i]);
    visitor.child(prefix + "ln_f", norm_);
  }

 protected:
  bool is_stack() const override { return true; }
  ModelOutput compute(const ModelInput& input) override {
    if (input.texts.defined()) throw ArgumentError("gpt2: texts need rotary positions; give each text its own row");
    Array x = embedded(input.x, 0);
    const Sight sight{input.lengths, input.mask};
    run_blocks(blocks_.size(), [&](std::size_t i) { x = blocks_[i]->forward(x, sight, nullptr); });
    ModelOutput output{.hidden = norm_(x)};
    if (head_ == "CausalLM") output.logits = logits_of(output.hidden);
    return output;
  }

 private:
  Array embedded(const Array& ids, std::int64_t offset) {
    require_ids(config(), ids, positions_ - offset);
    const auto first = static_cast<double>(offset), last = static_cast<double>(offset + ids.shape()[1]);
    return tokens_(ids) + places_(arange(first, last, 1, i32));
  }
  Array logits_of(const Array& hidden) { return head_ == "CausalLM" ? project(hidden, tokens_.weight()) : hidden; }

  std::int64_t width_, positions_;
  std::string prefix_, head_;
  Table tokens_, places_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Norm norm_;
};

}  // namespace

Architecture gpt2() {
  return {{"gpt2"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            return std::make_unique<Gpt2>(config, weights);
          }};
}

}  // namespace samebytes::models
