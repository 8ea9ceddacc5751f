#include "samebytes/optim/lars.h"

#include <cmath>

#include "optim/segments.h"
#include "samebytes/ops.h"

namespace samebytes::optim {

Lars::Lars(std::span<const Array> parameters, const LarsOptions& options) : Lars(one_group(parameters), options) {}

Lars::Lars(const std::vector<ParameterGroup>& groups, const LarsOptions& options)
    : Optimizer("Lars", options.exclude_vectors ? without_vectors(groups) : groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize,
                 .adapts = true},
                {{"momentum", &GroupOptions::momentum, options.momentum, 0.0, HUGE_VAL},
                 {"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL},
                 {"trust", &GroupOptions::trust, options.trust, 0.0, HUGE_VAL},
                 {"eps", &GroupOptions::eps, options.eps, 0.0, HUGE_VAL}}),
      options_(options),
      momentum_(zeros_for_arenas("momentum")),
      segments_(segments_of_arenas(*this)) {}

void Lars::follow_share() { segments_ = segments_of_arenas(*this); }

std::vector<StateArray> Lars::state() const { return named("momentum", momentum_); }

std::vector<Optimizer::CellUpdate> Lars::updates(std::size_t arena, const Array& gradient) const {
  const GroupOptions& own = options_of(arena);
  const Array& momentum = momentum_[arena];
  const double rate = rate_of(arena);
  if (*own.adapts) {
    const detail::LarsStep step{rate, *own.momentum, *own.weight_decay, *own.trust, *own.eps, options_.nesterov};
    return {
        {{},
         detail::lars_update(arenas()[arena].values(), momentum, gradient, (*segments_)[arena], step, control(arena))}};
  }
  const Array values = weights(arena), slope = share_of(arena, gradient);
  const Array g = *own.weight_decay > 0.0 ? slope + values * *own.weight_decay : slope;
  const Array next = momentum * *own.momentum + g;
  return {{momentum, next}, written(arena, values - (options_.nesterov ? g + next * *own.momentum : next) * rate)};
}

}  // namespace samebytes::optim
