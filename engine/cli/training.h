// What the options say of a training: its recipe (optim/recipe.h); the loader, with how many batches it has ready
// (--slots,
// --max-slots) and where its workers run (--loader-cores); the sizes of a batch that grows (--adaptive-batch); and the
// line that opens the log, which `samebytes doctor` reads.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/options.h"
#include "cli/session.h"
#include "samebytes/data.h"
#include "samebytes/optim/recipe.h"
#include "samebytes/train/session.h"

namespace samebytes::cli {

using optim::Recipe;

// For a run of `steps` steps, `epoch_steps` of them an epoch. Throws UsageError for options that do not go together or
// that the optimizer does not have.
Recipe make_recipe(const Options& options, const Workload& workload, std::int64_t batch, std::int64_t steps,
                   std::int64_t epoch_steps);
// What --scale-rate says, else the rule that suits the optimizer where the batch changes by itself.
optim::ScaleRule scale_rule_of(const Options& options);
const char* name_of(optim::ScaleRule rule);  // as --scale-rate has it

// loader_options() of session.h and these two. Throws UsageError for what does not go together and for cores that there
// are not.
data::LoaderOptions training_loader_options(const Options& options, std::int64_t batch);
// For people: what --loader-cores came to; empty where nothing was asked for.
std::string loading_text(const Options& options, const data::LoaderOptions& loading);
void add_loading_to(nlohmann::ordered_json& line, const data::LoaderOptions& loading);

// Samples of a micro-batch for --batch, the first size. Throws UsageError for an odd one and what excludes it.
std::int64_t adaptive_micro_batch(const Options& options, std::int64_t first_batch);
// Throws UsageError for a largest size below the first, or above the set.
train::AdaptiveBatching adaptive_batching(const Options& options, const Recipe& recipe, std::int64_t first_batch,
                                          std::int64_t training_samples);
// "update 40: batch 64, noise scale 410, rate times 1.41 after 20 updates"
std::string to_text(const train::BatchReport& report);

// What train does with a workload: fits it into memory, trains, tests, saves, and says what it came to; returns the
// status. In train.cpp.
int train_workload(const Options& options, const std::function<Workload()>& make);

struct StartFacts {
  const Options& options;
  const Workload& workload;
  const Recipe& recipe;
  const Summary& summary;
  const data::Split& split;
  std::int64_t batch;
  std::int64_t steps;
};
// Keys are added to, never renamed.
nlohmann::ordered_json start_line(const StartFacts& facts, Engine& engine, nn::Module& net);

}  // namespace samebytes::cli
