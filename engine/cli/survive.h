// Keeper: runs that survive. Keeps the state of a training run in a folder (--checkpoint) or in memory, brings a run
// to where it goes on (--resume), and says what happens after a device error (--on-device-error). It lives longer than
// the engine and the trainer of a run, of which there may be several, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/adaptive.h"
#include "cli/folds.h"
#include "cli/options.h"
#include "cli/recipe.h"
#include "cli/shares.h"
#include "cli/step_log.h"
#include "cli/summary.h"
#include "samebytes/run_state.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {

// What a run consists of; pointers are null where there is none.
struct RunParts {
  Engine& engine;
  nn::Module& net;
  optim::Optimizer& optimizer;
  optim::GradScaler* scaler;
  optim::Ema* ema;
  AdaptiveSteps* adaptive;
  SharedSteps* shared;
  Recipe& recipe;
  data::Loader& training;
  Mean& mean;
  std::int64_t batch, steps;
  std::function<std::int64_t()> done;  // steps that were taken
  // The trainer's own counts and results, as text.
  std::function<std::string()> counts;
  std::function<void(const std::string&)> set_counts;
};

// Throws UsageError for options that do not go together, and for a folder with the checkpoints of another run; IoError
// where the folder cannot be made. Before anything is written.
void check_survival(const Options& options);

class Keeper {
 public:
  Keeper(const Options& options, StepLog& log);

  // Of a workload with several folds: where the run goes on, once before the first one; and after each of them, whose
  // state is no longer gone back to.
  void find_fold();
  void end_fold(const Summary& summary);
  const FoldRun& folds() const { return folds_; }

  bool is_on() const { return folder_ || keeps_in_memory_ || !options_.survive.resume.empty(); }
  // What the run is made of, and where it goes on: from a checkpoint that was asked for, or from the last state after a
  // device error. Puts the log back to there. Returns what to tell people; nothing where the run begins anew. Throws
  // UsageError for a state of another run.
  std::optional<std::string> begin(const Workload& workload, const RunParts& parts);

  // Device errors that no kept state knows of yet; after the line that says how the run began.
  void tell_log() const;

  bool is_due(std::int64_t step) const { return saves() && every_ > 0 && step % every_ == 0; }
  bool is_due_after_epochs() const { return saves() && every_ == 0; }
  bool saves() const { return folder_ || keeps_in_memory_ || options_.ranks.gives_state; }
  void save(std::int64_t step);  // the state between two steps, or after a test
  // Damaged checkpoints and device errors since the last call, for people.
  std::vector<std::string> troubles() { return std::exchange(troubles_, {}); }
  void fill(Summary& summary) const;

  // True where the run is to be made again, with the device in `device`; false where the error ends it.
  bool goes_on_after(const DeviceError& error, std::string& device);
  // What stays after an error that ends the run.
  std::string last_resort() const;

 private:
  const std::optional<Checkpoint>& wanted();

  const Options& options_;
  StepLog& log_;
  std::optional<CheckpointFolder> folder_;
  bool keeps_in_memory_ = false;
  std::int64_t every_ = 0;  // steps; 0: epochs
  std::optional<RunState> state_;
  Engine* engine_ = nullptr;  // of the state
  optim::Optimizer* optimizer_ = nullptr;
  std::vector<std::string> unsaid_;   // device errors that are not yet in a log that a state goes back to
  std::optional<RunSnapshot> last_;   // in memory
  std::optional<Checkpoint> wanted_;  // to go on from
  bool has_looked_ = false;           // for it
  FoldRun folds_;
  std::int64_t log_begin_ = 0;  // where the log of this fold begins
  std::int64_t log_position_ = 0;
  double seconds_ = 0;  // spent on writing
  Survival survival_;
  std::vector<std::string> troubles_;
};

// Numbers and texts of a summary that a test of the network comes to, as JSON, and back.
nlohmann::ordered_json results_of(const Summary& summary);
void set_results(const nlohmann::ordered_json& results, Summary& summary);

}  // namespace samebytes::cli
