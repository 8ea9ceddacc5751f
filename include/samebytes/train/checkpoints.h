// Checkpoints: where a run keeps its states (run_state.h), when, and from which of them it goes on. It may serve
// several Sessions one after the other, such as one that failed and the one that does its work again.
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
  std::string folder = {};  // empty: none is written
  std::int64_t every = 0;   // steps; 0: after each epoch's validation
  int keep = 3;             // files; 0: all
  std::string resume = {};  // a file; "auto": the newest whole one of the folder; empty: begins anew
  bool in_memory = false;   // where there is no folder: the last state, for the next Session of this process
  // Of a rank that writes nothing: its share of a sharded optimizer's state goes to rank 0, which writes.
  bool gives_state = false;
};

class Checkpoints {
 public:
  // Makes the folder. Throws ArgumentError for a negative `every` or `keep`, "auto" without a folder, and a folder that
  // has checkpoints which the run would not go on from; IoError where it cannot be made.
  explicit Checkpoints(CheckpointsOptions options);

  bool is_on() const { return saves() || !options_.resume.empty(); }
  bool saves() const { return folder_ || options_.in_memory || options_.gives_state; }
  bool is_due(std::int64_t step) const { return saves() && options_.every > 0 && step % options_.every == 0; }
  bool is_due_after_epochs() const { return saves() && options_.every == 0; }

  struct Restored {
    std::string from;  // a path, or "memory"
    RunOrigin origin;
  };
  // Into what the state has registered; nothing where there is no state to go on from. Throws as RunState::load() does.
  std::optional<Restored> restore(RunState& state);
  // The file to go on from, if there is any.
  const std::optional<Checkpoint>& wanted();
  // Throws as RunState::save() does. Requires: all that was enqueued has run.
  void save(RunState& state, optim::Optimizer& optimizer, std::int64_t step);

  // The next Session begins anew: files are numbered from `first_step` on, and its log begins where the log is now.
  void begin_next(std::int64_t first_step, std::int64_t log_position);
  std::int64_t log_begin() const { return log_begin_; }
  void set_first_step(std::int64_t step) { first_step_ = step; }

  // Of this process.
  struct Written {
    std::int64_t count = 0;
    double seconds = 0;                     // for all of them
    std::string path = {};                  // of the last one; empty where it is kept in memory
    std::size_t bytes = 0;                  // ... its size
    std::vector<std::string> damaged = {};  // newer files that "auto" passed over, each with what is wrong
  };
  const Written& written() const { return written_; }

 private:
  CheckpointsOptions options_;
  std::optional<CheckpointFolder> folder_;
  std::optional<RunSnapshot> last_;   // in memory
  std::optional<Checkpoint> wanted_;  // to go on from
  bool has_looked_ = false;           // for it
  std::int64_t first_step_ = 0, log_begin_ = 0;
  Written written_;
};

}  // namespace samebytes::train
