// Adagrad (J. Duchi et al., "Adaptive subgradient methods", 2011), in PyTorch's form. For gradient g at step t:
// g += weight_decay p;  s += g^2;  p -= rate / (1 + (t - 1) rate_decay) g / (sqrt(s) + eps). s starts as
// initial_accumulator.
#pragma once

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

struct AdagradOptions {
  double rate = 1e-2;
  double rate_decay = 0.0;
  double weight_decay = 0.0;
  double initial_accumulator = 0.0;
  double eps = 1e-10;
  bool maximize = false;    // gradient ascent
  double clip_norm = 0.0;   // over all parameters; 0: off
  double clip_value = 0.0;  // before clip_norm; 0: off
};

class Adagrad final : public Optimizer {
 public:
  // Groups may have their own rate, rate_decay, weight_decay and eps. Throws ArgumentError for options out of range and
  // as ParameterArena does.
  explicit Adagrad(std::span<const Array> parameters, const AdagradOptions& options = {});
  explicit Adagrad(const std::vector<ParameterGroup>& groups, const AdagradOptions& options = {});
  Adagrad(Adagrad&&) = default;
  Adagrad& operator=(Adagrad&&) = default;
  std::vector<StateArray> state() const override;  // "0.sum"
  const AdagradOptions& options() const { return options_; }

 private:
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;
  std::vector<std::vector<Array>*> elementwise_cells() override { return {&sum_}; }

  AdagradOptions options_;
  std::vector<Array> sum_;
};

}  // namespace samebytes::optim
