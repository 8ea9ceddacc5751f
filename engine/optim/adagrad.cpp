#include "samebytes/optim/adagrad.h"

#include <cmath>

#include "samebytes/ops.h"

namespace samebytes::optim {

Adagrad::Adagrad(std::span<const Array> parameters, const AdagradOptions& options)
    : Adagrad(one_group(parameters), options) {}

Adagrad::Adagrad(const std::vector<ParameterGroup>& groups, const AdagradOptions& options)
    : Optimizer("Adagrad", groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize,
                 .rounds_weights = true},
                {{"rate_decay", &GroupOptions::rate_decay, options.rate_decay, 0.0, HUGE_VAL},
                 {"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL},
                 {"eps", &GroupOptions::eps, options.eps, 0.0, HUGE_VAL}}),
      options_(options) {
  require_range("Adagrad", "initial_accumulator", options.initial_accumulator, 0.0, HUGE_VAL);
  sum_ = zeros_for_arenas("sum");
  if (options.initial_accumulator > 0.0)
    for (const Array& sum : sum_) assign(sum, full(sum.shape(), options.initial_accumulator, sum.dtype()));
}

std::vector<StateArray> Adagrad::state() const { return named("sum", sum_); }

std::vector<Optimizer::CellUpdate> Adagrad::updates(std::size_t arena, const Array& gradient) const {
  const GroupOptions& own = options_of(arena);
  const Array values = weights(arena);
  const Array g = *own.weight_decay > 0.0 ? gradient + values * *own.weight_decay : gradient;
  const Array next = sum_[arena] + square(g);
  const double rate = rate_of(arena);
  const Array taken = *own.rate_decay > 0.0 ? steps_taken() : Array();
  const Array scaled = taken.defined() ? g * (rate / ((taken - 1.0) * *own.rate_decay + 1.0))
                                       : g * (rate / (1.0 + static_cast<double>(step_count()) * *own.rate_decay));
  return {{sum_[arena], next}, written(arena, values - scaled / (sqrt(next) + *own.eps))};
}

}  // namespace samebytes::optim
