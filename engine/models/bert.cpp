// BERT and MiniLM (J. Devlin et al., "BERT", 2019), RoBERTa (Y. Liu et al., 2019): encoders of texts with a pooler and
// heads for masked words, sentences and tokens. RoBERTa counts positions behind its padding id and has other heads.
#include "models/architectures.h"
#include "models/encoder.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

EncoderOptions bert_encoder(const Config& config) {
  if (config.flag("is_decoder", false)) config.fail("is_decoder", "false", "true");
  const std::string positions = config.text("position_embedding_type", "absolute");
  if (positions != "absolute") config.fail("position_embedding_type", "absolute", "'" + positions + "'");
  EncoderOptions o;
  o.attention = self_attention_of(config, "num_attention_heads", "hidden_size");
  o.attention.bias = o.attention.result_bias = true;
  o.attention.query = "self.query";
  o.attention.key = "self.key";
  o.attention.value = "self.value";
  o.attention.result = "output.dense";
  o.network = {.width = o.attention.width,
               .hidden = config.size("intermediate_size"),
               .activation = activation_of(config, "hidden_act", "gelu"),
               .bias = true,
               .up = "intermediate.dense",
               .down = "output.dense"};
  o.names = {.attention = "attention", .norm1 = "attention.output.LayerNorm", .norm2 = "output.LayerNorm"};
  o.eps = config.number("layer_norm_eps", 1e-12);
  return o;
}

// The head for masked words: dense, activation, norm, and the product with the embedding plus a bias.
class WordHead final : public nn::Module {
 public:
  WordHead(const Weights& weights, const Config& config, bool is_roberta, std::int64_t width, double eps)
      : dense_name_(is_roberta ? "lm_head.dense" : "cls.predictions.transform.dense"),
        norm_name_(is_roberta ? "lm_head.layer_norm" : "cls.predictions.transform.LayerNorm"),
        bias_name_(is_roberta ? "lm_head.bias" : "cls.predictions.bias"),
        activation_(is_roberta ? Activation::gelu : activation_of(config, "hidden_act", "gelu")),
        dense_(weights.at(dense_name_), {.in = width, .out = width}),
        norm_(weights.at(norm_name_), width, NormKind::layer, eps),
        bias_(weights.take(bias_name_, {config.size("vocab_size")}, nn::Layout::plain, Initial::zeros)) {}
  using Module::forward;
  Array forward(const Array& x, const Array& table) {
    return call([&] { return project(norm_(activate(dense_(x), activation_)), table, bias_); });
  }
  void visit(nn::Visitor& visitor) override {
    visitor.child(dense_name_, dense_);
    visitor.child(norm_name_, norm_);
    visitor.parameter(bias_name_, bias_);
  }
  std::string kind() const override { return "WordHead"; }

 private:
  std::string dense_name_, norm_name_, bias_name_;
  Activation activation_;
  Projection dense_;
  Norm norm_;
  nn::Parameter bias_;
};

class Bert final : public Pretrained {
 public:
  Bert(const Config& config, const Weights& weights, bool is_roberta)
      : Pretrained(config),
        is_roberta_(is_roberta),
        width_(config.size("hidden_size")),
        padding_(is_roberta ? config.integer("pad_token_id", 1) : -1),
        longest_(config.size("max_position_embeddings")),
        eps_(config.number("layer_norm_eps", 1e-12)),
        head_(head_of(config)),
        prefix_(prefix_of(config, weights, is_roberta ? "roberta" : "bert", "embeddings.word_embeddings.weight")),
        words_(below("embeddings.word_embeddings", weights), config.size("vocab_size"), width_),
        places_(below("embeddings.position_embeddings", weights), longest_, width_),
        types_(below("embeddings.token_type_embeddings", weights), config.size("type_vocab_size", 2), width_),
        norm_(below("embeddings.LayerNorm", weights), width_, NormKind::layer, eps_),
        blocks_(
            encoder_blocks(below("encoder.layer", weights), config.size("num_hidden_layers"), bert_encoder(config))) {
    const bool wants_pooler = head_ == "Model" || (head_ == "SequenceClassification" && !is_roberta);
    if (wants_pooler && below("pooler.dense", weights).has("weight", true))
      pooler_.emplace(below("pooler.dense", weights), ProjectionOptions{.in = width_, .out = width_});
    if (head_ == "MaskedLM") {
      words_head_.emplace(weights, config, is_roberta, width_, eps_);
    } else if (head_ == "SequenceClassification" && is_roberta) {
      dense_.emplace(weights.at("classifier.dense"), ProjectionOptions{.in = width_, .out = width_});
      add_classifier(weights, "classifier.out_proj");
    } else if (head_ == "SequenceClassification" || head_ == "TokenClassification") {
      if (head_ == "SequenceClassification" && !pooler_)
        config.fail("architectures", "a pooler, which this head needs", "none in the files");
      add_classifier(weights, "classifier");
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
    visitor.child(prefix + "embeddings.token_type_embeddings", types_);
    visitor.child(prefix + "embeddings.LayerNorm", norm_);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      visitor.child(prefix + "encoder.layer." + std::to_string(i), *blocks_[i]);
    if (pooler_) visitor.child(prefix + "pooler.dense", *pooler_);
    if (words_head_) visitor.child("", *words_head_);
    if (dense_) visitor.child("classifier.dense", *dense_);
    if (classifier_) visitor.child(classifier_name_, *classifier_);
  }

 protected:
  bool is_stack() const override { return true; }
  ModelOutput compute(const ModelInput& input) override {
    require_ids(config(), input.x, longest_ - (is_roberta_ ? padding_ + 1 : 0));
    Array x = words_(input.x) + places_(positions_of(input.x)) + types_(types_of(input));
    x = norm_(x);
    const Sight sight{input.lengths, input.mask};
    run_blocks(blocks_.size(), [&](std::size_t i) { x = blocks_[i]->forward(x, sight); });
    ModelOutput output{.hidden = x};
    if (pooler_) output.pooled = tanh((*pooler_)(first_token(x)));
    if (words_head_) output.logits = words_head_->forward(x, words_.weight());
    if (head_ == "TokenClassification") output.logits = (*classifier_)(x);
    if (head_ == "SequenceClassification")
      output.logits = (*classifier_)(is_roberta_ ? tanh((*dense_)(first_token(x))) : output.pooled);
    return output;
  }

 private:
  Weights below(const std::string& name, const Weights& weights) const { return weights.at(prefix_).at(name); }
  void add_classifier(const Weights& weights, const std::string& name) {
    classifier_name_ = name;
    classifier_.emplace(weights.at(name), ProjectionOptions{.in = width_, .out = labels_of(config(), weights, name)});
  }
  Array positions_of(const Array& ids) const {
    Array places = arange(0, static_cast<double>(ids.shape()[1]), 1, i32);
    if (!is_roberta_) return places;
    // Tokens count from padding + 1 on, padding itself has the number `padding`.
    const Array padding = full({1}, padding_, i32);
    const Array counts = astype(not_equal(ids, padding), i32);
    return cumsum(counts, 1) * counts + padding;
  }
  Array types_of(const ModelInput& input) const {
    return input.types.defined() ? input.types : zeros({1, input.x.shape()[1]}, i32);
  }

  bool is_roberta_;
  std::int64_t width_, padding_, longest_;
  double eps_;
  std::string head_, prefix_;
  Table words_, places_, types_;
  Norm norm_;
  EncoderBlocks blocks_;
  std::optional<Projection> pooler_, dense_, classifier_;
  std::string classifier_name_;
  std::optional<WordHead> words_head_;
};

}  // namespace

Architecture bert() {
  return {{"bert", "roberta", "xlm-roberta"},
          [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            return std::make_unique<Bert>(config, weights, config.text("model_type") != "bert");
          }};
}

}  // namespace samebytes::models
