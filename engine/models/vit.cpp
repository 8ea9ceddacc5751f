// ViT (A. Dosovitskiy et al., "An image is worth 16x16 words", 2021) and DeiT (H. Touvron et al., 2021), which has one
// more learned token: patches of an image as the tokens of an encoder.
#include "models/architectures.h"
#include "models/encoder.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

EncoderOptions vit_encoder(const Config& config) {
  EncoderOptions o;
  o.attention = self_attention_of(config, "num_attention_heads", "hidden_size");
  o.attention.bias = config.flag("qkv_bias", true);
  o.attention.result_bias = true;
  o.attention.query = "attention.query";
  o.attention.key = "attention.key";
  o.attention.value = "attention.value";
  o.attention.result = "output.dense";
  o.network = {.width = o.attention.width,
               .hidden = config.size("intermediate_size"),
               .activation = activation_of(config, "hidden_act", "gelu"),
               .bias = true,
               .up = "intermediate.dense",
               .down = "output.dense"};
  o.names = {.attention = "attention", .norm1 = "layernorm_before", .norm2 = "layernorm_after"};
  o.eps = config.number("layer_norm_eps", 1e-12);
  o.norm_first = true;
  return o;
}

class Vit final : public Pretrained {
 public:
  Vit(const Config& config, const Weights& weights, bool is_deit)
      : Pretrained(config),
        width_(config.size("hidden_size")),
        channels_(config.size("num_channels", 3)),
        patch_(config.size("patch_size", 16)),
        image_(config.size("image_size", 224)),
        extra_(is_deit ? 2 : 1),
        head_(head_of(config)),
        prefix_(prefix_of(config, weights, is_deit ? "deit" : "vit", "embeddings.cls_token")),
        class_token_(embeddings(weights).take("cls_token", {1, 1, width_})),
        blocks_(encoder_blocks(weights.at(prefix_).at("encoder.layer"), config.size("num_hidden_layers"),
                               vit_encoder(config))),
        norm_(weights.at(prefix_).at("layernorm"), width_, NormKind::layer, config.number("layer_norm_eps", 1e-12)) {
    if (image_ % patch_ != 0 || image_ < patch_)
      config.fail("patch_size", "a divisor of image_size, " + std::to_string(image_), std::to_string(patch_));
    const std::int64_t side = image_ / patch_;
    if (is_deit) distillation_token_ = embeddings(weights).take("distillation_token", {1, 1, width_});
    positions_ = embeddings(weights).take("position_embeddings", {1, side * side + extra_, width_});
    const Weights patches = embeddings(weights).at("patch_embeddings.projection");
    patch_weight_ = patches.take("weight", {width_, channels_, patch_, patch_});
    patch_bias_ = patches.take("bias", {width_}, nn::Layout::plain, Initial::zeros);
    if (head_ == "Model") {
      const Weights pooler = weights.at(prefix_).at("pooler.dense");
      if (pooler.has("weight", true)) {
        pooler_.emplace(pooler, ProjectionOptions{.in = width_, .out = config.size("pooler_output_size", width_)});
        pooler_activation_ = activation_of(config, "pooler_act", "tanh");
      }
    } else if (head_ == "ImageClassification") {
      classifier_.emplace(
          weights.at("classifier"),
          ProjectionOptions{.in = width_, .out = labels_of(config, weights, "classifier"), .is_head = true});
    } else {
      config.fail("architectures", "a name that ends in Model or ForImageClassification", "'" + head_ + "'");
    }
  }

  void visit(nn::Visitor& visitor) override {
    const std::string prefix = prefix_.empty() ? "" : prefix_ + ".";
    visitor.parameter(prefix + "embeddings.cls_token", class_token_);
    if (distillation_token_.defined()) visitor.parameter(prefix + "embeddings.distillation_token", distillation_token_);
    visitor.parameter(prefix + "embeddings.position_embeddings", positions_);
    visitor.parameter(prefix + "embeddings.patch_embeddings.projection.weight", patch_weight_);
    visitor.parameter(prefix + "embeddings.patch_embeddings.projection.bias", patch_bias_);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      visitor.child(prefix + "encoder.layer." + std::to_string(i), *blocks_[i]);
    visitor.child(prefix + "layernorm", norm_);
    if (pooler_) visitor.child(prefix + "pooler.dense", *pooler_);
    if (classifier_) visitor.child("classifier", *classifier_);
  }

 protected:
  bool is_stack() const override { return true; }
  ModelOutput compute(const ModelInput& input) override {
    Array x = embedded(input.x);
    run_blocks(blocks_.size(), [&](std::size_t i) { x = blocks_[i]->forward(x, {}); });
    ModelOutput output{.hidden = norm_(x)};
    if (pooler_) output.pooled = activate((*pooler_)(first_token(output.hidden)), pooler_activation_);
    if (classifier_) output.logits = (*classifier_)(first_token(output.hidden));
    return output;
  }

 private:
  Weights embeddings(const Weights& weights) const { return weights.at(prefix_).at("embeddings"); }

  // The convolution whose stride is its size is a product of patches with its weight as the file has it.
  Array embedded(const Array& image) {
    const std::int64_t side = image_ / patch_;
    if (!image.defined() || image.dtype() != f32 || image.shape().rank() != 4 || image.shape()[1] != image_ ||
        image.shape()[2] != image_ || image.shape()[3] != channels_)
      throw ArgumentError(kind() + ": expected images, f32 [N, " + std::to_string(image_) + ", " +
                          std::to_string(image_) + ", " + std::to_string(channels_) + "], got " +
                          (image.defined() ? std::string(name_of(image.dtype())) + " " + image.shape().to_string()
                                           : std::string("an empty handle")));
    const std::int64_t batch = image.shape()[0], values = channels_ * patch_ * patch_;
    const Array apart = reshape(image, {batch, side, patch_, side, patch_, channels_});
    const Array patches = reshape(contiguous(transpose(apart, {0, 1, 3, 5, 2, 4})), {batch, side * side, values});
    const Array tokens = project(patches, reshape(patch_weight_, {width_, values}), patch_bias_);
    std::vector<Array> all;
    for (const Array& token : {Array(class_token_), Array(distillation_token_)})
      if (token.defined()) all.push_back(contiguous(broadcast_to(widened(token), {batch, 1, width_})));
    all.push_back(tokens);
    return concat(all, 1) + widened(positions_);
  }

  std::int64_t width_, channels_, patch_, image_, extra_;
  std::string head_, prefix_;
  nn::Parameter class_token_, distillation_token_, positions_, patch_weight_, patch_bias_;
  EncoderBlocks blocks_;
  Norm norm_;
  std::optional<Projection> pooler_, classifier_;
  Activation pooler_activation_ = Activation::tanh;
};

}  // namespace

Architecture vit() {
  return {{"vit", "deit"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            return std::make_unique<Vit>(config, weights, config.text("model_type") == "deit");
          }};
}

}  // namespace samebytes::models
