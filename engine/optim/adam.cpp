#include "samebytes/optim/adam.h"

#include <cmath>

#include "samebytes/ops.h"

namespace samebytes::optim {

Adam::Adam(const char* name, std::span<const Array> parameters, const AdamOptions& options, WeightDecay weight_decay)
    : Optimizer(name, parameters, {options.rate, options.clip_norm, options.clip_value, options.release_gradients}),
      options_(options),
      weight_decay_(weight_decay) {
  require_range(name, "beta1", options.beta1, 0.0, 1.0);
  require_range(name, "beta2", options.beta2, 0.0, 1.0);
  require_range(name, "eps", options.eps, 0.0, HUGE_VAL);
  require_range(name, "weight_decay", options.weight_decay, 0.0, HUGE_VAL);
  moment1_ = zeros_for_arenas("moment1");
  moment2_ = zeros_for_arenas("moment2");
}

Adam::Adam(std::span<const Array> parameters, const AdamOptions& options)
    : Adam("Adam", parameters, options, WeightDecay::in_gradient) {}

AdamW::AdamW(std::span<const Array> parameters, const AdamWOptions& options)
    : Adam("AdamW", parameters,
           {.rate = options.rate,
            .beta1 = options.beta1,
            .beta2 = options.beta2,
            .eps = options.eps,
            .weight_decay = options.weight_decay,
            .clip_norm = options.clip_norm,
            .clip_value = options.clip_value,
            .release_gradients = options.release_gradients},
           WeightDecay::decoupled) {}

std::vector<StateArray> Adam::state() const {
  std::vector<StateArray> result = named("moment1", moment1_);
  for (StateArray& entry : named("moment2", moment2_)) result.push_back(std::move(entry));
  return result;
}

std::vector<Array> Adam::updates(std::size_t arena, const Array& gradient) const {
  const Array& values = arenas()[arena].values();
  const Array &moment1 = moment1_[arena], &moment2 = moment2_[arena];
  const bool decays = options_.weight_decay > 0.0;
  const bool in_gradient = decays && weight_decay_ == WeightDecay::in_gradient;
  const bool decoupled = decays && weight_decay_ == WeightDecay::decoupled;
  const double t = static_cast<double>(step_count() + 1);
  const double correction1 = 1.0 - std::pow(options_.beta1, t);
  const double correction2 = std::sqrt(1.0 - std::pow(options_.beta2, t));

  const Array g = in_gradient ? gradient + values * options_.weight_decay : gradient;
  const Array next1 = moment1 * options_.beta1 + g * (1.0 - options_.beta1);
  const Array next2 = moment2 * options_.beta2 + square(g) * (1.0 - options_.beta2);
  const Array change = next1 * (rate() / correction1) / (sqrt(next2) * (1.0 / correction2) + options_.eps);
  const Array kept = decoupled ? values * (1.0 - rate() * options_.weight_decay) : values;
  return {update(moment1, next1), update(moment2, next2), update(values, kept - change)};
}

}  // namespace samebytes::optim
