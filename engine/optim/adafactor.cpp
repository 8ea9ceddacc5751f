#include "samebytes/optim/adafactor.h"

#include <algorithm>
#include <cmath>

#include "ops/adafactor.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

using detail::AdafactorLayout, detail::AdafactorStep;

// Of the parameters that begin in [begin, end).
AdafactorLayout layout_of(const ParameterArena& arena, std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> offsets;
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < arena.parameters().size(); ++i) {
    if (arena.offsets()[i] < begin || arena.offsets()[i] >= end) continue;
    offsets.push_back(arena.offsets()[i]);
    shapes.push_back(arena.parameters()[i].shape());
  }
  return {offsets, shapes, arena.size()};
}

}  // namespace

Adafactor::Adafactor(std::span<const Array> parameters, const AdafactorOptions& options)
    : Adafactor(one_group(parameters), options) {}

Adafactor::Adafactor(const std::vector<ParameterGroup>& groups, const AdafactorOptions& options)
    : Optimizer("Adafactor", groups,
                {.rate = options.rate,
                 .clip_norm = options.clip_norm,
                 .clip_value = options.clip_value,
                 .maximize = options.maximize},
                {{"weight_decay", &GroupOptions::weight_decay, options.weight_decay, 0.0, HUGE_VAL}}),
      options_(options),
      layouts_(std::make_shared<std::vector<AdafactorLayout>>()) {
  require_range("Adafactor", "eps1", options.eps1, 0.0, HUGE_VAL);
  require_range("Adafactor", "eps2", options.eps2, 0.0, HUGE_VAL);
  if (!(options.beta2_decay <= 0.0))
    throw ArgumentError("Adafactor: beta2_decay must be at most 0, got " + std::to_string(options.beta2_decay));
  if (!(options.d >= 1.0)) throw ArgumentError("Adafactor: d must be at least 1, got " + std::to_string(options.d));
  for (std::size_t i = 0; i < arenas().size(); ++i) {
    const ParameterArena& arena = arenas()[i];
    const AdafactorLayout& layout = layouts_->emplace_back(layout_of(arena, 0, arena.size()));
    const std::string number = std::to_string(i);
    rows_.push_back(cell(zeros({layout.rows()}, arena.dtype()), "Adafactor rows " + number, MemoryCategory::optimizer));
    columns_.push_back(
        cell(zeros({layout.columns()}, arena.dtype()), "Adafactor columns " + number, MemoryCategory::optimizer));
  }
}

// What AdafactorLayout counts, but for the element that a cell without any has.
std::int64_t Adafactor::state_before(std::size_t list, std::size_t arena, std::int64_t element) const {
  const ParameterArena& own = arenas()[arena];
  std::int64_t count = 0;
  for (std::size_t i = 0; i < own.parameters().size() && own.offsets()[i] < element; ++i) {
    const Shape& shape = own.parameters()[i].shape();
    const bool is_vector = shape.rank() < 2;
    if (shape.size() == 0 || (is_vector && list == 1)) continue;
    count += is_vector ? shape.size() : shape.size() / shape[shape.rank() - (list == 0 ? 1 : 2)];
  }
  return count;
}

void Adafactor::follow_share() {
  for (std::size_t i = 0; i < arenas().size(); ++i)
    if (const auto [begin, end] = share(i); begin < end) (*layouts_)[i] = layout_of(arenas()[i], begin, end);
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
  if (const Array taken = steps_taken(); taken.defined())
    told = control(arena, {pow(taken, options_.beta2_decay), clip(rsqrt(taken), 0.0, rate)});
  return {{{},
           detail::adafactor_update(arenas()[arena].values(), rows_[arena], columns_[arena], gradient,
                                    (*layouts_)[arena], step, told)}};
}

}  // namespace samebytes::optim
