#include "samebytes/train/checkpoints.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "samebytes/error.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::train {

Checkpoints::Checkpoints(CheckpointsOptions options) : options_(std::move(options)) {
  if (options_.every < 0)
    throw ArgumentError(fmt::format("checkpoints: expected every 0 (epochs) or more steps, got {}", options_.every));
  if (options_.folder.empty()) {
    if (options_.resume == "auto")
      throw ArgumentError("checkpoints: resume \"auto\" looks in the folder; name one, or the file to go on from");
    return;
  }
  folder_.emplace(options_.folder, CheckpointFolderOptions{.keep = options_.keep});
  options_.in_memory = false;
  if (options_.resume.empty() && !folder_->list().empty())
    throw ArgumentError(fmt::format(
        "checkpoints: {} has the checkpoints of an earlier run: resume \"auto\" goes on from the newest; to begin "
        "anew, name another folder or remove them",
        options_.folder));
}

const std::optional<Checkpoint>& Checkpoints::wanted() {
  if (std::exchange(has_looked_, true) || options_.resume.empty()) return wanted_;
  if (options_.resume != "auto") return wanted_ = Checkpoint{options_.resume, 0};
  CheckpointFolder::Newest newest = folder_->newest();
  written_.damaged = std::move(newest.damaged);
  return wanted_ = newest.checkpoint;
}

std::optional<Checkpoints::Restored> Checkpoints::restore(RunState& state) {
  if (last_) return Restored{"memory", state.restore(*last_)};
  const std::optional<Checkpoint> checkpoint = wanted();
  if (!checkpoint) return {};
  return Restored{checkpoint->path, state.load(checkpoint->path)};
}

void Checkpoints::save(RunState& state, optim::Optimizer& optimizer, std::int64_t step) {
  if (options_.gives_state) {
    static_cast<void>(optimizer.whole_state());
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  if (folder_) {
    written_.path = folder_->save(state, first_step_ + step);
    written_.bytes = std::filesystem::file_size(written_.path);
    wanted_ = Checkpoint{written_.path, first_step_ + step};
    has_looked_ = true;
  } else {
    last_ = state.snapshot();
    written_.bytes = last_->bytes();
  }
  written_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++written_.count;
}

void Checkpoints::begin_next(std::int64_t first_step, std::int64_t log_position) {
  last_.reset();
  wanted_.reset();
  has_looked_ = true;
  first_step_ = first_step;
  log_begin_ = log_position;
}

}  // namespace samebytes::train
