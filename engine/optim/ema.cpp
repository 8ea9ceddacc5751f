#include "samebytes/optim/ema.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/dtypes.h"
#include "optim/require.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
Ema::Ema(const Optimizer& optimizer, const EmaOptions& options) : options_(options), arenas_(optimizer.arenas()) {
  require(options.decay >= 0.0 && options.decay <= 1.0, "Ema", "decay must be in [0, 1]", options.decay);
  require(options.gamma > 0.0, "Ema", "gamma must be above 0", options.gamma);
  require(options.power > 0.0, "Ema", "power must be above 0", options.power);
  require(options.least_decay >= 0.0 && options.least_decay <= options.decay, "Ema",
          "least_decay must be in [0, decay]", options.least_decay);
  require(options.start >= 0, "Ema", "start must be at least 0", static_cast<double>(options.start));
  for (std::size_t i = 0; i < arenas_.size(); ++i)
    averages_.push_back(
        arenas_[i].zeros_like("average of weights " + std::to_string(i), arenas_[i].dtype() == f64 ? f64 : f32));
  narrow_.resize(arenas_.size());
}

double Ema::decay_of(std::int64_t update) const {
  const std::int64_t k = update - options_.start;
  if (k <= 0) return 0.0;
  if (!options_.warmup) return options_.decay;
  const double rising = 1.0 - std::pow(1.0 + static_cast<double>(k) / options_.gamma, -options_.power);
  return std::max(std::min(rising, options_.decay), options_.least_decay);
}

void Ema::update() {
  if (is_swapped_) throw ArgumentError("Ema: update() while the averages are swapped in");
  const double decay = decay_of(update_count_);
  std::vector<Array> updates;
  for (std::size_t i = 0; i < arenas_.size(); ++i)
    updates.push_back(samebytes::update(
        averages_[i],
        averages_[i] * decay + detail::as_dtype(arenas_[i].values(), averages_[i].dtype()) * (1.0 - decay)));
  eval(updates);
  ++update_count_;
}

void Ema::swap() {
  if (!is_swapped_ && update_count_ == 0) throw ArgumentError("Ema: swap() before the first update()");
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    const Array& weights = arenas_[i].values();
    if (is_swapped_ && narrow_[i].defined()) {
      assign(weights, std::exchange(narrow_[i], {}));
      continue;
    }
    const Array kept = (weights * 1.0).eval();  // a copy: one cell is overwritten before the other
    assign(weights, detail::as_dtype(averages_[i], weights.dtype()));
    if (weights.dtype() == averages_[i].dtype())
      assign(averages_[i], kept);
    else
      narrow_[i] = kept;
  }
  is_swapped_ = !is_swapped_;
}

StateDict Ema::state_dict() const {
  StateDict state;
  for (std::size_t i = 0; i < averages_.size(); ++i)
    state.arrays.push_back(
        {std::to_string(i) + ".average", is_swapped_ && !narrow_[i].defined() ? arenas_[i].values() : averages_[i]});
  state.numbers.push_back({"update_count", static_cast<double>(update_count_)});
  return state;
}

void Ema::load_state_dict(const StateDict& state) {
  if (is_swapped_) throw ArgumentError("Ema: load_state_dict() while the averages are swapped in");
  const double count = number_of("Ema", state, "update_count");
  require(count >= 0.0 && count < 0x1p53, "Ema", "update_count must be at least 0", count);
  load_arrays("Ema", state_dict().arrays, state.arrays);
  update_count_ = static_cast<std::int64_t>(count);
}

EmaScope::EmaScope(Ema& ema) : ema_(&ema) {
  if (ema.is_swapped()) throw ArgumentError("EmaScope: the averages are swapped in already");
  ema.swap();
}

EmaScope::~EmaScope() {
  try {
    ema_->swap();
  } catch (...) {  // a failed launch shows at the next use of the weights
  }
}

}  // namespace samebytes::optim
