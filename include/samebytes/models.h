// Complete networks, to train or to load published weights into: parameters have the names of the published
// implementations. Constructing a model computes nothing; parameters are made at their first use. Each model has its
// own section and its own engine/nn/models_<name>.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/nn.h"

namespace samebytes::models {

// ---- residual networks for small images: engine/nn/models_resnet.cpp

struct ResNetOptions {
  int in = 3;        // channels of the image
  int classes = 10;  // of the output
  int width = 16;    // channels of the first stage; the others have two and four times as many
};

// x [N, H, W, in] -> logits [N, classes] (K. He et al., "Deep residual learning for image recognition", 2015, section
// 4.2): 3x3 convolution, three stages of (depth - 2) / 6 blocks of two 3x3 convolutions with batch norm and ReLU, the
// first block of the second and third stage with stride 2, global average, linear. Where the size changes, the shortcut
// is a 1x1 convolution with batch norm; depth 20 then has 272 474 parameters. Names: conv1, bn1, layer1.0.conv1, ...,
// layer2.0.downsample.0, ..., fc. Throws ArgumentError unless depth is 6 n + 2: 20, 32, 44, 56, ...
class ResNet final : public nn::Module {
 public:
  explicit ResNet(int depth, const ResNetOptions& options = {});
  Array forward(const Array& x) override;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "ResNet"; }
  std::string describe() const override { return "ResNet(" + std::to_string(depth_) + ")"; }

 protected:
  bool is_stack() const override { return true; }  // of all blocks of all stages

 private:
  int depth_;
  nn::Conv2d conv1_;
  nn::BatchNorm bn1_;
  std::vector<nn::Sequential> stages_;
  nn::Linear fc_;
};
ResNet resnet(int depth, const ResNetOptions& options = {});

// ---- residual networks for sequences: engine/nn/models_series.cpp

struct ResNet1dOptions {
  std::int64_t in = 1;  // channels of the sequence
  std::int64_t classes = 2;
  std::int64_t width = 64;  // channels of the first block; the other two have twice as many
};

// x [N, T, in] -> logits [N, classes] (Z. Wang et al., "Time series classification from scratch with deep neural
// networks", 2017): three blocks of convolutions 7, 5, 3 with batch norm and ReLU around a shortcut (batch norm,
// preceded by a 1x1 convolution where the channels change), mean over time, linear. The paper's first kernel has size
// 8; here it has 7, so that it has a centre. Names: blocks.0.conv1, blocks.0.bn1, ..., blocks.0.shortcut.0, ..., fc.
class ResNet1d final : public nn::Module {
 public:
  explicit ResNet1d(const ResNet1dOptions& options);
  Array forward(const Array& x) override;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "ResNet1d"; }

 private:
  nn::Sequential blocks_;
  nn::Linear fc_;
};
ResNet1d resnet1d(const ResNet1dOptions& options);

// ---- transits of planets: engine/nn/models_transit.cpp

struct TransitOptions {
  bool has_global = true;  // the branch over the whole folded curve
  bool has_local = true;   // the branch over the part around the transit
  float dropout = 0.3f;
  // The engine's device that runs the branch over the local view, in parallel with the other branch
  // (EngineOptions::split); unset: the device of the rest. The results are the same bytes.
  std::optional<int> local_device = {};
};

// Two branches over the global and the local view of a folded light curve (after C. Shallue and A. Vanderburg,
// "Identifying exoplanets with deep learning", 2018): each has three blocks of convolution, batch norm, ReLU and
// max-pool 2, with 32, 32, 64 channels and kernels 7, 5, 5 for the global view and 5, 3, 3 for the local one. The means
// over the points, concatenated, go through layer norm, linear 128, ReLU, dropout and a linear layer to one logit [N,
// 1].
class Transit final : public nn::Module {
 public:
  explicit Transit(const TransitOptions& options = {});
  // Views [N, points, 1]; a view without a branch is ignored and may be an empty handle. Throws ArgumentError for a
  // local_device that the engine does not have.
  Array forward(const Array& global, const Array& local);
  Array forward_all(std::span<const Array> inputs) override;  // (view) or (global, local)
  // For a network with one branch; throws ArgumentError if it has two.
  Array forward(const Array& view) override;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "Transit"; }

 private:
  Array logits(const Array& global, const Array& local);
  Array on_local_device(const Array& local);
  TransitOptions options_;
  nn::Sequential global_, local_, head_;
};

Transit transit(const TransitOptions& options = {});

// ---- recurrent classifier: engine/nn/models_lstm.cpp

struct LstmClassifierOptions {
  std::int64_t in = 1;  // values per step
  std::int64_t hidden = 64;
  std::int64_t classes = 2;
  int layers = 1;
  bool bidirectional = true;
  double dropout = 0.0;  // between the layers, and on the input of the linear layer
};

// x [N, T, in] -> logits [N, classes]: an LSTM over the steps, then dropout and a linear layer on its last states,
// those of each sequence's own last step if `lengths` (i32 [N]) is given. Names: lstm, fc.
class LstmClassifier final : public nn::Module {
 public:
  explicit LstmClassifier(const LstmClassifierOptions& options);
  Array forward(const Array& x) override { return forward(x, {}); }
  Array forward(const Input& x, const Input& lengths);
  Array forward_all(std::span<const Array> inputs) override;  // (x) or (x, lengths)
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "LstmClassifier"; }

 private:
  nn::Lstm lstm_;
  nn::Dropout dropout_;
  nn::Linear fc_;
};

LstmClassifier lstm_classifier(const LstmClassifierOptions& options);

// ---- GPT-2 (A. Radford et al., "Language models are unsupervised multitask learners", 2019):
// engine/nn/models_gpt.cpp

struct GptOptions {
  std::int64_t vocabulary = 50257;  // V
  std::int64_t context = 1024;      // most tokens
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;  // C
  double dropout = 0.1;      // on the embedding and on every block's results, in training mode
  Dtype dtype = f32;
};
// nano: 4 layers, 4 heads, width 128, context 64, a vocabulary of 256 (bytes), no dropout: 0.8 M parameters. small: 124
// M, medium: 355 M, as published.
enum class GptSize : std::uint8_t { nano, small, medium };
GptOptions gpt_options(GptSize size);

using GptCache = std::vector<nn::KeyValueCache>;  // one per layer

// Token ids [N, T] (i32, i64 or u8, T at most `context`) -> logits [N, T, V]: token and learned position embedding,
// blocks, a norm, and the product with the token embedding. Weights start normal with deviation 0.02, those of
// projections before an addition with 0.02 / sqrt(2 layers). Names and file layout are those of the published
// safetensors files (wte.weight, h.0.attn.c_attn.weight as [in, out], ...), which io::load reads. An id outside the
// vocabulary gives NaN.
class Gpt final : public nn::Module {
 public:
  explicit Gpt(const GptOptions& options);
  Array forward(const Array& ids) override;
  // cross_entropy of forward's logits with the next tokens `target` [N, T] (i32), without ever holding all logits (see
  // linear_cross_entropy in ops/losses.h for the options).
  Array loss(const Input& ids, const Input& target, const LinearCrossEntropyOptions& options = {});
  // Processes the next T tokens and returns the logits of the last one only, [N, 1, V].
  Array forward(const Input& ids, GptCache& cache);
  GptCache make_cache(std::int64_t batch = 1) const;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "Gpt"; }
  std::string describe() const override;

  const GptOptions& options() const { return options_; }

 protected:
  bool is_stack() const override { return true; }

 private:
  Array embed(const Array& ids, std::int64_t offset, bool by_number) const;
  Array hidden(const Array& ids);  // [N, T, C], the input of the product with the token embedding
  GptOptions options_;
  nn::Parameter tokens_, positions_;
  std::vector<nn::TransformerBlock> blocks_;
  nn::LayerNorm norm_;
};
Gpt gpt(const GptOptions& options);
Gpt gpt(GptSize size);

struct GenerateOptions {
  std::int64_t tokens = 100;  // to add
  double temperature = 1.0;   // 0: always the most likely token
  std::int64_t top_k = 0;     // samples among the k most likely ones; 0: among all
  double top_p = 1;           // ... among the most likely ones that have this share of the probability together
  double min_p = 0;           // ... without those that are less likely than this share of the most likely one
  // Divides the logits of tokens that the text has by it, or multiplies negative ones (N. Keskar et al., "CTRL", 2019).
  double repetition_penalty = 1;
  // A longer prompt is read in parts of this many tokens, so that no memory is needed for all of its positions at once;
  // 0: at once.
  std::int64_t prompt_chunk = 512;
  std::uint64_t seed = 0;                              // of the draws
  std::function<bool(std::int32_t id)> on_token = {};  // called with each new token; false ends the text
};
// Returns the prompt's ids followed by generated ones. Generates token by token with a cache, in evaluation mode and
// without gradients. When the context is full, it continues from its last half. Penalty, temperature, top_k, top_p and
// min_p act in this order, as in transformers. Throws ArgumentError for an empty prompt, an id outside the vocabulary
// and options out of range; Error if logits are not finite.
std::vector<std::int32_t> generate(Gpt& model, std::span<const std::int32_t> prompt,
                                   const GenerateOptions& options = {});

}  // namespace samebytes::models
