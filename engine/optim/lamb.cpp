#include "samebytes/optim/lamb.h"

#include <cmath>

#include "optim/bias_correction.h"
#include "optim/segments.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

constexpr double kLeastEps = 1e-30;  // the zeros between parameters must not become NaN, which is in no norm then

}  // namespace

Lamb::Lamb(std::span<const Array> parameters, const LambOptions& options) : Lamb(one_group(parameters), options) {}

Lamb::Lamb(const std::vector<ParameterGroup>& groups, const LambOptions& options)
    : Optimizer("Lamb", options.exclude_vectors ? without_vectors(groups) : groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize,
                 .adapts = true},
                {{"beta1", &GroupOptions::beta1, options.beta1, 0.0, 1.0},
                 {"beta2", &GroupOptions::beta2, options.beta2, 0.0, 1.0},
                 {"eps", &GroupOptions::eps, options.eps, kLeastEps, HUGE_VAL},
                 {"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL}}),
      options_(options),
      moment1_(zeros_for_arenas("moment1")),
      moment2_(zeros_for_arenas("moment2")),
      segments_(segments_of_arenas(*this)) {}

void Lamb::follow_share() { segments_ = segments_of_arenas(*this); }

std::vector<StateArray> Lamb::state() const {
  std::vector<StateArray> result = named("moment1", moment1_);
  for (StateArray& entry : named("moment2", moment2_)) result.push_back(std::move(entry));
  return result;
}

std::vector<Optimizer::CellUpdate> Lamb::updates(std::size_t arena, const Array& gradient) const {
  const GroupOptions& own = options_of(arena);
  const Array &moment1 = moment1_[arena], &moment2 = moment2_[arena];
  const double rate = rate_of(arena), beta1 = *own.beta1, beta2 = *own.beta2;
  const BiasCorrection bias1(beta1, step_count() + 1, steps_taken()), bias2(beta2, step_count() + 1, steps_taken());
  if (*own.adapts) {
    const double t = static_cast<double>(step_count() + 1);
    const double correction1 = 1.0 - std::pow(beta1, t), correction2 = 1.0 - std::pow(beta2, t);
    const detail::LambStep step{rate, beta1, beta2, correction1, correction2, *own.eps, *own.weight_decay};
    const Array told = steps_taken().defined() ? control(arena, {bias1.inverse(), bias2.inverse_root()}) : Array();
    return {
        {{},
         detail::lamb_update(arenas()[arena].values(), moment1, moment2, gradient, (*segments_)[arena], step, told)}};
  }
  const Array values = weights(arena), slope = share_of(arena, gradient);
  const Array next1 = moment1 * beta1 + slope * (1.0 - beta1);
  const Array next2 = moment2 * beta2 + square(slope) * (1.0 - beta2);
  const Array change = bias1.divide(next1, rate) / (bias2.divide_by_root(sqrt(next2)) + *own.eps);
  return {{moment1, next1}, {moment2, next2}, written(arena, values * (1.0 - rate * *own.weight_decay) - change)};
}

}  // namespace samebytes::optim
