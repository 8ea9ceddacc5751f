#include "samebytes/optim/accumulator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ops/dtypes.h"
#include "optim/optimizer_impl.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

// From here on a flat gradient is never there at once beside the sums: each part of it is added as soon as it is made.
// Below, that would be more launches for memory that does not matter.
constexpr std::int64_t kReleasedBytes = std::int64_t{4} << 20;

bool is_released(const ParameterArena& arena) {
  return arena.size() * static_cast<std::int64_t>(bytes_of(arena.dtype())) >= kReleasedBytes;
}

// The gradients of each arena's parameters.
std::vector<std::vector<Array>> gradients_by_arena(const Optimizer& optimizer, const Array& loss) {
  std::vector<Array> parameters;
  for (const ParameterArena& arena : optimizer.arenas())
    parameters.insert(parameters.end(), arena.parameters().begin(), arena.parameters().end());
  const std::vector<Array> all = gradients(loss, parameters, optimizer.gradient_options());
  std::vector<std::vector<Array>> result;
  auto next = all.begin();
  for (const ParameterArena& arena : optimizer.arenas()) {
    const auto count = static_cast<std::ptrdiff_t>(arena.parameters().size());
    result.emplace_back(next, next + count);
    next += count;
  }
  return result;
}

std::vector<Array> flat_gradients(const Optimizer& optimizer, const Array& loss) {
  std::vector<Array> flat;
  const auto all = gradients_by_arena(optimizer, loss);
  for (std::size_t i = 0; i < all.size(); ++i)
    flat.push_back(optimizer.arenas()[i].pack(all[i], is_released(optimizer.arenas()[i])));
  return flat;
}

}  // namespace

Accumulator::Accumulator(Optimizer& optimizer) : optimizer_(&optimizer) {
  if (optimizer.releases_gradients())
    throw ArgumentError(
        "Accumulator: the optimizer has release_gradients, which updates parameters before their gradients "
        "can be added up; use one of the two");
  means_ = zeros();
}

std::vector<Array> Accumulator::zeros() const {
  std::vector<Array> cells;
  for (const ParameterArena& arena : optimizer_->arenas())
    cells.push_back(
        arena.zeros_like("accumulated gradients", arena.dtype() == f64 ? f64 : f32, MemoryCategory::gradients));
  return cells;
}

void Accumulator::check(double samples) {
  if (!(samples > 0.0)) throw ArgumentError("Accumulator: samples must be above 0, got " + std::to_string(samples));
}

// The cells hold the mean of what was added so far, so that a step reads them as they are: a mean made of sums would
// be one more array of that size.
Array Accumulator::mean_with(std::size_t arena, const Array& gradient, double samples) const {
  const double all = samples_ + samples;
  const Array part = detail::as_dtype(gradient, means_[arena].dtype()) * (samples / all);
  return samples_ == 0.0 ? part : means_[arena] * (samples_ / all) + part;
}

// The first gradients are made where their mean will be, the others beside it and added.
std::vector<Array> Accumulator::updates(const Array& loss, double samples, const std::vector<Array>& cells) const {
  std::vector<Array> result;
  if (samples_ == 0.0 && !watch_) {
    const auto all = gradients_by_arena(*optimizer_, loss);
    for (std::size_t i = 0; i < means_.size(); ++i) {
      const ParameterArena& arena = optimizer_->arenas()[i];
      const bool is_plain = all[i][0].dtype() == cells[i].dtype();
      result.push_back(is_plain ? arena.store(cells[i], all[i])
                                : update(cells[i], mean_with(i, arena.pack(all[i], is_released(arena)), samples)));
    }
    return result;
  }
  const std::vector<Array> gradients = flat_gradients(*optimizer_, loss);
  if (watch_)
    for (Array& node : watch_(gradients, samples)) result.push_back(std::move(node));
  for (std::size_t i = 0; i < means_.size(); ++i)
    result.push_back(update(cells[i], mean_with(i, gradients[i], samples)));
  return result;
}

// The loss is asked for, too: whoever looks at it later would pay for a second forward pass, and so would a step,
// before which it must be known. The gradients have no handles when they are evaluated.
void Accumulator::add(const Array& loss, double samples) {
  check(samples);
  std::vector<Array> all = updates(loss, samples, means_);
  all.insert(all.begin(), loss);
  eval(all);
  samples_ += samples;
}

std::vector<Array> Accumulator::adding(const Array& loss, double samples) {
  check(samples);
  std::vector<Array>& cells = samples_ == 0.0 ? means_ : next_;
  if (cells.empty()) cells = zeros();
  return updates(loss, samples, cells);
}

void Accumulator::added(double samples) {
  if (samples_ > 0.0) std::swap(means_, next_);
  samples_ += samples;
}

void Accumulator::lost() { (samples_ == 0.0 ? means_ : next_).clear(); }

void Accumulator::step() {
  if (samples_ == 0.0) return;
  optimizer_->step_flat(means_);
  samples_ = 0.0;
}

void Accumulator::step(GradScaler& scaler) {
  if (samples_ == 0.0) return;
  scaler.step_flat(*optimizer_, means_);
  samples_ = 0.0;
}

// Small gradients alone: a large one would be there as a whole, since more than one update reads it. A source other
// than the optimizer makes it whole anyway.
bool Accumulator::steps_at_once(const Optimizer::GradientSource& source) const {
  if (source) return true;
  return !watch_ && std::none_of(optimizer_->arenas().begin(), optimizer_->arenas().end(), is_released);
}

// A mean that is read more than once, to be clipped or looked at, goes through its cell; else it stays in registers.
std::vector<Array> Accumulator::last_means(const Array& loss, double samples, bool is_read_again,
                                           const Optimizer::GradientSource& source) const {
  if (source) return source_means(loss, samples, source);
  std::vector<Array> result = flat_gradients(*optimizer_, loss);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = mean_with(i, result[i], samples);
    if (is_read_again) result[i] = update(means_[i], result[i]);
  }
  return result;
}

// Each gradient becomes the mean with those before it as soon as it is there, so that its source, which sends it to
// other processes, has nothing more to do with it afterwards.
std::vector<Array> Accumulator::source_means(const Array& loss, double samples,
                                             const Optimizer::GradientSource& source) const {
  const double all = samples_ + samples;
  std::vector<Array> before(optimizer_->parameters().size());  // of each parameter
  for (std::size_t i = 0; i < means_.size() && samples_ > 0.0; ++i) {
    const ParameterArena& arena = optimizer_->arenas()[i];
    for (std::size_t k = 0; k < arena.parameters().size(); ++k) {
      const std::int64_t begin = arena.offsets()[k], size = arena.parameters()[k].size();
      before[optimizer_->impl_->places[i][k]] =
          reshape(slice(means_[i], 0, begin, begin + size), arena.parameters()[k].shape());
    }
  }
  return source(loss, [&](std::size_t parameter, const Array& gradient) {
    if (!before[parameter].defined()) return gradient;
    return before[parameter] * (samples_ / all) +
           detail::as_dtype(gradient, before[parameter].dtype()) * (samples / all);
  });
}

void Accumulator::step(const Array& loss, double samples, const Optimizer::GradientSource& source) {
  check(samples);
  if (!steps_at_once(source)) {
    add(loss, samples);
    return step();
  }
  optimizer_->run(
      [&] { return Optimizer::StepParts{last_means(loss, samples, optimizer_->impl_->clip_norm > 0.0, source)}; });
  samples_ = 0.0;
}

void Accumulator::step(const Array& loss, double samples, GradScaler& scaler, const Optimizer::GradientSource& source) {
  check(samples);
  if (!scaler.is_enabled() && source) return step(loss, samples, source);
  if (!steps_at_once(source) || !scaler.is_enabled()) {
    add(loss, samples);
    step(scaler);
    return scaler.update();
  }
  scaler.step_with(*optimizer_, [&] { return last_means(loss, samples, true, source); });
  samples_ = 0.0;
}

std::vector<StateArray> Accumulator::named_means() const {
  std::vector<StateArray> result;
  for (std::size_t i = 0; i < means_.size(); ++i) result.push_back({std::to_string(i) + ".mean", means_[i]});
  return result;
}

// Between two groups of micro-batches the means hold nothing that is read again.
StateDict Accumulator::state_dict() const {
  StateDict state{{}, {{"samples", samples_}}};
  if (samples_ > 0.0) state.arrays = named_means();
  return state;
}

void Accumulator::load_state_dict(const StateDict& state) {
  const double samples = number_of("Accumulator", state, "samples");
  if (!(samples >= 0.0)) throw ArgumentError("Accumulator: samples must be at least 0, got " + std::to_string(samples));
  load_arrays("Accumulator", samples > 0.0 ? named_means() : std::vector<StateArray>(), state.arrays);
  samples_ = samples;
}

}  // namespace samebytes::optim
