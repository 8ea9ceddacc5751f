#include "samebytes/train/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "samebytes/error.h"

namespace samebytes::train {
namespace {

constexpr std::size_t kKeptFree = std::size_t{2} << 30;
constexpr std::size_t kKeptFreeShare = 8;  // ... and of a small machine this part
constexpr std::size_t kNoLimit = std::size_t{1} << 60;
constexpr double kMoreRecomputation = 0.3;  // of a step's cost, by launches of the plan's own

struct Tool {
  Technique technique;
  std::function<void(StepSettings& step, int level)> apply;  // level 1 and up
};

// From what costs least: pointwise values, the chunked head, checkpointing beside it.
Tool recomputation(const FitOptions& options) {
  struct Level {
    const char* text;
    Checkpointing checkpointing;  // off: as it is
    bool chunks_head;
  };
  const StepSettings& asked = options.asked;
  const bool may_chunk = options.has_head && !asked.chunks_head, may_divide = !asked.checkpointing.is_on();
  std::vector<Level> levels{{"recomputation of pointwise values", {}, false}};
  if (may_chunk) levels.push_back({"chunked head", {}, true});
  if (may_divide) {
    levels.push_back({may_chunk ? "gradient checkpointing sqrt, chunked head" : "gradient checkpointing sqrt",
                      Checkpointing::sqrt(), may_chunk});
    levels.push_back({may_chunk ? "gradient checkpointing block, chunked head" : "gradient checkpointing block",
                      Checkpointing::every(1), may_chunk});
  }
  Technique technique{"recomputation", {}};
  for (const Level& level : levels) technique.levels.emplace_back(level.text);
  return {technique, [levels](StepSettings& step, int level) {
            const Level& taken = levels[static_cast<std::size_t>(level - 1)];
            step.recompute = kMoreRecomputation;
            if (taken.checkpointing.is_on()) step.checkpointing = taken.checkpointing;
            if (taken.chunks_head) step.chunks_head = true;
          }};
}

Tool micro_batches(std::int64_t batch) {
  Technique pieces{"micro-batches", {}};
  for (std::int64_t size = batch / 2; size > 0; size /= 2)
    pieces.levels.push_back(fmt::format("micro-batches of {}", size));
  return {pieces,
          [batch](StepSettings& step, int level) { step.micro_batch = std::max<std::int64_t>(1, batch >> level); }};
}

// Where nothing else keeps all gradients, that of a head which is also the embedding is the largest one for long.
std::optional<Tool> release(const FitOptions& options) {
  Technique technique{"gradient release", {}};
  const bool may_release = !options.asked.release_gradients,
             may_delay = options.has_head && !options.asked.late_head_gradient;
  if (may_release) technique.levels.emplace_back("gradient release");
  if (may_delay)
    technique.levels.emplace_back(may_release ? "gradient release, late head gradient" : "late head gradient");
  if (technique.levels.empty()) return {};
  const int first_late = may_release ? 2 : 1;
  return Tool{technique, [first_late](StepSettings& step, int level) {
                step.release_gradients = true;
                if (level >= first_late) step.late_head_gradient = step.chunks_head = true;
              }};
}

std::vector<Tool> techniques_for(const FitOptions& options) {
  const StepSettings& asked = options.asked;
  std::vector<Tool> tools;
  if (options.trains) {
    tools.push_back(recomputation(options));
    if (options.may_cut_batch && asked.micro_batch == 0 && asked.batch > 1) tools.push_back(micro_batches(asked.batch));
    if (std::optional<Tool> tool = release(options)) tools.push_back(std::move(*tool));
    if (options.allows_moments && asked.moments == f32)
      tools.push_back({{"16-bit moments", {"moments in bf16"}}, [](StepSettings& step, int) { step.moments = bf16; }});
  }
  if (options.allows_precision && asked.precision == f32) {
    Technique precision{"precision", {"precision bf16"}};
    if (options.trains) precision.levels.emplace_back("precision bf16 with weights in bf16 alone");
    tools.push_back({precision, [](StepSettings& step, int level) {
                       step.precision = bf16;
                       if (level > 1) step.bf16_weights = true;
                     }});
  }
  return tools;
}

class Fitter {
 public:
  Fitter(const FitOptions& options, const PeakOf& peak) : options_(options), peak_(peak) {
    if (options.budget == 0) throw ArgumentError("fit_memory: expected a budget above 0 bytes, got 0");
  }

  MemoryFit with_largest_batch() const {
    BatchSearch search{.most = options_.most_batch, .multiple = options_.multiple, .budget = options_.budget};
    MemoryFit fit{.step = options_.asked, .budget = options_.budget, .techniques = "nothing"};
    std::size_t smallest = 0;
    const auto found = largest_batch(search, [&](std::int64_t batch) {
      fit.step.batch = batch;
      const std::size_t bytes = peak_(fit.step) + static_cast<std::size_t>(batch) * options_.bytes_per_sample;
      if (batch == 1) smallest = bytes;
      return bytes;
    });
    if (!found)
      throw OutOfMemory(fmt::format("{}: a step of one sample needs {} ({} bytes), there are {}; {} looks for "
                                    "techniques that need less",
                                    options_.names.finds_batch, bytes_text(smallest), smallest,
                                    bytes_text(search.budget), options_.names.techniques),
                        smallest, search.budget);
    fit.step.batch = *found;
    fit.planned = peak_(fit.step);
    return fit;
  }

  MemoryFit with_techniques() const {
    const std::vector<Tool> tools = techniques_for(options_);
    const BudgetChoice choice = search(tools, options_.budget);
    if (!choice.fits) throw OutOfMemory(explain(choice, tools), choice.planned, options_.budget);
    return {.step = applied(tools, choice.levels),
            .planned = choice.planned,
            .budget = options_.budget,
            .techniques = choice.to_text(names_of(tools))};
  }

 private:
  BudgetChoice search(const std::vector<Tool>& tools, std::size_t budget) const {
    return choose_within_budget(budget, names_of(tools),
                                [&](std::span<const int> levels) -> std::optional<std::size_t> {
                                  try {
                                    return peak_(applied(tools, levels));
                                  } catch (const ArgumentError&) {  // these do not go together
                                    return {};
                                  }
                                });
  }

  static std::vector<Technique> names_of(const std::vector<Tool>& tools) {
    std::vector<Technique> names;
    names.reserve(tools.size());
    for (const Tool& tool : tools) names.push_back(tool.technique);
    return names;
  }

  StepSettings applied(const std::vector<Tool>& tools, std::span<const int> levels) const {
    StepSettings step = options_.asked;
    for (std::size_t i = 0; i < tools.size(); ++i)
      if (levels[i] > 0) tools[i].apply(step, levels[i]);
    return step;
  }

  std::string explain(const BudgetChoice& choice, const std::vector<Tool>& tools) const {
    const FitNames& names = options_.names;
    std::string text = fmt::format("{} {}: the smallest step that there is needs {} ({} bytes), with {}", names.budget,
                                   bytes_text(options_.budget), bytes_text(choice.planned), choice.planned,
                                   choice.to_text(names_of(tools)));
    FitOptions freer = options_;
    freer.allows_moments = freer.allows_precision = true;
    const std::vector<Tool> all = techniques_for(freer);
    if (all.size() > tools.size()) {
      const BudgetChoice more = search(all, 0);
      if (more.planned < choice.planned)
        text += fmt::format("; {} makes that {} ({} bytes), with {}", names.allow, bytes_text(more.planned),
                            more.planned, more.to_text(names_of(all)));
    }
    if (options_.trains && options_.clips_by_norm && !options_.asked.release_gradients)
      text += fmt::format("; gradient release does not go with clipping by norm; {} turns that off", names.no_clipping);
    return text;
  }

  const FitOptions& options_;
  const PeakOf& peak_;
};

}  // namespace

MemoryFit fit_memory(const FitOptions& options, const PeakOf& peak) {
  const Fitter fitter(options, peak);
  return options.finds_batch ? fitter.with_largest_batch() : fitter.with_techniques();
}

PeakOf rehearsal(EngineOptions options, std::function<void(Engine& engine, const StepSettings& step)> run) {
  options.dry_run = true;
  options.memory_limit = kNoLimit;
  return [options, run = std::move(run)](const StepSettings& step) {
    EngineOptions own = options;
    own.recompute = step.recompute;
    Engine engine(own);
    const EngineScope scope(engine);
    run(engine, step);
    return engine.memory().peak_bytes;
  };
}

std::size_t usable_memory(const Engine& engine) {
  const std::size_t limit = engine.memory().limit_bytes;
  return limit - std::min(kKeptFree, limit / kKeptFreeShare);
}

data::DatasetPtr hollow(const data::DatasetPtr& set, const std::vector<data::TransformPtr>& transforms,
                        std::optional<std::int64_t> samples) {
  const auto seen = transforms.empty() ? set : data::transformed(set, transforms);
  return data::generate(samples.value_or(set->size()), seen->fields(),
                        [](std::int64_t, std::span<const data::Field>) {});
}

}  // namespace samebytes::train
