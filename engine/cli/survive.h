// Keeper: runs that survive. The train::Checkpoints of the options (--checkpoint, --resume), the folds of a workload
// that has several, and what happens after a device error (--on-device-error). It lives longer than the engine and the
// trainer of a run, of which there may be several, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/summary.h"
#include "cli/training.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {

// Of a workload that is trained in several folds, the one under way and what the ended ones came to. A checkpoint has
// it as text, so that a run that was killed in its third fold goes on there.
struct FoldRun {
  int fold = 0;               // from 0
  std::int64_t steps = 0;     // of the ended ones together: checkpoints are numbered through
  std::vector<double> areas;  // under the curve, of those
  // The fold under way came to this.
  void end(const Summary& summary);
  std::string to_text() const;
  // Throws IoError, which names the checkpoint, for another text.
  static FoldRun from_text(const std::string& text, const std::string& checkpoint);
};

// What the options of a run came to.
struct RunParts {
  Engine& engine;
  const Recipe& recipe;
  const data::Loader& training;
  std::int64_t batch, steps;
};

// Throws UsageError for options that do not go together, and for a folder with the checkpoints of another run; IoError
// where the folder cannot be made. Before anything is written.
void check_survival(const Options& options);

class Keeper {
 public:
  Keeper(const Options& options, train::RunLog& log);

  // Of a workload with several folds: where the run goes on, once before the first one; and after each of them, whose
  // state is no longer gone back to.
  void find_fold();
  void end_fold(const Summary& summary);
  const FoldRun& folds() const { return folds_; }

  const std::shared_ptr<train::Checkpoints>& checkpoints() const { return checkpoints_; }
  // Says what must be the same where the run goes on, and brings the session there: to a checkpoint that was asked for,
  // or to the last state after a device error. Returns what to tell people; nothing where the run begins anew. Throws
  // UsageError for a state of another run.
  std::optional<std::string> begin(const Workload& workload, const RunParts& parts, train::Session& session);

  // Device errors that no kept state knows of yet; after the line that says how the run began.
  void tell_log() const;
  void saved() { unsaid_.clear(); }  // a state was kept
  // Damaged checkpoints and device errors since the last call, for people.
  std::vector<std::string> troubles();
  void fill(Summary& summary) const;

  // True where the run is to be made again, with the device in `device`; false where the error ends it.
  bool goes_on_after(const DeviceError& error, std::string& device);
  // What stays after an error that ends the run.
  std::string last_resort() const;

 private:
  const Options& options_;
  train::RunLog& log_;
  std::shared_ptr<train::Checkpoints> checkpoints_;
  std::vector<std::string> unsaid_;  // device errors that are not yet in a log that a state goes back to
  std::size_t told_ = 0;             // damaged checkpoints
  FoldRun folds_;
  Survival survival_;
  std::vector<std::string> troubles_;
};

}  // namespace samebytes::cli
