// Conv3d: cross-correlation over volumes, channels last.
#pragma once

#include <optional>

#include "samebytes/nn/module.h"
#include "samebytes/nn/size3.h"

namespace samebytes::nn {

struct Conv3dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Size3 kernel = 1;
  Size3 stride = 1;
  Size3 pad = 0;  // zeros before x, and behind it where pad_end is not set
  Size3 dilation = 1;
  int groups = 1;
  bool bias = true;
  Dtype dtype = f32;
  std::optional<Size3> pad_end{};  // zeros behind x; more than pad cost a padded copy of x
};

// x [N, D, H, W, in] -> [N, D', H', W', out] with H' = (H + pad + pad_end - dilation (kernel - 1) - 1) / stride + 1, D'
// and W' likewise. weight [kd, kh, kw, in / groups, out] and bias [out] start uniform in +-1 / sqrt(kd kh kw in /
// groups), as in PyTorch. Throws ArgumentError for sizes below 1 and channels that groups do not divide.
class Conv3d final : public Module {
 public:
  explicit Conv3d(const Conv3dOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Conv3d"; }
  std::string describe() const override;

  const Conv3dOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }  // an empty handle without bias

 private:
  Conv3dOptions options_;
  Parameter weight_, bias_;
};

}  // namespace samebytes::nn
