// Lion (X. Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2), with the authors'
// defaults. For gradient g: u = sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g;  p -= rate (u +
// weight_decay p). Its rate is usually 3 to 10 times smaller than AdamW's, and its weight decay larger by the same
// factor.
#pragma once

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

struct LionOptions {
  double rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
  bool maximize = false;    // gradient ascent
  double clip_norm = 0.0;   // over all parameters; 0: off
  double clip_value = 0.0;  // before clip_norm; 0: off
  // bf16: the moments take 2 bytes instead of 4 each (optimizer.h); f32 and bf16 only.
  Dtype moments = f32;
};

class Lion final : public Optimizer {
 public:
  // Groups may have their own rate, beta1, beta2 and weight_decay. Throws ArgumentError for options out of range and as
  // ParameterArena does.
  explicit Lion(std::span<const Array> parameters, const LionOptions& options = {});
  explicit Lion(const std::vector<ParameterGroup>& groups, const LionOptions& options = {});
  Lion(Lion&&) = default;
  Lion& operator=(Lion&&) = default;
  std::vector<StateArray> state() const override;  // "0.moment1"
  const LionOptions& options() const { return options_; }

 private:
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;
  std::vector<std::vector<Array>*> elementwise_cells() override { return {&moment1_}; }

  LionOptions options_;
  std::vector<Array> moment1_;
};

}  // namespace samebytes::optim
