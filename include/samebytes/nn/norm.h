// Normalisation layers over the last axis: BatchNorm with running statistics (images and rows alike), LayerNorm.
#pragma once

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct BatchNormOptions {
  std::int64_t features = 0;  // C
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch
  Dtype dtype = f32;
};

// x [..., C] -> [..., C] (S. Ioffe and C. Szegedy, "Batch normalization", 2015). weight [C] starts as 1, bias [C] as 0,
// running_mean [C] as 0, running_var [C] as 1. In training mode it uses the batch's statistics, and updates the running
// ones unless gradients are off.
class BatchNorm final : public Module {
 public:
  explicit BatchNorm(const BatchNormOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "BatchNorm"; }
  std::string describe() const override;

  const BatchNormOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }
  const Array& running_mean() const { return running_mean_; }
  const Array& running_var() const { return running_var_; }

 private:
  BatchNormOptions options_;
  Array weight_, bias_, running_mean_, running_var_;
};
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

struct LayerNormOptions {
  std::int64_t features = 0;  // C
  float eps = 1e-5f;
  bool affine = true;  // with weight and bias
  Dtype dtype = f32;
};

// x [..., C] -> [..., C] (J. Ba et al., "Layer normalization", 2016). weight [C] starts as 1, bias [C] as 0.
class LayerNorm final : public Module {
 public:
  explicit LayerNorm(const LayerNormOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "LayerNorm"; }
  std::string describe() const override;

  const LayerNormOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }

 private:
  LayerNormOptions options_;
  Array weight_, bias_;  // empty handles where not affine
};

}  // namespace samebytes::nn
