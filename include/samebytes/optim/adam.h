// Adam (D. Kingma and J. Ba, 2015, algorithm 1) and AdamW (I. Loshchilov and F. Hutter, "Decoupled weight decay
// regularization", 2019), in PyTorch's form. For gradient g at step t: m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 -
// beta2) g^2; p -= rate / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps). Weight decay: Adam adds weight_decay p to
// g, AdamW first multiplies p by 1 - rate weight_decay.
#pragma once

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

struct AdamOptions {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;     // divides by the largest v so far (S. Reddi et al., 2018)
  bool maximize = false;    // gradient ascent
  double clip_norm = 0.0;   // over all parameters; 0: off
  double clip_value = 0.0;  // before clip_norm; 0: off
  // Updates parameters as soon as their gradients are final (optimizer.h); not with clip_norm.
  bool release_gradients = false;
  // bf16: the moments take 2 bytes instead of 4 each (optimizer.h); f32 and bf16 only.
  Dtype moments = f32;
};

struct AdamWOptions {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;     // divides by the largest v so far (S. Reddi et al., 2018)
  bool maximize = false;    // gradient ascent
  double clip_norm = 0.0;   // over all parameters; 0: off
  double clip_value = 0.0;  // before clip_norm; 0: off
  // Updates parameters as soon as their gradients are final (optimizer.h); not with clip_norm.
  bool release_gradients = false;
  // bf16: the moments take 2 bytes instead of 4 each (optimizer.h); f32 and bf16 only.
  Dtype moments = f32;
};

class Adam : public Optimizer {
 public:
  // Groups may have their own rate, beta1, beta2, eps and weight_decay. Throws ArgumentError for options out of range
  // and as ParameterArena does.
  explicit Adam(std::span<const Array> parameters, const AdamOptions& options = {});
  explicit Adam(const std::vector<ParameterGroup>& groups, const AdamOptions& options = {});
  Adam(Adam&&) = default;
  Adam& operator=(Adam&&) = default;
  std::vector<StateArray> state() const override;  // "0.moment1", "0.moment2", with amsgrad "0.largest2"
  const AdamOptions& options() const { return options_; }

 protected:
  enum class WeightDecay : std::uint8_t { in_gradient, decoupled };
  Adam(const char* name, const std::vector<ParameterGroup>& groups, const AdamOptions& options,
       WeightDecay weight_decay);

 private:
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;
  std::vector<std::vector<Array>*> elementwise_cells() override { return {&moment1_, &moment2_, &largest2_}; }

  AdamOptions options_;
  WeightDecay weight_decay_;
  std::vector<Array> moment1_, moment2_, largest2_;
};

class AdamW final : public Adam {
 public:
  explicit AdamW(std::span<const Array> parameters, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options = {});
};

}  // namespace samebytes::optim
