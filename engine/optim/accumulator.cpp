#include "samebytes/optim/accumulator.h"

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

// From here on a flat gradient is never there at once beside the sums: each part of it is added as soon as it is made.
// Below, that would be more launches for memory that does not matter.
constexpr std::int64_t kReleasedBytes = std::int64_t{4} << 20;

// One flat gradient for each arena.
std::vector<Array> flat_gradients(const Optimizer& optimizer, const Array& loss) {
  std::vector<Array> parameters;
  for (const ParameterArena& arena : optimizer.arenas())
    parameters.insert(parameters.end(), arena.parameters().begin(), arena.parameters().end());
  const std::vector<Array> all = gradients(loss, parameters);
  std::vector<Array> flat;
  std::span<const Array> rest(all);
  for (const ParameterArena& arena : optimizer.arenas()) {
    const std::size_t count = arena.parameters().size();
    const bool releases = arena.size() * static_cast<std::int64_t>(bytes_of(arena.dtype())) >= kReleasedBytes;
    flat.push_back(arena.pack(rest.first(count), releases));
    rest = rest.subspan(count);
  }
  return flat;
}

}  // namespace

Accumulator::Accumulator(Optimizer& optimizer) : optimizer_(&optimizer) {
  if (optimizer.releases_gradients())
    throw ArgumentError(
        "Accumulator: the optimizer has release_gradients, which updates parameters before their gradients "
        "can be added up; use one of the two");
  for (const ParameterArena& arena : optimizer.arenas())
    means_.push_back(
        arena.zeros_like("accumulated gradients", arena.dtype() == f64 ? f64 : f32, MemoryCategory::gradients));
}

void Accumulator::add(const Array& loss, double samples) {
  if (!(samples > 0.0))
    throw ArgumentError("Accumulator: samples must be above 0, " + std::to_string(samples) + " came");
  // The cells hold the mean of what was added so far, so that a step reads them as they are: a mean made of sums would
  // be one more array of that size. Made in a function of its own, so that the gradients have no handles left when they
  // are evaluated.
  const double all = samples_ + samples;
  const auto updates = [&] {
    const std::vector<Array> gradients = flat_gradients(*optimizer_, loss);
    std::vector<Array> result = watch_ ? watch_(gradients, samples) : std::vector<Array>();
    for (std::size_t i = 0; i < means_.size(); ++i) {
      const Array part = astype(gradients[i], means_[i].dtype()) * (samples / all);
      result.push_back(update(means_[i], samples_ == 0.0 ? part : means_[i] * (samples_ / all) + part));
    }
    return result;
  };
  eval(updates());
  samples_ = all;
}

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
  if (!(samples >= 0.0))
    throw ArgumentError("Accumulator: samples must be at least 0, " + std::to_string(samples) + " came");
  load_arrays("Accumulator", samples > 0.0 ? named_means() : std::vector<StateArray>(), state.arrays);
  samples_ = samples;
}

}  // namespace samebytes::optim
