#include "cli/start_line.h"

#include <algorithm>
#include <thread>

#include "cli/lora.h"
#include "cli/session.h"
#include "samebytes/distributed.h"

namespace samebytes::cli {
namespace {

std::int64_t count_batch_norms(nn::Module& net) {
  const auto modules = net.modules();
  return std::count_if(modules.begin(), modules.end(),
                       [](const auto& entry) { return dynamic_cast<nn::BatchNorm*>(entry.module) != nullptr; });
}

}  // namespace

nlohmann::ordered_json start_line(const StartFacts& facts, Engine& engine, nn::Module& net) {
  const Options& options = facts.options;
  const Summary& summary = facts.summary;
  const bool has_workloads_decay = summary.optimizer == "adamw" || summary.optimizer == "lamb";
  nlohmann::ordered_json line{
      {"event", "start"},
      {"workload", facts.workload.name},
      {"device", summary.device},
      {"personality", summary.personality},
      {"precision", options.precision},
      {"tuning", summary.tuning},
      {"seed", options.seed},
      {"optimizer", summary.optimizer},
      {"schedule", summary.schedule},
      {"rate", summary.rate},
      {"warmup", summary.warmup},
      {"batch", facts.batch},
      {"steps", facts.steps},
      {"memory_mode", summary.memory_mode},
      {"memory_limit_bytes", engine.memory().limit_bytes},
      {"cores", std::max(1U, std::thread::hardware_concurrency())},
      {"threads", options.threads},
      {"workload_rate", facts.recipe.default_rate()},
      {"workload_batch", facts.workload.defaults.batch},
      {"weight_decay", options.weight_decay.value_or(has_workloads_decay ? facts.workload.defaults.weight_decay : 0)},
      {"clip_norm", options.clip_norm.value_or(facts.workload.defaults.clip_norm)},
      {"release_gradients", options.release_gradients},
      {"moments", options.moments},
      {"weights", options.weights},
      {"accumulate", options.step.accumulate},
      {"gradient_checkpointing", options.step.checkpointing},
      {"check_nan", options.check_nan},
      {"training_samples", facts.split.train->size()},
      {"test_samples", facts.split.test->size()},
      {"parameters", net.parameter_count()},
      {"batch_norms", count_batch_norms(net)}};
  if (options.head.is_chunked()) line["head_chunks"] = options.head.to_text();
  if (const std::int64_t every = norm_interval(options, facts.workload.defaults); every > 0)
    line["log_grad_norm"] = every;
  if (options.step.micro_batch) line["micro_batch"] = *options.step.micro_batch;
  if (distributed::launched_processes() > 1) line["sync_batch_norm"] = options.shares.sync_batch_norm;
  if (has_adapters(options)) line["trainable_parameters"] = net.trainable_parameter_count();
  if (options.lora.rank) line["lora_rank"] = *options.lora.rank;
  if (options.scale_rate) line["scale_rate"] = *options.scale_rate;
  if (options.ema) line["ema"] = *options.ema;
  if (options.workers) line["workers"] = *options.workers;
  if (options.slots) line["slots"] = *options.slots;
  if (engine.options().fallback) line["fallback"] = true;
  return line;
}

}  // namespace samebytes::cli
