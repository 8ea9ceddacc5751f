#include "cli/limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "cli/bench_run.h"
#include "cli/option_table.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "samebytes/error.h"
#include "samebytes/train/fit.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kRehearsedSteps = 2;         // the second one knows all cells
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

Dtype dtype_of(const std::string& name) { return name == "bf16" ? bf16 : name == "f16" ? f16 : f32; }

train::StepSettings settings_of(const Options& options, const Workload& workload) {
  return {.batch = options.batch.value_or(workload.defaults.batch),
          .recompute = options.limit.recompute,
          .checkpointing = Checkpointing::parse(options.step.checkpointing),
          .chunks_head = options.head.is_chunked(),
          .late_head_gradient = options.head.is_late,
          .micro_batch = options.step.micro_batch.value_or(0),
          .release_gradients = options.release_gradients,
          .moments = dtype_of(options.moments),
          .precision = dtype_of(options.precision),
          .bf16_weights = options.weights == "bf16"};
}

// Of a fit that began with the settings of `options`.
Options with_settings(Options options, const train::StepSettings& step, bool has_batch) {
  if (has_batch) options.batch = step.batch;
  options.limit.recompute = step.recompute;
  if (step.checkpointing != Checkpointing::parse(options.step.checkpointing))
    options.step.checkpointing = step.checkpointing.to_text();
  if (step.chunks_head && !options.head.is_chunked()) options.head.chunks = HeadOptions::kAutomatic;
  options.head.is_late = step.late_head_gradient;
  if (step.micro_batch > 0) options.step.micro_batch = step.micro_batch;
  options.release_gradients = step.release_gradients;
  if (step.moments == bf16) options.moments = "bf16";
  if (step.precision == bf16) options.precision = "bf16";
  if (step.bf16_weights) options.weights = "bf16";
  return options;
}

struct Subject {
  const Options& asked;
  const Workload& workload;
  std::int64_t most_batch;
  bool is_training;
  std::size_t bytes_per_sample = 0;
};

train::FitOptions fit_options(const Subject& subject, std::size_t budget) {
  const Options& asked = subject.asked;
  const auto is_allowed = [&](const char* technique) {
    const auto& allowed = asked.limit.allowed;
    return std::find(allowed.begin(), allowed.end(), technique) != allowed.end();
  };
  return {.asked = settings_of(asked, subject.workload),
          .budget = budget,
          .trains = subject.is_training,
          .has_head = subject.workload.chunked_loss != nullptr,
          .may_cut_batch = !asked.adaptive.is_on,
          .clips_by_norm = asked.clip_norm.value_or(subject.workload.defaults.clip_norm) > 0,
          .allows_moments = is_allowed("moments"),
          .allows_precision = is_allowed("precision"),
          .finds_batch = asked.limit.automatic_batch,
          .most_batch = subject.most_batch,
          .bytes_per_sample = subject.bytes_per_sample,
          .names = {.finds_batch = "--batch auto",
                    .techniques = "--batch 1 with --memory-limit",
                    .budget = "--memory-limit",
                    .allow = "--allow moments,precision",
                    .no_clipping = "--clip-norm 0"}};
}

std::size_t usable_memory(const Options& options) {
  return train::usable_memory(
      *open_engine(options, options.device == "all" && options.verb == Verb::bench ? "" : options.device));
}

Fitted fit(const Subject& subject, const Rehearse& rehearse) {
  const Options& asked = subject.asked;
  const LimitOptions& limit = asked.limit;
  if (!limit.automatic_batch && !limit.memory) {
    if (std::any_of(limit.allowed.begin(), limit.allowed.end(), [](const auto& word) { return word != "pieces"; }))
      throw UsageError("--allow needs --memory-limit BYTES");
    return {asked};
  }
  const std::size_t budget = limit.memory ? *limit.memory : usable_memory(asked);
  const auto peak = [&](const train::StepSettings& step) -> std::size_t {
    try {
      return rehearse(with_settings(asked, step, limit.automatic_batch)).live_peak;
    } catch (const UsageError& error) {
      if (limit.automatic_batch) throw;
      throw ArgumentError(error.what());  // settings that exclude each other
    }
  };
  const train::MemoryFit found = train::fit_memory(fit_options(subject, budget), peak);
  const std::string choice =
      limit.automatic_batch ? fmt::format("batch {}", found.step.batch) : "chosen: " + found.techniques;
  return {.options = with_settings(asked, found.step, limit.automatic_batch),
          .text = fmt::format("memory: {} planned at the peak, {} {}; {}", bytes_text(found.planned),
                              limit.memory ? "limit" : "to use", bytes_text(budget), choice),
          .planned = found.planned,
          .techniques = found.techniques};
}

}  // namespace

std::size_t engine_limit(const Options& options) {
  constexpr std::size_t kNoLimit = std::size_t{1} << 60;
  return options.limit.rehearses ? kNoLimit : options.limit.memory.value_or(0);
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
  if (!limit.automatic_batch && !limit.memory) return fit({options, workload, 1, true}, nullptr);
  const Workload empty = with_hollow_data(workload);
  return fit({options, workload, workload.open(0).train->size(), true},
             [&](const Options& tried) { return rehearse_train(rehearsal(tried), empty); });
}

Fitted fit_bench(const Options& options, const std::string& device, const Workload& workload, bool is_training) {
  const Workload empty = with_hollow_data(workload);
  Subject subject{options, workload, kLargestBenchBatch, is_training};
  if (options.limit.automatic_batch)
    for (const data::FieldSpec& field : workload.make_samples(1)->fields())
      subject.bytes_per_sample +=
          static_cast<std::size_t>(field.shape.size()) * bytes_of(field.dtype) * BenchRun::kBatchesOfData;
  return fit(subject,
             [&](const Options& tried) { return rehearse_bench(rehearsal(tried), device, empty, is_training); });
}

std::optional<std::int64_t> largest_bench_batch(const Options& options, const std::string& device,
                                                const Workload& workload, bool is_training) {
  Options asked = options;
  asked.device = device;
  asked.batch.reset();
  asked.limit = {};
  asked.limit.automatic_batch = true;
  const Workload empty = with_hollow_data(workload);
  try {
    return fit({asked, workload, kLargestBatch, is_training},
               [&](const Options& tried) -> Rehearsal {
                 try {
                   return rehearse_bench(rehearsal(tried), device, empty, is_training);
                 } catch (const ArgumentError&) {  // an op has its own limit
                 } catch (const OutOfMemory&) {    // not even addresses
                 }
                 return {.live_peak = std::numeric_limits<std::size_t>::max() / 2};
               })
        .options.batch;
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
          {"limit_bytes", json_of(options.limit.memory)},
          {"planned_bytes", json_of(planned)},
          {"batch", json_of(options.batch)},
          {"techniques", techniques}};
}

}  // namespace samebytes::cli
