#include "samebytes/optim/sgd.h"

#include <cmath>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {

Sgd::Sgd(std::span<const Array> parameters, const SgdOptions& options) : Sgd(one_group(parameters), options) {}

Sgd::Sgd(const std::vector<ParameterGroup>& groups, const SgdOptions& options)
    : Optimizer("Sgd", groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize,
                 .release_gradients = options.release_gradients,
                 .moments = options.moments,
                 .rounds_weights = true},
                {{"momentum", &GroupOptions::momentum, options.momentum, 0.0, HUGE_VAL},
                 {"dampening", &GroupOptions::dampening, options.dampening, -HUGE_VAL, HUGE_VAL},
                 {"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL}}),
      options_(options) {
  for (std::size_t g = 0; g < group_count(); ++g)
    if (options.nesterov && (*group(g).momentum <= 0.0 || *group(g).dampening != 0.0))
      throw ArgumentError("Sgd: nesterov needs momentum above 0 and no dampening, got momentum " +
                          std::to_string(*group(g).momentum) + " and dampening " + std::to_string(*group(g).dampening));
  momentum_ = momentum_buffers();
}

std::vector<StateArray> Sgd::state() const { return named("momentum", momentum_); }

std::vector<Optimizer::CellUpdate> Sgd::updates(std::size_t arena, const Array& gradient) const {
  const GroupOptions& own = options_of(arena);
  const Array values = weights(arena);
  const Array g = *own.weight_decay > 0.0 ? gradient + values * *own.weight_decay : gradient;
  const Array& momentum = momentum_[arena];
  if (!momentum.defined()) return {written(arena, values - g * rate_of(arena))};
  // The buffer starts as 0, so that the first step differs from the others in a scalar only.
  const Array next = widened(arena, momentum) * *own.momentum + dampened(g, *own.dampening);
  const Array direction = options_.nesterov ? g + next * *own.momentum : next;
  return {kept(arena, momentum, next, 0), written(arena, values - direction * rate_of(arena))};
}

Array Sgd::dampened(const Array& g, double dampening) const {
  const Array taken = steps_taken();
  if (!taken.defined() || dampening == 0.0) return g * (step_count() == 0 ? 1.0 : 1.0 - dampening);
  return g * (1.0 - clip(taken - 1.0, 0.0, 1.0) * dampening);
}

}  // namespace samebytes::optim
