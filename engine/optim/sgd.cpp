#include "samebytes/optim/sgd.h"

#include <cmath>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {

Sgd::Sgd(std::span<const Array> parameters, const SgdOptions& options)
    : Optimizer("Sgd", parameters, {options.rate, options.clip_norm, options.clip_value, options.release_gradients}),
      options_(options) {
  require_range("Sgd", "momentum", options.momentum, 0.0, HUGE_VAL);
  require_range("Sgd", "weight_decay", options.weight_decay, 0.0, HUGE_VAL);
  if (options.nesterov && (options.momentum <= 0.0 || options.dampening != 0.0))
    throw ArgumentError("Sgd: nesterov needs momentum above 0 and no dampening, momentum " +
                        std::to_string(options.momentum) + " and dampening " + std::to_string(options.dampening) +
                        " came");
  if (options.momentum > 0.0) momentum_ = zeros_for_arenas("momentum");
}

std::vector<StateArray> Sgd::state() const { return named("momentum", momentum_); }

std::vector<Array> Sgd::updates(std::size_t arena, const Array& gradient) const {
  const Array& values = arenas()[arena].values();
  const Array g = options_.weight_decay > 0.0 ? gradient + values * options_.weight_decay : gradient;
  if (options_.momentum == 0.0) return {update(values, values - g * rate())};
  const Array& momentum = momentum_[arena];
  // The buffer starts as 0, so that the first step differs from the others in a scalar only.
  const double fresh = step_count() == 0 ? 1.0 : 1.0 - options_.dampening;
  const Array next = momentum * options_.momentum + g * fresh;
  const Array direction = options_.nesterov ? g + next * options_.momentum : next;
  return {update(momentum, next), update(values, values - direction * rate())};
}

}  // namespace samebytes::optim
