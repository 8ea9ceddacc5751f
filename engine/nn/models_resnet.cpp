// The residual networks for small images of models.h.
#include <optional>
#include <string>

#include "samebytes/error.h"
#include "samebytes/models.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

constexpr int kStages = 3;

nn::Conv2d conv3x3(int in, int out, int stride) {
  return nn::Conv2d({.in = in, .out = out, .kernel = 3, .stride = stride, .pad = 1, .bias = false});
}

// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x))
class BasicBlock final : public nn::Module {
 public:
  BasicBlock(int in, int out, int stride)
      : conv1_(conv3x3(in, out, stride)),
        bn1_({.features = out}),
        conv2_(conv3x3(out, out, 1)),
        bn2_({.features = out}) {
    if (in != out || stride != 1)
      downsample_.emplace(nn::Conv2d({.in = in, .out = out, .kernel = 1, .stride = stride, .bias = false}),
                          nn::BatchNorm({.features = out}));
  }

  Array forward(const Array& x) override {
    const Array y = bn2_(conv2_(relu(bn1_(conv1_(x)))));
    return relu(y + (downsample_ ? (*downsample_)(x) : x));
  }

  void visit(nn::Visitor& visitor) override {
    visitor.child("conv1", conv1_);
    visitor.child("bn1", bn1_);
    visitor.child("conv2", conv2_);
    visitor.child("bn2", bn2_);
    if (downsample_) visitor.child("downsample", *downsample_);
  }
  std::string kind() const override { return "BasicBlock"; }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm bn2_;
  std::optional<nn::Sequential> downsample_;
};

}  // namespace

ResNet::ResNet(int depth, const ResNetOptions& options)
    : depth_(depth),
      conv1_(conv3x3(options.in, options.width, 1)),
      bn1_({.features = options.width}),
      fc_({.in = options.width << (kStages - 1), .out = options.classes}) {
  if (depth < 8 || (depth - 2) % 6 != 0)
    throw ArgumentError("resnet: depth must be 6 n + 2, such as 20, 32, 44 or 56, it is " + std::to_string(depth));
  int in = options.width;
  for (int s = 0; s < kStages; ++s) {
    const int out = options.width << s;
    nn::Sequential& stage = stages_.emplace_back();
    for (int b = 0; b < (depth - 2) / 6; ++b) {
      stage.add(BasicBlock(in, out, s > 0 && b == 0 ? 2 : 1));
      in = out;
    }
  }
}

Array ResNet::forward(const Array& x) {
  Array y = relu(bn1_(conv1_(x)));
  const std::size_t depth = stages_[0].size();  // of each stage
  if (is_checkpointed())
    run_blocks(stages_.size() * depth, [&](std::size_t i) { y = stages_[i / depth][i % depth](y); });
  else
    for (nn::Sequential& stage : stages_) y = stage(y);
  return fc_(global_avg_pool2d(y));
}

void ResNet::visit(nn::Visitor& visitor) {
  visitor.child("conv1", conv1_);
  visitor.child("bn1", bn1_);
  for (std::size_t s = 0; s < stages_.size(); ++s) visitor.child("layer" + std::to_string(s + 1), stages_[s]);
  visitor.child("fc", fc_);
}

ResNet resnet(int depth, const ResNetOptions& options) { return ResNet(depth, options); }

}  // namespace samebytes::models
