// Dropout: in training mode zeroes each element with probability p and scales the rest by 1 / (1 - p); in evaluation
// mode returns x.
#pragma once

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct DropoutOptions {
  double p = 0.5;  // in [0, 1)
};

// N. Srivastava et al., "Dropout", 2014. The mask is a function of the engine's seed and counter; the backward pass
// recomputes it.
class Dropout final : public Module {
 public:
  explicit Dropout(double p = 0.5);  // throws ArgumentError outside [0, 1)
  explicit Dropout(const DropoutOptions& options) : Dropout(options.p) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "Dropout"; }
  std::string describe() const override;
  double p() const { return p_; }

 private:
  double p_;
};

}  // namespace samebytes::nn
