// Checkpoints: where and when a run saves its state (run_state.h), and which saved state it resumes from. One object
// may serve several Sessions in turn, such as one that failed and the one that repeats its work.
//   auto checkpoints = std::make_shared<train::Checkpoints>(
//       train::CheckpointsOptions{.folder = "runs/digits", .every = 100, .resume = "auto"});
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/run_state.h"

namespace samebytes::train {

struct CheckpointsOptions {
  std::string folder = {};  // empty: writes no files
  std::int64_t every = 0;   // steps; 0: after each epoch's validation
  int keep = 3;             // files; 0: all
  std::string resume = {};  // a file; "auto": the newest undamaged one in the folder; empty: starts anew
  bool in_memory = false;   // without a folder: keeps the last state for the next Session of this process
  // For ranks that write no files: send their shard of the optimizer's state to rank 0, which writes.
  bool gives_state = false;
};

class Checkpoints {
 public:
  // Makes the folder. Throws ArgumentError for a negative `every` or `keep`, "auto" without a folder, and a folder with
  // checkpoints that the run would not resume from; IoError if the folder cannot be made.
  explicit Checkpoints(CheckpointsOptions options);

  bool is_on() const { return saves() || !options_.resume.empty(); }
  bool saves() const { return folder_ || options_.in_memory || options_.gives_state; }
  bool is_due(std::int64_t step) const { return saves() && options_.every > 0 && step % options_.every == 0; }
  bool is_due_after_epochs() const { return saves() && options_.every == 0; }

  struct Restored {
    std::string from;  // a path, or "memory"
    RunOrigin origin;
  };
  // Restores everything registered with `state`; returns nullopt if there is no state to resume from. Throws as
  // RunState::load() does.
  std::optional<Restored> restore(RunState& state);
  // The file to resume from, if any.
  const std::optional<Checkpoint>& wanted();
  // Throws as RunState::save() does. Requires: all enqueued work has completed.
  void save(RunState& state, optim::Optimizer& optimizer, std::int64_t step);

  // Lets the next Session start anew: files are numbered from `first_step`, and its log begins at `log_position`.
  void begin_next(std::int64_t first_step, std::int64_t log_position);
  std::int64_t log_begin() const { return log_begin_; }
  void set_first_step(std::int64_t step) { first_step_ = step; }

  // What this process has written.
  struct Written {
    std::int64_t count = 0;
    double seconds = 0;                     // for all of them
    std::string path = {};                  // of the last one; empty if it is kept in memory
    std::size_t bytes = 0;                  // size of the last one
    std::vector<std::string> damaged = {};  // newer files that "auto" skipped, each with its fault
  };
  const Written& written() const { return written_; }

 private:
  CheckpointsOptions options_;
  std::optional<CheckpointFolder> folder_;
  std::optional<RunSnapshot> last_;   // in memory
  std::optional<Checkpoint> wanted_;  // to resume from
  bool has_looked_ = false;           // whether wanted_ is known
  std::int64_t first_step_ = 0, log_begin_ = 0;
  Written written_;
};

}  // namespace samebytes::train
