// DistilBERT (V. Sanh et al., 2019): BERT without segments and pooler, with names and heads of its own.
#include "models/architectures.h"
#include "models/encoder.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

constexpr double kEps = 1e-12;

EncoderOptions distilbert_encoder(const Config& config) {
  EncoderOptions o;
  o.attention = self_attention_of(config, "n_heads", "dim");
  o.attention.bias = o.attention.result_bias = true;
  o.attention.query = "q_lin";
  o.attention.key = "k_lin";
  o.attention.value = "v_lin";
  o.attention.result = "out_lin";
  o.network = {.width = o.attention.width,
               .hidden = config.size("hidden_dim"),
               .activation = activation_of(config, "activation", "gelu"),
               .bias = true,
               .up = "lin1",
               .down = "lin2"};
  o.names = {.attention = "attention", .network = "ffn", .norm1 = "sa_layer_norm", .norm2 = "output_layer_norm"};
  o.eps = kEps;
  return o;
}

class DistilBert final : public Pretrained {
 public:
  DistilBert(const Config& config, const Weights& weights)
      : Pretrained(config),
        width_(config.size("dim")),
        longest_(config.size("max_position_embeddings")),
        head_(head_of(config)),
        prefix_(prefix_of(config, weights, "distilbert", "embeddings.word_embeddings.weight")),
        words_(weights.at(prefix_).at("embeddings.word_embeddings"), config.size("vocab_size"), width_),
        places_(weights.at(prefix_).at("embeddings.position_embeddings"), longest_, width_),
        norm_(weights.at(prefix_).at("embeddings.LayerNorm"), width_, NormKind::layer, kEps),
        blocks_(encoder_blocks(weights.at(prefix_).at("transformer.layer"), config.size("n_layers"),
                               distilbert_encoder(config))) {
    const ProjectionOptions square{.in = width_, .out = width_};
    if (head_ == "MaskedLM") {
      dense_.emplace(weights.at("vocab_transform"), square);
      head_norm_.emplace(weights.at("vocab_layer_norm"), width_, NormKind::layer, kEps);
      bias_ = weights.take("vocab_projector.bias", {config.size("vocab_size")}, nn::Layout::plain, Initial::zeros);
    } else if (head_ == "SequenceClassification" || head_ == "TokenClassification") {
      if (head_ == "SequenceClassification") dense_.emplace(weights.at("pre_classifier"), square);
      classifier_.emplace(
          weights.at("classifier"),
          ProjectionOptions{.in = width_, .out = labels_of(config, weights, "classifier"), .is_head = true});
    } else if (head_ != "Model") {
      config.fail("architectures",
                  "a name that ends in Model, ForMaskedLM, ForSequenceClassification or ForTokenClassification",
                  "'" + head_ + "'");
    }
  }

  void visit(nn::Visitor& visitor) override {
    const std::string prefix = prefix_.empty() ? "" : prefix_ + ".";
    visitor.child(prefix + "embeddings.word_embeddings", words_);
    visitor.child(prefix + "embeddings.position_embeddings", places_);
    visitor.child(prefix + "embeddings.LayerNorm", norm_);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      visitor.child(prefix + "transformer.layer." + std::to_string(i), *blocks_[i]);
    if (dense_) visitor.child(head_ == "MaskedLM" ? "vocab_transform" : "pre_classifier", *dense_);
    if (head_norm_) visitor.child("vocab_layer_norm", *head_norm_);
    if (bias_.defined()) visitor.parameter("vocab_projector.bias", bias_);
    if (classifier_) visitor.child("classifier", *classifier_);
  }

 protected:
  bool is_stack() const override { return true; }
  ModelOutput compute(const ModelInput& input) override {
    require_ids(config(), input.x, longest_);
    Array x = norm_(words_(input.x) + places_(arange(0, static_cast<double>(input.x.shape()[1]), 1, i32)));
    const Sight sight{input.lengths, input.mask};
    run_blocks(blocks_.size(), [&](std::size_t i) { x = blocks_[i]->forward(x, sight); });
    ModelOutput output{.hidden = x};
    if (head_ == "MaskedLM")
      output.logits = project((*head_norm_)(activate((*dense_)(x), activation_of(config(), "activation", "gelu"))),
                              words_.weight(), bias_);
    if (head_ == "TokenClassification") output.logits = (*classifier_)(x);
    if (head_ == "SequenceClassification") output.logits = (*classifier_)(relu((*dense_)(first_token(x))));
    return output;
  }

 private:
  std::int64_t width_, longest_;
  std::string head_, prefix_;
  Table words_, places_;
  Norm norm_;
  EncoderBlocks blocks_;
  std::optional<Projection> dense_, classifier_;
  std::optional<Norm> head_norm_;
  nn::Parameter bias_;
};

}  // namespace

Architecture distilbert() {
  return {{"distilbert"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            return std::make_unique<DistilBert>(config, weights);
          }};
}

}  // namespace samebytes::models
