// Trainer: one training run of `samebytes train`: a train::Session made of the options and the workload, and what
// people and the log are told of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/limit.h"
#include "cli/memory.h"
#include "cli/parallel.h"
#include "cli/progress.h"
#include "cli/recipe.h"
#include "cli/session.h"
#include "cli/survive.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {

class Trainer {
 public:
  Trainer(const Options& options, const Workload& workload, std::shared_ptr<train::RunLog> log, Keeper& keeper,
          int fold, const Ranks& ranks);
  Summary run();
  Rehearsal rehearsed() const;  // after run(), in a dry engine

 private:
  void make_loaders();
  void plan_steps();
  void make_session();
  void start();  // from a state, or anew
  train::Callbacks callbacks();
  void log_start();
  void tell_epoch(const train::EpochReport& epoch);
  void draw(const train::ProgressReport& report);
  void say(const std::string& text) { progress_->say(fold_text() + text); }
  void save_network();            // --save and --lora-save
  std::string fold_text() const;  // "fold 2/5  " where there are several

  const Options& options_;
  const Workload workload_;
  const train::PrecisionOptions precision_;
  const int fold_;
  data::Split split_;
  const std::int64_t first_batch_;  // of the options
  std::int64_t batch_;              // of the loader
  std::shared_ptr<train::RunLog> log_;
  Keeper& keeper_;
  const Ranks& ranks_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<MemoryWatch> memory_;
  std::unique_ptr<nn::Module> net_;
  data::LoaderOptions loading_;
  std::string adapters_;  // what there is to say of them
  std::unique_ptr<data::Loader> training_, test_;
  int epochs_ = 0;
  std::int64_t steps_ = 0, epoch_steps_ = 0;
  std::optional<Recipe> recipe_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<train::DevicesStrategy> devices_;  // where there are several
  std::unique_ptr<train::RanksStrategy> joined_;     // ... processes
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<train::Session> session_;
  Summary summary_;
};

}  // namespace samebytes::cli
