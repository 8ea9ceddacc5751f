#include "samebytes/optim/grad_scaler.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "ops/dtypes.h"
#include "optim/optimizer_impl.h"
#include "optim/require.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

// A number beside x, on the device and without a launch of its own. Requires: x is finite.
Array beside(const Array& x, double value) { return x * 0.0 + value; }

void require_whole_gradients(const Optimizer& optimizer) {
  if (optimizer.releases_gradients())
    throw ArgumentError(
        "GradScaler: the optimizer has release_gradients, which updates parameters before all gradients were looked "
        "at for overflows; use one of the two");
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  const double largest = std::numeric_limits<float>::max();
  require(options.init_scale > 0.0 && options.init_scale <= largest, "GradScaler",
          "init_scale must be above 0 and finite", options.init_scale);
  require(options.growth_factor > 1.0 && options.growth_factor <= largest, "GradScaler",
          "growth_factor must be above 1", options.growth_factor);
  require(options.backoff_factor > 0.0 && options.backoff_factor < 1.0, "GradScaler",
          "backoff_factor must be between 0 and 1", options.backoff_factor);
  require(options.growth_interval >= 1 && options.growth_interval <= 1 << 24, "GradScaler",
          "growth_interval must be 1 to 2^24", static_cast<double>(options.growth_interval));
}

void GradScaler::make_cells() {
  if (scale_.defined()) return;
  scale_ = cell(full({1}, options_.init_scale), "loss scale");
  tracker_ = cell(full({1}, 0.0), "steps without an overflow");
}

Array GradScaler::scale(const Array& loss) {
  if (!options_.enabled) return loss;
  if (!loss.defined()) throw ArgumentError("GradScaler: scale needs a loss, got an empty handle");
  make_cells();
  return loss * reshape(scale_, loss.shape());
}

// Overflow is looked for before the division, as in PyTorch: a scale below 1 makes none.
Array GradScaler::finite_of(const Optimizer& optimizer, std::span<const Array> gradients) const {
  if (gradients.size() != optimizer.arenas().size())
    throw ArgumentError("GradScaler: needs one flat gradient for each of " + std::to_string(optimizer.arenas().size()) +
                        " arenas, got " + std::to_string(gradients.size()));
  return all_finite(gradients);
}

std::vector<Array> GradScaler::divided(std::span<const Array> gradients) const {
  std::vector<Array> result;
  for (const Array& gradient : gradients) {
    const Dtype real = gradient.dtype() == f64 ? f64 : f32;
    result.push_back(detail::as_dtype(gradient, real) / detail::as_dtype(scale_, real));
  }
  return result;
}

std::vector<Array> GradScaler::new_scale(const Array& finite) const {
  const Array good = tracker_ + 1.0;
  const Array is_due = greater_equal(good, beside(good, static_cast<double>(options_.growth_interval)));
  const Array grown = scale_ * options_.growth_factor;
  const Array largest = beside(scale_, static_cast<double>(std::numeric_limits<float>::max()));
  const Array next = where(is_due, where(less_equal(grown, largest), grown, scale_), scale_);
  return {samebytes::update(scale_, where(finite, next, scale_ * options_.backoff_factor)),
          samebytes::update(tracker_, where(finite, where(is_due, beside(good, 0.0), good), beside(good, 0.0)))};
}

void GradScaler::step(Optimizer& optimizer, const Array& loss) { step(optimizer, loss, {}); }

void GradScaler::step(Optimizer& optimizer, const Array& loss, const Optimizer::GradientSource& source) {
  if (!options_.enabled) return optimizer.step(loss, source);
  step_with(optimizer, [&] { return source ? source(scale(loss), {}) : optimizer.flat_gradients(scale(loss)); });
}

void GradScaler::step_with(Optimizer& optimizer, const std::function<std::vector<Array>()>& flat_gradients) {
  require_whole_gradients(optimizer);
  if (!progress_.empty())
    throw ArgumentError("GradScaler: step(optimizer, loss) is a whole step, and update() has not ended the last one");
  make_cells();
  optimizer.run([&] {
    const std::vector<Array> gradients = flat_gradients();
    const Array finite = finite_of(optimizer, gradients);
    return Optimizer::StepParts{divided(gradients), finite, new_scale(finite)};
  });
}

std::vector<Array> GradScaler::unscale(const Optimizer& optimizer, std::span<const Array> gradients) {
  if (!options_.enabled) return {gradients.begin(), gradients.end()};
  require_whole_gradients(optimizer);
  if (const auto found = progress_.find(&optimizer); found != progress_.end())
    throw ArgumentError(found->second.stage == Stage::unscaled
                            ? "GradScaler: unscale was already called for this optimizer since the last update"
                            : "GradScaler: unscale was called after this optimizer's step");
  make_cells();
  progress_[&optimizer] = {Stage::unscaled, finite_of(optimizer, gradients)};
  return divided(gradients);
}

void GradScaler::step_flat(Optimizer& optimizer, std::span<const Array> gradients) {
  if (!options_.enabled) return optimizer.step_flat(gradients);
  const auto found = progress_.find(&optimizer);
  if (found != progress_.end() && found->second.stage == Stage::stepped)
    throw ArgumentError("GradScaler: this optimizer has already stepped since the last update");
  make_cells();
  std::vector<Array> unscaled =
      found == progress_.end() ? unscale(optimizer, gradients) : std::vector<Array>(gradients.begin(), gradients.end());
  Progress& progress = progress_[&optimizer];
  optimizer.run([&] { return Optimizer::StepParts{std::move(unscaled), progress.finite, {}}; });
  progress.stage = Stage::stepped;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  if (progress_.empty()) throw ArgumentError("GradScaler: update needs a step or unscale since the last one");
  Array finite;
  for (const auto& [optimizer, progress] : progress_)
    finite = finite.defined() ? minimum(finite, progress.finite) : progress.finite;
  eval(new_scale(finite));
  progress_.clear();
}

void GradScaler::set_scale(double scale) {
  require(scale > 0.0 && std::isfinite(static_cast<float>(scale)), "GradScaler", "the scale must be above 0 and finite",
          scale);
  make_cells();
  assign(scale_, full({1}, scale));
  progress_.clear();
}

double GradScaler::scale() const {
  if (!options_.enabled) return 1.0;
  return scale_.defined() ? scale_.value() : options_.init_scale;
}

GradScalerState GradScaler::state() const {
  return {.scale = scale_.defined() ? scale_.value() : options_.init_scale,
          .growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = options_.growth_interval,
          .growth_tracker = tracker_.defined() ? static_cast<std::int64_t>(tracker_.value()) : 0};
}

void GradScaler::load_state(const GradScalerState& state) {
  GradScalerOptions options = options_;
  options.init_scale = state.scale;
  options.growth_factor = state.growth_factor;
  options.backoff_factor = state.backoff_factor;
  options.growth_interval = state.growth_interval;
  const GradScaler checked(options);  // throws for what is out of range
  require(state.growth_tracker >= 0 && state.growth_tracker < state.growth_interval, "GradScaler",
          "growth_tracker must be in [0, growth_interval)", static_cast<double>(state.growth_tracker));
  options_ = options;
  make_cells();
  eval({samebytes::update(scale_, full({1}, state.scale)),
        samebytes::update(tracker_, full({1}, static_cast<double>(state.growth_tracker)))});
  progress_.clear();
}

}  // namespace samebytes::optim
