// Lars: layer-wise adaptive rate scaling for large batches (Y. You et al., "Large batch training of convolutional
// networks", 2017, algorithm 1), with the momentum of Sgd. For the gradient g of a parameter p:
// ratio = trust |p| / (|g| + weight_decay |p| + eps), or 1 if |p| or |g| is 0, so that zero-initialised parameters
// move;
// d = ratio (g + weight_decay p);  b = momentum b + d;  p -= rate (nesterov ? d + momentum b : b). The paper has the
// rate inside b, which is equal while the rate is constant.
#pragma once

#include <memory>

#include "samebytes/optim/optimizer.h"

namespace samebytes::detail {
class TrustSegments;
}

namespace samebytes::optim {

struct LarsOptions {
  double rate = 1e-2;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  double trust = 1e-3;
  double eps = 1e-8;
  bool nesterov = false;
  bool exclude_vectors = false;  // parameters with at most one axis (biases, norms): ratio 1, no weight decay
  bool maximize = false;         // gradient ascent
  double clip_norm = 0.0;        // over all parameters; 0: off
  double clip_value = 0.0;       // before clip_norm; 0: off
};

class Lars final : public Optimizer {
 public:
  // Groups may have their own rate, momentum, weight_decay, trust, eps and adapts (false: ratio 1). Throws
  // ArgumentError for options out of range and as ParameterArena does.
  explicit Lars(std::span<const Array> parameters, const LarsOptions& options = {});
  explicit Lars(const std::vector<ParameterGroup>& groups, const LarsOptions& options = {});
  Lars(Lars&&) = default;
  Lars& operator=(Lars&&) = default;
  std::vector<StateArray> state() const override;  // "0.momentum"
  const LarsOptions& options() const { return options_; }

 private:
  std::vector<std::vector<Array>*> cells_of_parameters() override { return {&momentum_}; }
  void follow_share() override;
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;

  LarsOptions options_;
  std::vector<Array> momentum_;
  std::shared_ptr<const std::vector<detail::TrustSegments>> segments_;  // where parameters lie, for the kernels
};

}  // namespace samebytes::optim
