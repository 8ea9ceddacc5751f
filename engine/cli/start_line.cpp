#include "cli/start_line.h"

#include <algorithm>
#include <thread>

#include "cli/lora.h"
#include "cli/option_table.h"
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
