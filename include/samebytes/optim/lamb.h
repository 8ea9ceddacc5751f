// Lamb: layer-wise adaptive moments for large batches (Y. You et al., "Large batch optimization for deep learning",
// 2020, algorithm 2). m and v are Adam's; for a parameter p: r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) +
// weight_decay p;  p -= rate |p| / |r| r, or p -= rate r if a norm is 0.
#pragma once

#include <memory>

#include "samebytes/optim/optimizer.h"

namespace samebytes::detail {
class TrustSegments;
}

namespace samebytes::optim {

struct LambOptions {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 1e-2;
  bool exclude_vectors = false;  // parameters with at most one axis (biases, norms): ratio 1, no weight decay
  bool maximize = false;         // gradient ascent
  double clip_norm = 0.0;        // over all parameters; 0: off
  double clip_value = 0.0;       // before clip_norm; 0: off
};

class Lamb final : public Optimizer {
 public:
  // Groups may have their own rate, beta1, beta2, eps, weight_decay and adapts (false: ratio 1, which is AdamW with its
  // weight decay). Throws ArgumentError for options out of range and as ParameterArena does.
  explicit Lamb(std::span<const Array> parameters, const LambOptions& options = {});
  explicit Lamb(const std::vector<ParameterGroup>& groups, const LambOptions& options = {});
  Lamb(Lamb&&) = default;
  Lamb& operator=(Lamb&&) = default;
  std::vector<StateArray> state() const override;  // "0.moment1", "0.moment2"
  const LambOptions& options() const { return options_; }

 private:
  std::vector<std::vector<Array>*> cells_of_parameters() override { return {&moment1_, &moment2_}; }
  void follow_share() override;
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;

  LambOptions options_;
  std::vector<Array> moment1_, moment2_;
  std::shared_ptr<const std::vector<detail::TrustSegments>> segments_;  // where parameters lie, for the kernels
};

}  // namespace samebytes::optim
