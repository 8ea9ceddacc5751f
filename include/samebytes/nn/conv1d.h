// Conv1d: cross-correlation over sequences, channels last.
#pragma once

#include <optional>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct Conv1dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  int kernel = 1;
  int stride = 1;
  int pad = 0;  // zeros before x, and behind it where pad_end is not set
  int dilation = 1;
  int groups = 1;
  bool bias = true;
  Dtype dtype = f32;
  std::optional<int> pad_end{};  // zeros behind x; more than pad cost a padded copy of x
};

// x [N, L, in] -> [N, L', out] with L' = (L + pad + pad_end - dilation (kernel - 1) - 1) / stride + 1. weight [kernel,
// in / groups, out] and bias [out] start uniform in +-1 / sqrt(kernel in / groups), as in PyTorch. Throws ArgumentError
// for sizes below 1 and channels that groups do not divide.
class Conv1d final : public Module {
 public:
  explicit Conv1d(const Conv1dOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Conv1d"; }
  std::string describe() const override;

  const Conv1dOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }  // an empty handle without bias

 private:
  Conv1dOptions options_;
  Parameter weight_, bias_;
};

}  // namespace samebytes::nn
