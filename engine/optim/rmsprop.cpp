#include "samebytes/optim/rmsprop.h"

#include <cmath>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {

RmsProp::RmsProp(std::span<const Array> parameters, const RmsPropOptions& options)
    : RmsProp(one_group(parameters), options) {}

RmsProp::RmsProp(const std::vector<ParameterGroup>& groups, const RmsPropOptions& options)
    : Optimizer("RmsProp", groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize,
                 .moments = options.moments,
                 .rounds_weights = true},
                {{"alpha", &GroupOptions::alpha, options.alpha, 0.0, HUGE_VAL},
                 {"eps", &GroupOptions::eps, options.eps, 0.0, HUGE_VAL},
                 {"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL},
                 {"momentum", &GroupOptions::momentum, options.momentum, 0.0, HUGE_VAL}}),
      options_(options) {
  if (options.centered && options.moments != f32)
    throw ArgumentError("RmsProp: centered takes the square of one moment from another, which needs moments in f32");
  square_ = zeros_for_arenas("square");
  momentum_ = momentum_buffers();
  if (options.centered) mean_ = zeros_for_arenas("mean");
}

std::vector<StateArray> RmsProp::state() const {
  std::vector<StateArray> result = named("square", square_);
  for (const auto& [what, cells] : {std::pair{"momentum", &momentum_}, std::pair{"mean", &mean_}})
    for (StateArray& entry : named(what, *cells)) result.push_back(std::move(entry));
  return result;
}

std::vector<Optimizer::CellUpdate> RmsProp::updates(std::size_t arena, const Array& gradient) const {
  const GroupOptions& own = options_of(arena);
  const double alpha = *own.alpha;
  const Array values = weights(arena);
  const Array g = *own.weight_decay > 0.0 ? gradient + values * *own.weight_decay : gradient;
  const Array next = widened(arena, square_[arena]) * alpha + square(g) * (1.0 - alpha);
  std::vector<CellUpdate> result{kept(arena, square_[arena], next, 0)};
  Array variance = next;
  if (options_.centered) {
    const Array mean = mean_[arena] * alpha + g * (1.0 - alpha);
    result.push_back({mean_[arena], mean});
    variance = relu(next - square(mean));  // rounding may leave it a little below 0
  }
  const Array direction = g / (sqrt(variance) + *own.eps);
  if (!momentum_[arena].defined()) {
    result.push_back(written(arena, values - direction * rate_of(arena)));
  } else {
    const Array buffer = widened(arena, momentum_[arena]) * *own.momentum + direction;
    result.push_back(kept(arena, momentum_[arena], buffer, 1));
    result.push_back(written(arena, values - buffer * rate_of(arena)));
  }
  return result;
}

}  // namespace samebytes::optim
