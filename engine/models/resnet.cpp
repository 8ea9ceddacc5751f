// ResNet as transformers has it (K. He et al., "Deep residual learning for image recognition", 2015; version 1.5, whose
// bottlenecks have their stride in the 3x3 convolution). models::ResNet is the one for small images.
#include "models/architectures.h"
#include "models/layers.h"
#include "samebytes/error.h"
#include "samebytes/nn.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

struct UnitOptions {
  std::int64_t in = 0, out = 0;
  int kernel = 3, stride = 1;
  bool has_relu = true;
};
// Convolution, batch norm, ReLU.
class Unit final : public nn::Module {
 public:
  Unit(const Weights& at, const UnitOptions& o)
      : has_relu_(o.has_relu),
        // A layer makes its weight at its first use, so a size that the file does not have costs nothing.
        convolution_(
            {.in = o.in, .out = o.out, .kernel = o.kernel, .stride = o.stride, .pad = o.kernel / 2, .bias = false}),
        norm_({.features = o.out}) {
    at.at("convolution").load(convolution_);
    at.at("normalization").load(norm_);
  }
  Array forward(const Array& x) override {
    const Array y = norm_(convolution_(x));
    return has_relu_ ? relu(y) : y;
  }
  void visit(nn::Visitor& visitor) override {
    visitor.child("convolution", convolution_);
    visitor.child("normalization", norm_);
  }
  std::string kind() const override { return "Unit"; }

 private:
  bool has_relu_;
  nn::Conv2d convolution_;
  nn::BatchNorm norm_;
};

struct LayerOptions {
  std::int64_t in = 0, out = 0;
  int stride = 1;
  bool is_bottleneck = false, early_stride = false;
};
class Layer final : public nn::Module {
 public:
  Layer(const Weights& at, const LayerOptions& o) {
    const Weights units = at.at("layer");
    const auto add = [&](const UnitOptions& unit) {
      units_.push_back(std::make_unique<Unit>(units.at(std::to_string(units_.size())), unit));
    };
    if (o.is_bottleneck) {
      const std::int64_t inner = std::max<std::int64_t>(o.out / 4, 1);
      add({.in = o.in, .out = inner, .kernel = 1, .stride = o.early_stride ? o.stride : 1});
      add({.in = inner, .out = inner, .stride = o.early_stride ? 1 : o.stride});
      add({.in = inner, .out = o.out, .kernel = 1, .has_relu = false});
    } else {
      add({.in = o.in, .out = o.out, .stride = o.stride});
      add({.in = o.out, .out = o.out, .has_relu = false});
    }
    if (o.in != o.out || o.stride != 1)
      shortcut_ = std::make_unique<Unit>(
          at.at("shortcut"), UnitOptions{.in = o.in, .out = o.out, .kernel = 1, .stride = o.stride, .has_relu = false});
  }
  Array forward(const Array& x) override {
    Array y = x;
    for (const auto& unit : units_) y = (*unit)(y);
    return relu(y + (shortcut_ ? (*shortcut_)(x) : x));
  }
  void visit(nn::Visitor& visitor) override {
    if (shortcut_) visitor.child("shortcut", *shortcut_);
    for (std::size_t i = 0; i < units_.size(); ++i) visitor.child("layer." + std::to_string(i), *units_[i]);
  }
  std::string kind() const override { return "ResNetLayer"; }

 private:
  std::vector<std::unique_ptr<Unit>> units_;
  std::unique_ptr<Unit> shortcut_;
};

std::vector<std::int64_t> sizes_of(const Config& config, const std::string& key) {
  std::vector<std::int64_t> sizes;
  for (const double size : config.numbers(key)) {
    if (!(size >= 1 && size <= 1e6 && size == static_cast<double>(static_cast<std::int64_t>(size))))
      config.fail(key, "whole numbers from 1 to a million", std::to_string(size));
    sizes.push_back(static_cast<std::int64_t>(size));
  }
  if (sizes.empty()) config.fail(key, "a list of sizes", "none");
  return sizes;
}

class ResNetV1 final : public Pretrained {
 public:
  ResNetV1(const Config& config, const Weights& weights)
      : Pretrained(config),
        channels_(config.size("num_channels", 3)),
        head_(head_of(config)),
        prefix_(prefix_of(config, weights, "resnet", "embedder.embedder.convolution.weight")),
        stem_(weights.at(prefix_).at("embedder.embedder"),
              {.in = channels_, .out = config.size("embedding_size"), .kernel = 7, .stride = 2}) {
    const std::string type = config.text("layer_type", "bottleneck");
    if (type != "basic" && type != "bottleneck") config.fail("layer_type", "basic or bottleneck", "'" + type + "'");
    if (activation_of(config, "hidden_act", "relu") != Activation::relu)
      config.fail("hidden_act", "relu", "'" + config.text("hidden_act") + "'");
    const std::vector<std::int64_t> widths = sizes_of(config, "hidden_sizes"), depths = sizes_of(config, "depths");
    if (widths.size() != depths.size())
      config.fail("depths", std::to_string(widths.size()) + " numbers", std::to_string(depths.size()));
    LayerOptions layer{.in = config.size("embedding_size"),
                       .is_bottleneck = type == "bottleneck",
                       .early_stride = config.flag("downsample_in_bottleneck", false)};
    for (std::size_t stage = 0; stage < widths.size(); ++stage)
      for (std::int64_t i = 0; i < depths[stage]; ++i) {
        layer.out = widths[stage];
        layer.stride = i == 0 && (stage > 0 || config.flag("downsample_in_first_stage", false)) ? 2 : 1;
        const std::string name = "encoder.stages." + std::to_string(stage) + ".layers." + std::to_string(i);
        names_.push_back(name);
        layers_.push_back(std::make_unique<Layer>(weights.at(prefix_).at(name), layer));
        layer.in = layer.out;
      }
    if (head_ == "ImageClassification") {
      classifier_.emplace(
          weights.at("classifier.1"),
          ProjectionOptions{.in = layer.in, .out = labels_of(config, weights, "classifier.1"), .is_head = true});
    } else if (head_ != "Model") {
      config.fail("architectures", "a name that ends in Model or ForImageClassification", "'" + head_ + "'");
    }
  }

  void visit(nn::Visitor& visitor) override {
    const std::string prefix = prefix_.empty() ? "" : prefix_ + ".";
    visitor.child(prefix + "embedder.embedder", stem_);
    for (std::size_t i = 0; i < layers_.size(); ++i) visitor.child(prefix + names_[i], *layers_[i]);
    if (classifier_) visitor.child("classifier.1", *classifier_);
  }

 protected:
  bool is_stack() const override { return true; }
  ModelOutput compute(const ModelInput& input) override {
    const Array& image = input.x;
    if (!image.defined() || image.dtype() != f32 || image.shape().rank() != 4 || image.shape()[3] != channels_)
      throw ArgumentError(kind() + ": expected images, f32 [N, H, W, " + std::to_string(channels_) + "], got " +
                          (image.defined() ? std::string(name_of(image.dtype())) + " " + image.shape().to_string()
                                           : std::string("an empty handle")));
    Array x =
        max_pool2d(stem_(image), {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1});
    run_blocks(layers_.size(), [&](std::size_t i) { x = (*layers_[i])(x); });
    ModelOutput output{.hidden = x, .pooled = global_avg_pool2d(x)};
    if (classifier_) output.logits = (*classifier_)(output.pooled);
    return output;
  }

 private:
  std::int64_t channels_;
  std::string head_, prefix_;
  Unit stem_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::optional<Projection> classifier_;
};

}  // namespace

Architecture resnet_v1() {
  return {{"resnet"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            return std::make_unique<ResNetV1>(config, weights);
          }};
}

}  // namespace samebytes::models
