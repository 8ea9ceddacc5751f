// Whole networks, built from nn's layers. Parameters have the names of the published implementations, so that their
// files load by name.
#pragma once

#include <memory>

#include "samebytes/nn.h"

namespace samebytes::models {

// ---- residual networks for small images: engine/nn/models_resnet.cpp

struct ResNetOptions {
  int in = 3;        // channels of the image
  int classes = 10;  // of the output
  int width = 16;    // channels of the first stage; the next ones have two and four times as many
};

// x [N, H, W, in] -> logits [N, classes] (K. He et al., "Deep residual learning for image recognition", 2015, section
// 4.2): 3x3 convolution, three stages of (depth - 2) / 6 blocks of two 3x3 convolutions with batch norm and ReLU, the
// first block of the second and third stage with stride 2, global average, linear. Where the size changes the shortcut
// is a 1x1 convolution with batch norm, so depth 20 has 272 474 parameters. Names: conv1, bn1, layer1.0.conv1, ...,
// layer2.0.downsample.0, ..., fc. depth 20, 32, 44, 56 or another 6 n + 2; else ArgumentError.
std::unique_ptr<nn::Module> resnet(int depth, const ResNetOptions& options = {});

// ---- residual networks for sequences: engine/nn/models_series.cpp

struct ResNet1dOptions {
  std::int64_t in = 1;  // channels of the sequence
  std::int64_t classes = 2;
  std::int64_t width = 64;  // channels of the first block; the other two have twice as many
};

// x [N, T, in] -> logits [N, classes] (Z. Wang et al., "Time series classification from scratch with deep neural
// networks", 2017): three blocks of convolutions 7, 5, 3 with batch norm and ReLU around a shortcut (1x1 convolution
// and batch norm where channels change, else batch norm), mean over time, linear. The paper's first kernel of 8 is 7
// here, so that it has a middle. Names: blocks.0.conv1, blocks.0.bn1, ..., blocks.0.shortcut.0, ..., fc.
std::unique_ptr<nn::Module> resnet1d(const ResNet1dOptions& options);

// ---- transits of planets: engine/nn/models_transit.cpp

struct TransitOptions {
  bool has_global = true;  // the branch over the whole folded curve
  bool has_local = true;   // the branch over the surroundings of the transit
  float dropout = 0.3f;
};

// Two branches over the global and the local view of a folded light curve (after C. Shallue and A. Vanderburg,
// "Identifying exoplanets with deep learning", 2018): each of three blocks convolution, batch norm, ReLU, max-pool 2
// with 32, 32, 64 channels, kernels 7, 5, 5 over the global view and 5, 3, 3 over the local one; mean over the points,
// both together through layer norm, linear 128, ReLU, dropout, and one logit [N, 1].
class Transit final : public nn::Module {
 public:
  explicit Transit(const TransitOptions& options = {});
  // Views [N, points, 1]; the one without a branch is not looked at and may be an empty handle.
  Array forward(const Array& global, const Array& local);
  // For a network with one branch; ArgumentError where there are two.
  Array forward(const Array& view) override;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "Transit"; }

 private:
  TransitOptions options_;
  nn::Sequential global_, local_, head_;
};

std::unique_ptr<Transit> transit(const TransitOptions& options = {});

// ---- recurrent classifier: engine/nn/models_lstm.cpp

struct LstmClassifierOptions {
  std::int64_t in = 1;  // values of a step
  std::int64_t hidden = 64;
  std::int64_t classes = 2;
  int layers = 1;
  bool bidirectional = true;
  double dropout = 0.0;  // between the layers, and of what the linear layer reads
};

// x [N, T, in] -> logits [N, classes]: an LSTM over the steps, its last states - of each sequence's own last step where
// `lengths` (i32 [N]) say so - through dropout and a linear layer. Names: lstm, fc.
class LstmClassifier final : public nn::Module {
 public:
  explicit LstmClassifier(const LstmClassifierOptions& options);
  Array forward(const Array& x) override { return forward(x, {}); }
  Array forward(const Array& x, const Array& lengths);
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "LstmClassifier"; }

 private:
  nn::Lstm lstm_;
  nn::Dropout dropout_;
  nn::Linear fc_;
};

std::unique_ptr<LstmClassifier> lstm_classifier(const LstmClassifierOptions& options);

}  // namespace samebytes::models
