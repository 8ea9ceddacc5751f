#include "samebytes/train/checkpoints.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "samebytes/error.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::train {
namespace {

// Two runs that write to one folder would remove each other's checkpoints. The lock is that of this process, and goes
// with it; file systems without locks have none.
void lock_folder(const std::string& folder) {
  static std::mutex& mutex = *new std::mutex;
  static auto& ours = *new std::set<std::pair<dev_t, ino_t>>;
  const std::lock_guard lock(mutex);
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info {};
  if (file < 0 || ::fstat(file, &info) != 0) return;
  if (!ours.emplace(info.st_dev, info.st_ino).second) {
    ::close(file);
  } else if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ours.erase({info.st_dev, info.st_ino});
    ::close(file);
    throw ArgumentError(fmt::format(
        "checkpoints: another process writes to {} right now: wait for its end, or name another folder", folder));
  }
}

}  // namespace

Checkpoints::Checkpoints(CheckpointsOptions options) : options_(std::move(options)) {
  if (options_.every < 0)
    throw ArgumentError(fmt::format("checkpoints: expected every 0 (epochs) or more steps, got {}", options_.every));
  if (options_.folder.empty()) {
    if (options_.resume == "auto")
      throw ArgumentError("checkpoints: resume \"auto\" looks in the folder; name one, or the file to go on from");
    return;
  }
  folder_.emplace(options_.folder, CheckpointFolderOptions{.keep = options_.keep});
  if (!options_.gives_state) lock_folder(options_.folder);
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
