#include "samebytes/optim/lion.h"

#include <cmath>

#include "samebytes/ops.h"

namespace samebytes::optim {

Lion::Lion(std::span<const Array> parameters, const LionOptions& options) : Lion(one_group(parameters), options) {}

Lion::Lion(const std::vector<ParameterGroup>& groups, const LionOptions& options)
    : Optimizer("Lion", groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize,
                 .moments = options.moments,
                 .rounds_weights = true},
                {{"beta1", &GroupOptions::beta1, options.beta1, 0.0, 1.0},
                 {"beta2", &GroupOptions::beta2, options.beta2, 0.0, 1.0},
                 {"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL}}),
      options_(options),
      moment1_(zeros_for_arenas("moment1")) {}

std::vector<StateArray> Lion::state() const { return named("moment1", moment1_); }

std::vector<Optimizer::CellUpdate> Lion::updates(std::size_t arena, const Array& gradient) const {
  const GroupOptions& own = options_of(arena);
  const double rate = rate_of(arena);
  const Array values = weights(arena);
  const Array moment = widened(arena, moment1_[arena]);
  const Array direction = sign(moment * *own.beta1 + gradient * (1.0 - *own.beta1));
  const Array next = moment * *own.beta2 + gradient * (1.0 - *own.beta2);
  return {kept(arena, moment1_[arena], next, 0),
          written(arena, values * (1.0 - rate * *own.weight_decay) - direction * rate)};
}

}  // namespace samebytes::optim
