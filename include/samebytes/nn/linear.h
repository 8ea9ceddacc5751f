// Linear: y = x A^T + b on the last axis.
#pragma once

#include <memory>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct LinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
  Dtype dtype = f32;
};

// x [..., in] -> [..., out]. weight [out, in] and bias [out] start uniform in +-1 / sqrt(in), as in PyTorch (K. He et
// al., "Delving deep into rectifiers", 2015, with a = sqrt(5)). Throws ArgumentError for sizes below 1.
class Linear final : public Module {
 public:
  explicit Linear(const LinearOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Linear"; }
  std::string describe() const override;

  const LinearOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }  // an empty handle without bias

 private:
  LinearOptions options_;
  Parameter weight_, bias_;
  Adapter adapter_;
};

}  // namespace samebytes::nn
