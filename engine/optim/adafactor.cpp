#include "samebytes/optim/adafactor.h"

#include <algorithm>
#include <cmath>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {

Adafactor::Adafactor(std::span<const Array> parameters, const AdafactorOptions& options)
    : Adafactor(one_group(parameters), options) {}

Adafactor::Adafactor(const std::vector<ParameterGroup>& groups, const AdafactorOptions& options)
    : Optimizer("Adafactor", groups, {options.rate, options.clip_norm, options.clip_value, options.maximize},
                {{"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL}}),
      options_(options) {
  require_range("Adafactor", "eps1", options.eps1, 0.0, HUGE_VAL);
  require_range("Adafactor", "eps2", options.eps2, 0.0, HUGE_VAL);
  if (!(options.beta2_decay <= 0.0))
    throw ArgumentError("Adafactor: beta2_decay must be at most 0, " + std::to_string(options.beta2_decay) + " came");
  if (!(options.d >= 1.0))
    throw ArgumentError("Adafactor: d must be at least 1, " + std::to_string(options.d) + " came");
  for (std::size_t i = 0; i < arenas().size(); ++i) {
    const ParameterArena& arena = arenas()[i];
    std::vector<Shape> shapes;
    for (const Array& parameter : arena.parameters()) shapes.push_back(parameter.shape());
    const AdafactorLayout& layout = layouts_.emplace_back(arena.offsets(), shapes, arena.size());
    const std::string number = std::to_string(i);
    rows_.push_back(cell(zeros({layout.rows()}, arena.dtype()), "Adafactor rows " + number, MemoryCategory::optimizer));
    columns_.push_back(
        cell(zeros({layout.columns()}, arena.dtype()), "Adafactor columns " + number, MemoryCategory::optimizer));
  }
}

std::vector<StateArray> Adafactor::state() const {
  std::vector<StateArray> result = named("rows", rows_);
  for (StateArray& entry : named("columns", columns_)) result.push_back(std::move(entry));
  return result;
}

std::vector<Optimizer::CellUpdate> Adafactor::updates(std::size_t arena, const Array& gradient) const {
  const double t = static_cast<double>(step_count() + 1), rate = rate_of(arena);
  const double machine = arenas()[arena].dtype() == f64 ? 0x1p-52 : 0x1p-23;
  const AdafactorStep step{.rate = std::min(rate, 1.0 / std::sqrt(t)),
                           .rest = std::pow(t, options_.beta2_decay),
                           .eps = options_.eps1 > 0.0 ? options_.eps1 : machine,
                           .least_scale = options_.eps2,
                           .clip = options_.d,
                           .keep = 1.0 - rate * *options_of(arena).weight_decay};
  Array told;
  if (const Array taken = steps_taken())
    told = control(arena, {pow(taken, options_.beta2_decay), clip(rsqrt(taken), 0.0, rate)});
  return {{{},
           adafactor_update(arenas()[arena].values(), rows_[arena], columns_[arena], gradient, layouts_[arena], step,
                            told)}};
}

}  // namespace samebytes::optim
