// Decoders of the Llama kind: an embedding, layers of attention and a network with norms around them, a last norm, and
// a head over the vocabulary or over labels. The families differ in the options that their files make of the config.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/layers.h"
#include "samebytes/models/pretrained.h"

namespace samebytes::models {

struct DecoderLayerOptions {
  SelfAttentionOptions attention;
  FeedForwardOptions network;
  NormKind norm = NormKind::rms;
  double eps = 1e-6;
  bool sandwich = false;  // norms behind both parts, too, under Gemma's names
};

struct DecoderOptions {
  std::int64_t width = 0, vocabulary = 0, layers = 0;
  std::function<DecoderLayerOptions(std::int64_t layer)> layer;
  std::vector<std::shared_ptr<Rope>> ropes;  // those of the layers, to be prepared
  NormKind norm = NormKind::rms;
  double eps = 1e-6;
  double embedding_scale = 1;
  double soft_cap = 0;  // of the logits; 0: none
};

// What most configs of the kind say in the same words. Layers share one rope where the config has one.
DecoderOptions decoder_of(const Config& config, double theta = 10000.0);

class DecoderLayer final : public nn::Module {
 public:
  DecoderLayer(const Weights& at, const DecoderLayerOptions& options);
  using Module::forward;
  Array forward(const Array& x, const Sight& sight, nn::KeyValueCache* cache);
  Array forward_texts(const Array& x, std::span<const std::int64_t> counts, std::span<const Sight> sights,
                      std::span<nn::KeyValueCache* const> caches);
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "DecoderLayer"; }
  nn::KeyValueCache make_cache(std::int64_t batch, std::int64_t capacity) const {
    return attention_.make_cache(batch, capacity);
  }

 private:
  template <class Attend>
  Array layer(const Array& x, const Attend& attend);
  SelfAttention attention_;
  FeedForward network_;
  Norm before_attention_, before_network_;
  std::optional<Norm> behind_attention_, behind_network_;
};

class Decoder final : public Pretrained {
 public:
  Decoder(const Config& config, const Weights& weights, const DecoderOptions& options);
  bool is_decoder() const override { return true; }
  using Pretrained::forward;
  Array forward(const Input& ids, DecoderCache& cache) override;
  Array forward_texts(const Input& ids, std::span<const std::int64_t> counts,
                      std::span<DecoderCache* const> caches) override;
  bool reads_in_parts(std::int64_t length) const override;
  DecoderCache make_cache(std::int64_t batch, std::int64_t capacity) const override;
  std::int64_t turning_point() const override;
  Array vocabulary_weight() const override;
  void visit(nn::Visitor& visitor) override;

 protected:
  ModelOutput compute(const ModelInput& input) override;
  bool is_stack() const override { return true; }

 private:
  Array embedded(const Array& ids);
  Array logits_of(const Array& hidden);
  Array last_tokens(const Array& values, const ModelInput& input) const;
  DecoderOptions options_;
  std::string prefix_, head_name_;
  Table table_;
  std::vector<std::unique_ptr<DecoderLayer>> layers_;
  Norm norm_;
  std::optional<Projection> head_;
  bool is_tied_ = false;
};

}  // namespace samebytes::models
