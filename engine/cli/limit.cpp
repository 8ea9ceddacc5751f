#include "cli/limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cli/bench_run.h"
#include "cli/option_table.h"
#include "cli/session.h"
#include "cli/techniques.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "samebytes/budget.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kRehearsedSteps = 2;  // the second one knows all cells
constexpr std::size_t kKeptFree = std::size_t{2} << 30;
constexpr std::size_t kKeptFreeShare = 8;           // ... and of a small machine this part
constexpr std::int64_t kBatchMultiple = 8;          // vectors and tiles are full
constexpr std::int64_t kLargestBenchBatch = 16384;  // the data of bench is made up before it runs
constexpr std::int64_t kLargestBatch = 1 << 20;

using Rehearse = std::function<Rehearsal(const Options&)>;

Options rehearsal(const Options& asked) {
  Options options = without_files(asked);
  options.limit.rehearses = true;
  options.steps = kRehearsedSteps;
  options.workers = 0;
  options.quiet = true;
  return options;
}

data::DatasetPtr hollow(const data::DatasetPtr& set, const std::vector<data::TransformPtr>& transforms,
                        std::int64_t samples) {
  const auto seen = transforms.empty() ? set : data::transformed(set, transforms);
  return data::generate(samples, seen->fields(), [](std::int64_t, std::span<const data::Field>) {});
}

std::vector<data::TransformPtr> all_transforms(const Workload& workload) {
  std::vector<data::TransformPtr> all = workload.augment;
  all.insert(all.end(), workload.prepare.begin(), workload.prepare.end());
  return all;
}

class Fitter {
 public:
  Fitter(const Options& asked, const Workload& workload, std::int64_t most_batch, bool is_training, Rehearse rehearse)
      : asked_(asked),
        subject_{asked.batch.value_or(workload.defaults.batch), is_training, workload.chunked_loss != nullptr},
        most_batch_(most_batch),
        clip_norm_(asked.clip_norm.value_or(workload.defaults.clip_norm)),
        rehearse_(std::move(rehearse)) {}
  // Bytes beside the engine's for each sample of the batch.
  std::size_t bytes_beside = 0;

  Fitted run() {
    const LimitOptions& limit = asked_.limit;
    if (!limit.automatic_batch && !limit.memory) {
      if (std::any_of(limit.allowed.begin(), limit.allowed.end(), [](const auto& word) { return word != "pieces"; }))
        throw UsageError("--allow needs --memory-limit BYTES");
      return {asked_};
    }
    Fitted fitted{asked_};
    if (limit.automatic_batch) {
      fitted.options.batch = automatic_batch();
      fitted.techniques = "nothing";
      fitted.planned = rehearse_(fitted.options).live_peak;
    } else {
      choose(fitted);
    }
    const std::size_t budget = limit.memory.value_or(available());
    fitted.text = fmt::format(
        "memory: {} planned at the peak, {} {}; {}", bytes_text(*fitted.planned), limit.memory ? "limit" : "to use",
        bytes_text(budget),
        limit.automatic_batch ? fmt::format("batch {}", *fitted.options.batch) : "chosen: " + fitted.techniques);
    return fitted;
  }

 private:
  std::size_t peak_of(const Options& options) const { return rehearse_(options).live_peak; }

  // What this machine gives, less what stays free.
  std::size_t available() const {
    const std::unique_ptr<Engine> engine =
        open_engine(asked_, asked_.device == "all" && asked_.verb == Verb::bench ? "" : asked_.device);
    const std::size_t limit = engine->memory().limit_bytes;
    return limit - std::min(kKeptFree, limit / kKeptFreeShare);
  }

  std::int64_t automatic_batch() {
    BatchSearch search{.most = most_batch_, .multiple = kBatchMultiple};
    search.budget = asked_.limit.memory.value_or(0);
    if (!asked_.limit.memory) search.budget = available();
    std::size_t smallest = 0;
    const auto found = largest_batch(search, [&](std::int64_t batch) {
      Options options = asked_;
      options.batch = batch;
      const std::size_t bytes = peak_of(options) + static_cast<std::size_t>(batch) * bytes_beside;
      if (batch == 1) smallest = bytes;
      return bytes;
    });
    if (found) return *found;
    throw OutOfMemory(
        fmt::format("--batch auto: a step of one sample needs {} ({} bytes), there are {}; --batch 1 with "
                    "--memory-limit looks for techniques that need less",
                    bytes_text(smallest), smallest, bytes_text(search.budget)),
        smallest, search.budget);
  }

  void choose(Fitted& fitted) {
    const std::size_t budget = *asked_.limit.memory;
    std::vector<Tool> tools = techniques_for(asked_, subject_);
    const BudgetChoice choice = search(tools, budget);
    const auto names = names_of(tools);
    if (!choice.fits) throw OutOfMemory(explain(choice, tools, budget), choice.planned, budget);
    fitted.options = applied(tools, choice.levels);
    fitted.techniques = choice.to_text(names);
    fitted.planned = choice.planned;
  }

  BudgetChoice search(const std::vector<Tool>& tools, std::size_t budget) const {
    return choose_within_budget(budget, names_of(tools),
                                [&](std::span<const int> levels) -> std::optional<std::size_t> {
                                  try {
                                    return peak_of(applied(tools, levels));
                                  } catch (const ArgumentError&) {
                                  } catch (const UsageError&) {  // these do not go together
                                  }
                                  return {};
                                });
  }

  static std::vector<Technique> names_of(const std::vector<Tool>& tools) {
    std::vector<Technique> names;
    names.reserve(tools.size());
    for (const Tool& tool : tools) names.push_back(tool.technique);
    return names;
  }

  Options applied(const std::vector<Tool>& tools, std::span<const int> levels) const {
    Options options = asked_;
    for (std::size_t i = 0; i < tools.size(); ++i)
      if (levels[i] > 0) tools[i].apply(options, levels[i]);
    return options;
  }

  std::string explain(const BudgetChoice& choice, const std::vector<Tool>& tools, std::size_t budget) const {
    std::string text =
        fmt::format("--memory-limit {}: the smallest step that there is needs {} ({} bytes), with {}",
                    bytes_text(budget), bytes_text(choice.planned), choice.planned, choice.to_text(names_of(tools)));
    Options freer = asked_;
    freer.limit.allowed = {"moments", "precision"};
    std::vector<Tool> all = techniques_for(freer, subject_);
    if (all.size() > tools.size()) {
      const BudgetChoice more = search(all, 0);
      if (more.planned < choice.planned)
        text += fmt::format("; --allow moments,precision makes that {} ({} bytes), with {}", bytes_text(more.planned),
                            more.planned, more.to_text(names_of(all)));
    }
    const std::string hint = what_stands_in_the_way(asked_, clip_norm_, subject_.is_training);
    return hint.empty() ? text : text + "; " + hint;
  }

  const Options& asked_;
  const Subject subject_;
  const std::int64_t most_batch_;
  const double clip_norm_;
  const Rehearse rehearse_;
};

}  // namespace

std::size_t engine_limit(const Options& options) {
  constexpr std::size_t kNoLimit = std::size_t{1} << 60;
  return options.limit.rehearses ? kNoLimit : options.limit.memory.value_or(0);
}

Workload with_hollow_data(const Workload& workload) {
  Workload result = workload;
  result.augment.clear();
  result.prepare.clear();
  result.baselines = nullptr;
  result.open = [workload](int fold) {
    const data::Split split = workload.open(fold);
    data::Split empty = split;
    empty.train = hollow(split.train, all_transforms(workload), split.train->size());
    empty.test = hollow(split.test, workload.prepare, split.test->size());
    return empty;
  };
  result.make_samples = [workload](std::int64_t samples) {
    return hollow(workload.make_samples(1), all_transforms(workload), samples);
  };
  return result;
}

Workload with_data_kept(const Workload& workload) {
  Workload result = workload;
  result.open = [open = workload.open, kept = std::make_shared<std::map<int, data::Split>>()](int fold) {
    const auto found = kept->find(fold);
    return found != kept->end() ? found->second : kept->emplace(fold, open(fold)).first->second;
  };
  return result;
}

Rehearsal rehearse_bench(const Options& options, const std::string& device, const Workload& workload,
                         bool is_training) {
  const std::unique_ptr<Engine> engine = open_engine(options, device);
  BenchRun run(options, *engine, workload, is_training);
  run.run(kRehearsedSteps);
  return {engine->memory().peak_bytes, run.memory()};
}

Fitted fit_train(const Options& options, const Workload& workload) {
  const LimitOptions& limit = options.limit;
  if (!limit.automatic_batch && !limit.memory) return Fitter(options, workload, 1, true, nullptr).run();
  const Workload empty = with_hollow_data(workload);
  Fitter fitter(options, workload, workload.open(0).train->size(), true,
                [&](const Options& tried) { return rehearse_train(rehearsal(tried), empty); });
  return fitter.run();
}

Fitted fit_bench(const Options& options, const std::string& device, const Workload& workload, bool is_training) {
  const Workload empty = with_hollow_data(workload);
  Fitter fitter(options, workload, kLargestBenchBatch, is_training,
                [&](const Options& tried) { return rehearse_bench(rehearsal(tried), device, empty, is_training); });
  if (options.limit.automatic_batch)
    for (const data::FieldSpec& field : workload.make_samples(1)->fields())
      fitter.bytes_beside +=
          static_cast<std::size_t>(field.shape.size()) * bytes_of(field.dtype) * BenchRun::kBatchesOfData;
  return fitter.run();
}

std::optional<std::int64_t> largest_bench_batch(const Options& options, const std::string& device,
                                                const Workload& workload, bool is_training) {
  Options asked = options;
  asked.device = device;
  asked.batch.reset();
  asked.limit = {};
  asked.limit.automatic_batch = true;
  const Workload empty = with_hollow_data(workload);
  Fitter fitter(asked, workload, kLargestBatch, is_training, [&](const Options& tried) -> Rehearsal {
    try {
      return rehearse_bench(rehearsal(tried), device, empty, is_training);
    } catch (const ArgumentError&) {  // an op has its own limit
    } catch (const OutOfMemory&) {    // not even addresses
    }
    return {.live_peak = std::numeric_limits<std::size_t>::max() / 2};
  });
  try {
    return fitter.run().options.batch;
  } catch (const OutOfMemory&) {
    return {};
  }
}

void Fitted::fill(Summary& summary) const {
  if (!planned) return;
  summary.memory_limit_bytes = options.limit.memory;
  summary.planned_peak_bytes = planned;
  summary.memory_techniques = techniques;
}

nlohmann::ordered_json Fitted::to_json() const {
  return {{"event", "memory"},
          {"limit_bytes", options.limit.memory ? nlohmann::ordered_json(*options.limit.memory) : nullptr},
          {"planned_bytes", planned ? nlohmann::ordered_json(*planned) : nullptr},
          {"batch", options.batch ? nlohmann::ordered_json(*options.batch) : nullptr},
          {"techniques", techniques}};
}

}  // namespace samebytes::cli
