#include "samebytes/optim/adam.h"

#include <cmath>

#include "optim/bias_correction.h"
#include "samebytes/ops.h"

namespace samebytes::optim {

namespace {

AdamOptions as_adam(const AdamWOptions& options) {
  return {.rate = options.rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .amsgrad = options.amsgrad,
          .maximize = options.maximize,
          .clip_norm = options.clip_norm,
          .clip_value = options.clip_value,
          .release_gradients = options.release_gradients,
          .moments = options.moments};
}

}  // namespace

Adam::Adam(const char* name, const std::vector<ParameterGroup>& groups, const AdamOptions& options,
           WeightDecay weight_decay)
    : Optimizer(name, groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize,
                 .release_gradients = options.release_gradients,
                 .moments = options.moments,
                 .rounds_weights = true},
                {{"beta1", &GroupOptions::beta1, options.beta1, 0.0, 1.0},
                 {"beta2", &GroupOptions::beta2, options.beta2, 0.0, 1.0},
                 {"eps", &GroupOptions::eps, options.eps, 0.0, HUGE_VAL},
                 {"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL}}),
      options_(options),
      weight_decay_(weight_decay) {
  moment1_ = zeros_for_arenas("moment1");
  moment2_ = zeros_for_arenas("moment2");
  if (options.amsgrad) largest2_ = zeros_for_arenas("largest2");
}

Adam::Adam(std::span<const Array> parameters, const AdamOptions& options) : Adam(one_group(parameters), options) {}
Adam::Adam(const std::vector<ParameterGroup>& groups, const AdamOptions& options)
    : Adam("Adam", groups, options, WeightDecay::in_gradient) {}

AdamW::AdamW(std::span<const Array> parameters, const AdamWOptions& options) : AdamW(one_group(parameters), options) {}
AdamW::AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options)
    : Adam("AdamW", groups, as_adam(options), WeightDecay::decoupled) {}

std::vector<StateArray> Adam::state() const {
  std::vector<StateArray> result = named("moment1", moment1_);
  for (StateArray& entry : named("moment2", moment2_)) result.push_back(std::move(entry));
  for (StateArray& entry : named("largest2", largest2_)) result.push_back(std::move(entry));
  return result;
}

std::vector<Optimizer::CellUpdate> Adam::updates(std::size_t arena, const Array& gradient) const {
  const GroupOptions& own = options_of(arena);
  const Array values = weights(arena);
  const Array moment1 = widened(arena, moment1_[arena]), moment2 = widened(arena, moment2_[arena]);
  const bool decays = *own.weight_decay > 0.0;
  const bool in_gradient = decays && weight_decay_ == WeightDecay::in_gradient;
  const bool decoupled = decays && weight_decay_ == WeightDecay::decoupled;
  const double rate = rate_of(arena), beta1 = *own.beta1, beta2 = *own.beta2;
  const BiasCorrection correction1(beta1, step_count() + 1, steps_taken());
  const BiasCorrection correction2(beta2, step_count() + 1, steps_taken());

  const Array g = in_gradient ? gradient + values * *own.weight_decay : gradient;
  const Array next1 = moment1 * beta1 + g * (1.0 - beta1);
  const Array next2 = moment2 * beta2 + square(g) * (1.0 - beta2);
  const Array divisor2 = options_.amsgrad ? maximum(widened(arena, largest2_[arena]), next2) : next2;
  const Array change = correction1.divide(next1, rate) / (correction2.divide_by_root(sqrt(divisor2)) + *own.eps);
  const Array left = decoupled ? values * (1.0 - rate * *own.weight_decay) : values;
  std::vector<CellUpdate> result{kept(arena, moment1_[arena], next1, 0), kept(arena, moment2_[arena], next2, 1),
                                 written(arena, left - change)};
  // Nothing is added up in the largest one, which plain rounding keeps in order.
  if (options_.amsgrad) result.push_back({largest2_[arena], astype(divisor2, largest2_[arena].dtype())});
  return result;
}

}  // namespace samebytes::optim
