// Trainer: one training run of `samebytes train`, from the first step or from where a checkpoint was, with a test after
// every epoch, the log and the progress.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/accumulate.h"
#include "cli/adaptive.h"
#include "cli/limit.h"
#include "cli/loading.h"
#include "cli/memory.h"
#include "cli/norm_watch.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/recipe.h"
#include "cli/session.h"
#include "cli/shares.h"
#include "cli/step_log.h"
#include "cli/survive.h"
#include "samebytes/pressure.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {

class Trainer {
 public:
  Trainer(const Options& options, const Workload& workload, StepLog& log, Keeper& keeper, int fold, Ranks& ranks);
  Summary run();
  Rehearsal rehearsed() const;  // after run(), in a dry engine

 private:
  struct StepFacts {
    std::int64_t step = 0;
    int epoch = 0;
    double rate = 0;
    double milliseconds = 0;
    Array loss;  // or its value
    std::optional<double> value = {};
    optim::GradientNorm norm = {};                                   // where it was kept
    nlohmann::ordered_json more = nlohmann::ordered_json::object();  // fields of its line in the log
  };

  void train_epoch(int epoch);
  // Return whether an update was made.
  bool train_step(int epoch, const data::Batch& batch);
  bool adaptive_step(const Array& loss, const data::Batch& batch);
  void tell(const PressureAction& action);
  void finish_step(int epoch, double rate, const Accumulation::Step& step);
  Array loss_of(const data::Batch& batch);
  void test_epoch(int epoch, double seconds);
  void read_oldest_loss();
  void read_losses();
  void log_start();
  void keep_if_due();
  void save_network();  // --save and --lora-save
  void keep();          // the state of the run, between two steps
  std::string counts() const;
  void set_counts(const std::string& text);
  void draw(int epoch, double loss);
  std::string fold_text() const;  // "fold 2/5  " where there are several

  const Options& options_;
  const Workload workload_;
  Precision precision_;
  const int fold_;
  data::Split split_;
  std::int64_t batch_;  // of the loader
  StepLog& log_;
  Keeper& keeper_;
  Ranks& ranks_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<MemoryWatch> memory_;
  std::unique_ptr<nn::Module> net_;
  data::LoaderOptions loading_;
  std::string adapters_;  // what there is to say of them
  std::unique_ptr<data::Loader> training_, test_;
  std::optional<Recipe> recipe_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::shared_ptr<void> joined_;         // its gradients are those of all ranks
  std::unique_ptr<SharedSteps> shared_;  // on several devices
  std::optional<Accumulation> accumulation_;
  std::optional<NormWatch> norms_;
  std::unique_ptr<optim::Ema> ema_;          // where averages are asked for
  std::unique_ptr<AdaptiveSteps> adaptive_;  // with --adaptive-batch
  std::optional<PressureGuard> guard_;
  std::unique_ptr<RunMeter> meter_;
  std::unique_ptr<Progress> progress_;
  double stall_fraction_ = 0;  // of this epoch
  int epochs_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t tested_steps_ = 0;  // after how many steps the network was tested last
  std::int64_t kept_steps_ = -1;   // after how many steps the state was kept last
  Mean mean_;                      // of the losses of this epoch
  std::deque<StepFacts> recent_;   // steps whose loss was not read yet
  double recent_loss_ = NAN, recent_norm_ = NAN;
  Summary summary_;
};

}  // namespace samebytes::cli
