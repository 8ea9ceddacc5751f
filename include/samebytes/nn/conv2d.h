// Conv2d: cross-correlation over images, channels last.
#pragma once

#include <optional>

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"

namespace samebytes::nn {

struct Conv2dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Size2 kernel = 1;
  Size2 stride = 1;
  Size2 pad = 0;  // zeros before x, and behind it where pad_end is not set
  Size2 dilation = 1;
  int groups = 1;
  bool bias = true;
  Dtype dtype = f32;
  std::optional<Size2> pad_end{};  // zeros behind x; more than pad cost a padded copy of x
};

// x [N, H, W, in] -> [N, H', W', out] with H' = (H + pad + pad_end - dilation (kernel - 1) - 1) / stride + 1. weight
// [kh, kw, in / groups, out] and bias [out] start uniform in +-1 / sqrt(kh kw in / groups), as in PyTorch. Throws
// ArgumentError for sizes below 1 and channels that groups do not divide.
class Conv2d final : public Module {
 public:
  explicit Conv2d(const Conv2dOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Conv2d"; }
  std::string describe() const override;

  const Conv2dOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }  // an empty handle without bias

 private:
  Conv2dOptions options_;
  Parameter weight_, bias_;
};

}  // namespace samebytes::nn
