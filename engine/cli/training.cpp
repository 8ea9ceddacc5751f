#include "cli/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "cli/option_table.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/workloads.h"
#include "samebytes/cores.h"
#include "samebytes/distributed.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

constexpr int kMostSlots = 8;  // where nothing is said, and in 256 MB at most
constexpr const char* kAll = "all";

int most_slots(const Options& options, int slots) {
  const bool is_planned = options.limit.memory || options.limit.automatic_batch || options.limit.rehearses;
  if (!options.loading.most_slots) return options.slots || is_planned ? 0 : std::max(kMostSlots, slots);
  if (options.slots && *options.loading.most_slots < *options.slots)
    throw UsageError(fmt::format("--max-slots {} is below --slots {}", *options.loading.most_slots, *options.slots));
  if (is_planned)
    throw UsageError(
        "--max-slots takes memory as waits ask for it, which --memory-limit and --batch auto cannot plan; --slots says "
        "how many there are");
  return std::max(*options.loading.most_slots, slots);
}

constexpr std::int64_t kFirstMicroBatches = 2;  // of the first size: two sizes are what a noise scale is measured with
constexpr std::int64_t kMostGrowth = 32;
constexpr std::int64_t kLeastStepsOfAnEpoch = 8;

optim::AdaptiveBatchOptions sizes_of(const Options& options, std::int64_t first, std::int64_t samples) {
  const std::int64_t usual = std::max(first, std::min(kMostGrowth * first, samples / kLeastStepsOfAnEpoch));
  const std::int64_t most = options.adaptive.max_batch.value_or(usual);
  if (most < first) throw UsageError(fmt::format("--max-batch {} is below the first batch, {}", most, first));
  if (most > samples)
    throw UsageError(fmt::format("--max-batch {} is larger than the training set, which has {}", most,
                                 counted_text(static_cast<double>(samples), "sample")));
  return {.batch = first, .max_batch = most, .rule = scale_rule_of(options)};
}

std::int64_t count_batch_norms(nn::Module& net) {
  const auto modules = net.modules();
  return std::count_if(modules.begin(), modules.end(),
                       [](const auto& entry) { return dynamic_cast<nn::BatchNorm*>(entry.module) != nullptr; });
}

}  // namespace

optim::ScaleRule scale_rule_of(const Options& options) {
  const std::string rule = options.scale_rate.value_or(options.optimizer == "sgd" ? "linear" : "sqrt");
  return rule == "linear" ? optim::ScaleRule::linear : optim::ScaleRule::square_root;
}

const char* name_of(optim::ScaleRule rule) { return rule == optim::ScaleRule::linear ? "linear" : "sqrt"; }

Recipe make_recipe(const Options& options, const Workload& workload, std::int64_t batch, std::int64_t steps,
                   std::int64_t epoch_steps) {
  const Defaults& defaults = workload.defaults;
  if (options.base_batch && !options.scale_rate) throw UsageError("--base-batch needs --scale-rate RULE");
  try {
    return Recipe({.optimizer = options.optimizer,
                   .schedule = options.schedule.value_or("cosine"),
                   .task = {defaults.rate, defaults.weight_decay, defaults.beta2, defaults.clip_norm, defaults.batch},
                   .batch = batch,
                   .steps = steps,
                   .epoch_steps = epoch_steps,
                   .rate = options.rate,
                   .weight_decay = options.weight_decay,
                   .momentum = options.momentum,
                   .clip_norm = options.clip_norm,
                   .ema = options.ema,
                   .warmup = options.warmup,
                   .gamma = options.gamma,
                   .every = options.every,
                   .scale_rate = options.scale_rate ? scale_rule_of(options) : optim::ScaleRule::none,
                   .base_batch = options.base_batch,
                   .release_gradients = options.release_gradients,
                   .moments = moments_dtype(options),
                   .bf16_weights = options.weights == "bf16" && !has_adapters(options)});
  } catch (const ArgumentError& error) {
    throw UsageError(as_option(error.what()));
  }
}

data::LoaderOptions training_loader_options(const Options& options, std::int64_t batch) {
  data::LoaderOptions loading = loader_options(options, batch);
  if (options.loading.most_slots) loading.slots = std::min(loading.slots, *options.loading.most_slots);
  loading.most_slots = most_slots(options, loading.slots);
  if (options.loading.cores == kAll) return loading;
  try {
    loading.worker_cores = choose_cores(core_topology(), options.loading.cores);
  } catch (const ArgumentError& error) {
    throw UsageError(std::string("--loader-") + error.what());
  }
  return loading;
}

std::string loading_text(const Options& options, const data::LoaderOptions& loading) {
  if (options.loading.cores == kAll) return {};
  if (!loading.worker_cores.empty()) return "loader on cores " + core_list_text(loading.worker_cores);
  return fmt::format("--loader-cores {}: there is one class of cores here ({}), so the loader uses all",
                     options.loading.cores, core_topology().to_text());
}

void add_loading_to(nlohmann::ordered_json& line, const data::LoaderOptions& loading) {
  if (loading.most_slots > loading.slots) line["max_slots"] = loading.most_slots;
  if (!loading.worker_cores.empty()) line["loader_cores"] = core_list_text(loading.worker_cores);
}

std::int64_t adaptive_micro_batch(const Options& options, std::int64_t first_batch) {
  if (first_batch % kFirstMicroBatches != 0)
    throw UsageError(
        fmt::format("--adaptive-batch measures noise between the halves of a batch: expected an even --batch, got {}",
                    first_batch));
  if (options.release_gradients)
    throw UsageError("--adaptive-batch adds gradients up, which --release-gradients has thrown away by then");
  if (options.step.accumulate > 1 || options.step.micro_batch)
    throw UsageError(
        "--adaptive-batch chooses how many micro-batches make an update; leave --accumulate and "
        "--micro-batch out");
  return first_batch / kFirstMicroBatches;
}

train::AdaptiveBatching adaptive_batching(const Options& options, const Recipe& recipe, std::int64_t first_batch,
                                          std::int64_t training_samples) {
  if (recipe.schedule() == "onecycle" || recipe.schedule() == "plateau")
    throw UsageError("--adaptive-batch sets the rate itself; --schedule " + recipe.schedule() + " does not go with it");
  return {.sizes = sizes_of(options, first_batch, training_samples), .rate = recipe.rate_schedule()};
}

std::string to_text(const train::BatchReport& report) {
  return fmt::format("update {}: batch {}, noise scale {}, rate times {:.3g} after {} updates", report.updates,
                     report.batch,
                     std::isfinite(report.noise_scale) ? count_text(report.noise_scale) : "beyond measure",
                     report.rate_factor, report.warmup);
}

nlohmann::ordered_json start_line(const StartFacts& facts, Engine& engine, nn::Module& net) {
  const Summary& summary = facts.summary;
  const Defaults& defaults = facts.workload.defaults;
  Options used = facts.options;  // with the values that the run came to
  used.batch = facts.batch;
  used.optimizer = summary.optimizer;
  used.schedule = summary.schedule;
  used.rate = summary.rate;
  used.warmup = summary.warmup;
  const bool has_workloads_decay = summary.optimizer == "adamw" || summary.optimizer == "lamb";
  if (!used.weight_decay) used.weight_decay = has_workloads_decay ? defaults.weight_decay : 0;
  if (!used.clip_norm) used.clip_norm = defaults.clip_norm;
  used.log_grad_norm.reset();
  if (const std::int64_t every = norm_interval(facts.options, defaults); every > 0) used.log_grad_norm = every;
  nlohmann::ordered_json line{{"event", "start"},
                              {"workload", facts.workload.name},
                              {"device", summary.device},
                              {"personality", summary.personality},
                              {"tuning", summary.tuning},
                              {"steps", facts.steps},
                              {"memory_mode", summary.memory_mode},
                              {"memory_limit_bytes", engine.memory().limit_bytes},
                              {"cores", std::max(1U, std::thread::hardware_concurrency())},
                              {"workload_rate", facts.recipe.default_rate()},
                              {"workload_batch", defaults.batch},
                              {"training_samples", facts.split.train->size()},
                              {"test_samples", facts.split.test->size()},
                              {"parameters", net.parameter_count()},
                              {"batch_norms", count_batch_norms(net)}};
  line.update(values_to_log(used));
  if (distributed::launched_processes() > 1) line["sync_batch_norm"] = used.shares.sync_batch_norm;
  if (has_adapters(used)) line["trainable_parameters"] = net.trainable_parameter_count();
  return line;
}

}  // namespace samebytes::cli
