// Normalisation layers: BatchNorm and InstanceNorm with running statistics (images and rows alike), LayerNorm, RmsNorm,
// GroupNorm. Channels are the last axis.
#pragma once

#include <optional>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct BatchNormOptions {
  std::int64_t features = 0;  // C
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch
  Dtype dtype = f32;
};

// x [..., C] -> [..., C] (S. Ioffe and C. Szegedy, "Batch normalization", 2015). weight [C] starts as 1, bias [C] as 0,
// running_mean [C] as 0, running_var [C] as 1. In training mode it uses the batch's statistics and, unless gradients
// are off, updates the running ones.
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
  Parameter weight_, bias_, running_mean_, running_var_;
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
  Parameter weight_, bias_;  // empty handles if not affine
};

struct RmsNormOptions {
  std::int64_t features = 0;   // C
  std::optional<float> eps{};  // unset: the machine epsilon of x's dtype
  bool affine = true;          // with weight
  Dtype dtype = f32;
};

// x [..., C] -> [..., C] (B. Zhang and R. Sennrich, "Root mean square layer normalization", 2019). weight [C] starts
// as 1.
class RmsNorm final : public Module {
 public:
  explicit RmsNorm(const RmsNormOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "RmsNorm"; }
  std::string describe() const override;

  const RmsNormOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }

 private:
  RmsNormOptions options_;
  Parameter weight_;  // an empty handle if not affine
};

struct GroupNormOptions {
  std::int64_t groups = 0;
  std::int64_t features = 0;  // C, a multiple of groups
  float eps = 1e-5f;
  bool affine = true;  // with weight and bias
  Dtype dtype = f32;
};

// x [N, ..., C] -> [N, ..., C] (Y. Wu and K. He, "Group normalization", 2018). weight [C] starts as 1, bias [C] as 0.
class GroupNorm final : public Module {
 public:
  explicit GroupNorm(const GroupNormOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "GroupNorm"; }
  std::string describe() const override;

  const GroupNormOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }

 private:
  GroupNormOptions options_;
  Parameter weight_, bias_;  // empty handles if not affine
};

struct InstanceNormOptions {
  std::int64_t features = 0;  // C
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * mean over the samples
  bool affine = false;    // with weight and bias
  bool track_running_stats = false;
  Dtype dtype = f32;
};

// x [N, ..., C] -> [N, ..., C] (D. Ulyanov et al., "Instance normalization", 2016). weight [C] starts as 1, bias [C] as
// 0. Without running statistics it uses those of each sample in both modes; with them (running_mean [C] starts as 0,
// running_var [C] as 1) training updates them and evaluation uses them.
class InstanceNorm final : public Module {
 public:
  explicit InstanceNorm(const InstanceNormOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "InstanceNorm"; }
  std::string describe() const override;

  const InstanceNormOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }
  const Array& running_mean() const { return running_mean_; }
  const Array& running_var() const { return running_var_; }

 private:
  InstanceNormOptions options_;
  Parameter weight_, bias_, running_mean_, running_var_;  // empty handles if not used
};
using InstanceNorm1d = InstanceNorm;
using InstanceNorm2d = InstanceNorm;

}  // namespace samebytes::nn
