#include "train/relief.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "samebytes/engine.h"
#include "samebytes/memory.h"
#include "samebytes/nn.h"

namespace samebytes::train {
namespace {

constexpr std::size_t kLeastRelief = std::size_t{1} << 20;  // bytes of activations that smaller pieces can make less

// What sees of a batch more than one sample, or draws numbers by piece: pieces change it by more than rounding.
std::string not_alone(nn::Module& net) {
  for (const auto& one : net.modules()) {
    if (dynamic_cast<nn::BatchNorm*>(one.module) != nullptr) return "batch norms would see smaller pieces";
    const auto* dropout = dynamic_cast<nn::Dropout*>(one.module);
    if (dropout != nullptr && dropout->p() > 0) return "dropout would draw other numbers";
  }
  return {};
}

std::size_t bytes_of_gradients(const optim::Optimizer& optimizer) {
  std::size_t bytes = 0;
  for (const optim::ParameterArena& arena : optimizer.arenas())
    bytes += static_cast<std::size_t>(arena.size()) * bytes_of(arena.dtype());
  return bytes;
}

// Half of what the activations take now must be more than the sums of gradients that the first pieces bring.
bool is_worth_it(const RunInMemory& run) {
  const std::size_t activations = run.engine.memory().live_by_category[MemoryCategory::activations];
  const std::size_t sums = run.accumulation.adds_up() ? 0 : bytes_of_gradients(run.optimizer);
  return activations / 2 > sums + kLeastRelief;
}

}  // namespace

PressureOptions pressure_options(const PressureRelief& relief, const RunInMemory& run,
                                 std::function<void(const PressureAction&)> tell) {
  const auto give_up_slots = [run, done = false]() mutable -> std::optional<std::string> {
    const int slots = run.training.stats().slots;
    if (slots < 2 || std::exchange(done, true)) return {};
    run.training.limit_slots(1);
    if (run.validation != nullptr) run.validation->limit_slots(1);
    return fmt::format("loader: 1 batch in memory instead of {}", slots);
  };
  const std::string obstacle = relief.may_change ? std::string() : not_alone(run.net);
  const auto give_up_pieces = [run, obstacle, hint = relief.hint,
                               told = false]() mutable -> std::optional<std::string> {
    if (!run.may_halve || run.optimizer.releases_gradients() || !is_worth_it(run)) return {};
    if (!obstacle.empty()) {
      if (std::exchange(told, true)) return {};
      return fmt::format("nothing more: smaller pieces of a batch would help, but {}; {} takes them", obstacle, hint);
    }
    const std::int64_t batch = run.batch;
    const std::optional<std::int64_t> size = run.accumulation.halve(batch);
    if (!size) return {};
    release_temporaries(run.engine);
    return fmt::format(
        "batches of {} in pieces of {}: from here on the run equals one without pressure to within rounding, not bit "
        "for bit",
        batch, *size);
  };
  return {.limit = relief.limit, .reliefs = {{give_up_slots}, {give_up_pieces}}, .tell = std::move(tell)};
}

}  // namespace samebytes::train
