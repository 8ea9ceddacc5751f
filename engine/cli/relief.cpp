#include "cli/relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/session.h"
#include "samebytes/memory.h"

namespace samebytes::cli {
namespace {

constexpr std::size_t kWorthIt = std::size_t{1} << 20;  // bytes of activations that smaller pieces can make less

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
  return activations / 2 > sums + kWorthIt;
}

}  // namespace

PressureOptions pressure_options(const Options& options, const RunInMemory& run,
                                 std::function<void(const PressureAction&)> tell) {
  const auto give_up_slots = [run, slots = loader_options(options, run.batch).slots,
                              done = false]() mutable -> std::optional<std::string> {
    if (slots < 2 || std::exchange(done, true)) return {};
    run.training.limit_slots(1);
    run.test.limit_slots(1);
    return fmt::format("loader: 1 batch in memory instead of {}", slots);
  };
  const auto& allowed = options.limit.allowed;
  const bool may_change =
      options.step.micro_batch || std::find(allowed.begin(), allowed.end(), "pieces") != allowed.end();
  std::string obstacle = may_change ? std::string() : not_alone(run.net);
  const auto give_up_pieces = [run, obstacle, may = !options.adaptive.is_on && !run.optimizer.releases_gradients(),
                               told = false]() mutable -> std::optional<std::string> {
    if (!may || !is_worth_it(run)) return {};
    if (!obstacle.empty()) {
      if (std::exchange(told, true)) return {};
      return fmt::format("nothing more: smaller pieces of a batch would help, but {}; --allow pieces takes them",
                         obstacle);
    }
    const std::optional<std::int64_t> size = run.accumulation.halve(run.batch);
    if (!size) return {};
    release_temporaries(run.engine);
    return fmt::format(
        "batches of {} in pieces of {}: from here on the run equals one without pressure to within rounding, not bit "
        "for "
        "bit",
        run.batch, *size);
  };
  return {.limit = options.limit.pressure.value_or(0),
          .reliefs = {{give_up_slots}, {give_up_pieces}},
          .tell = std::move(tell)};
}

}  // namespace samebytes::cli
