// Sgd: stochastic gradient descent with momentum (I. Sutskever et al., "On the importance of initialization and
// momentum", 2013, in PyTorch's form). For gradient g: g += weight_decay p;  b = momentum b + (1 - dampening) g, at the
// first step b = g; p -= rate (nesterov ? g + momentum b : b).
#pragma once

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

struct SgdOptions {
  double rate = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;    // requires momentum and no dampening
  bool maximize = false;    // gradient ascent
  double clip_norm = 0.0;   // over all parameters; 0: off
  double clip_value = 0.0;  // before clip_norm; 0: off
  // Updates parameters as soon as their gradients are final (optimizer.h); not with clip_norm.
  bool release_gradients = false;
  // bf16: the moments take 2 bytes instead of 4 each (optimizer.h); f32 and bf16 only.
  Dtype moments = f32;
};

class Sgd final : public Optimizer {
 public:
  // Groups may have their own rate, momentum, dampening and weight_decay. Throws ArgumentError for options out of range
  // and as ParameterArena does.
  explicit Sgd(std::span<const Array> parameters, const SgdOptions& options = {});
  explicit Sgd(const std::vector<ParameterGroup>& groups, const SgdOptions& options = {});
  Sgd(Sgd&&) = default;
  Sgd& operator=(Sgd&&) = default;
  std::vector<StateArray> state() const override;  // "0.momentum", if the group has momentum
  const SgdOptions& options() const { return options_; }

 private:
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;
  std::vector<std::vector<Array>*> elementwise_cells() override { return {&momentum_}; }
  Array dampened(const Array& g, double dampening) const;  // except at the first step

  SgdOptions options_;
  std::vector<Array> momentum_;
};

}  // namespace samebytes::optim
