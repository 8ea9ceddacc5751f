// The residual networks for sequences of models.h.
#include <array>
#include <optional>
#include <string>

#include "samebytes/models.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

constexpr int kLayers = 3;
constexpr std::array<int, kLayers> kKernels{7, 5, 3};

// relu(three convolutions with batch norm, ReLU between them, + shortcut)
class SeriesBlock final : public nn::Module {
 public:
  SeriesBlock(std::int64_t in, std::int64_t out) {
    for (int l = 0; l < kLayers; ++l) {
      convolutions_.push_back(nn::Conv1d(
          {.in = l == 0 ? in : out, .out = out, .kernel = kKernels[l], .pad = kKernels[l] / 2, .bias = false}));
      norms_.push_back(nn::BatchNorm({.features = out}));
    }
    if (in != out) shortcut_.add(nn::Conv1d({.in = in, .out = out, .bias = false}));
    shortcut_.add(nn::BatchNorm({.features = out}));
  }

  Array forward(const Array& x) override {
    Array y = x;
    for (std::size_t l = 0; l < kLayers; ++l) {
      y = norms_[l](convolutions_[l](y));
      if (l + 1 < kLayers) y = relu(y);
    }
    return relu(y + shortcut_(x));
  }

  void visit(nn::Visitor& visitor) override {
    for (std::size_t l = 0; l < kLayers; ++l) {
      visitor.child("conv" + std::to_string(l + 1), convolutions_[l]);
      visitor.child("bn" + std::to_string(l + 1), norms_[l]);
    }
    visitor.child("shortcut", shortcut_);
  }
  std::string kind() const override { return "SeriesBlock"; }

 private:
  std::vector<nn::Conv1d> convolutions_;
  std::vector<nn::BatchNorm> norms_;
  nn::Sequential shortcut_;
};

}  // namespace

ResNet1d::ResNet1d(const ResNet1dOptions& options) : fc_({.in = 2 * options.width, .out = options.classes}) {
  blocks_.add(SeriesBlock(options.in, options.width));
  blocks_.add(SeriesBlock(options.width, 2 * options.width));
  blocks_.add(SeriesBlock(2 * options.width, 2 * options.width));
}

Array ResNet1d::forward(const Array& x) { return fc_(mean(blocks_(x), {1})); }

void ResNet1d::visit(nn::Visitor& visitor) {
  visitor.child("blocks", blocks_);
  visitor.child("fc", fc_);
}

ResNet1d resnet1d(const ResNet1dOptions& options) { return ResNet1d(options); }

}  // namespace samebytes::models
