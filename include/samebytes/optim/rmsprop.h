// RmsProp (T. Tieleman and G. Hinton, "Lecture 6.5: RMSprop", 2012; centred: A. Graves, "Generating sequences with
// recurrent neural networks", 2013, equations 38 to 45), in PyTorch's form. For gradient g: g += weight_decay p;
// v = alpha v + (1 - alpha) g^2; if centred, a = alpha a + (1 - alpha) g and s = sqrt(v - a^2), otherwise s = sqrt(v);
// b = momentum b + g / (s + eps); p -= rate b.
#pragma once

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

struct RmsPropOptions {
  double rate = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;    // divides by the deviation of the gradient instead of its root mean square
  bool maximize = false;    // gradient ascent
  double clip_norm = 0.0;   // over all parameters; 0: off
  double clip_value = 0.0;  // before clip_norm; 0: off
  // bf16: the moments take 2 bytes instead of 4 each (optimizer.h); not with centered,
  // where the difference of two rounded moments would be mostly rounding.
  Dtype moments = f32;
};

class RmsProp final : public Optimizer {
 public:
  // Groups may have their own rate, alpha, eps, weight_decay and momentum. Throws ArgumentError for options out of
  // range and as ParameterArena does.
  explicit RmsProp(std::span<const Array> parameters, const RmsPropOptions& options = {});
  explicit RmsProp(const std::vector<ParameterGroup>& groups, const RmsPropOptions& options = {});
  RmsProp(RmsProp&&) = default;
  RmsProp& operator=(RmsProp&&) = default;
  // "0.square"; "0.momentum" if the group has momentum; "0.mean" if centred.
  std::vector<StateArray> state() const override;
  const RmsPropOptions& options() const { return options_; }

 private:
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;
  std::vector<std::vector<Array>*> elementwise_cells() override { return {&square_, &momentum_, &mean_}; }

  RmsPropOptions options_;
  std::vector<Array> square_, momentum_, mean_;
};

}  // namespace samebytes::optim
