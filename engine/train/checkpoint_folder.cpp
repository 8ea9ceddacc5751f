// Names, rotation and the newest whole file of a folder of states.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "core/files.h"
#include "samebytes/error.h"
#include "samebytes/run_state.h"

namespace samebytes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "checkpoint-", kEnd = ".safetensors";

std::optional<std::int64_t> number_of(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> step_in_name(std::string_view name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size())
    return std::nullopt;
  return number_of(name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size()));
}

// A state that a killed process was writing.
bool is_abandoned_state(const fs::path& path) {
  const std::string name = path.filename().string();
  return step_in_name(std::string_view(name).substr(0, name.rfind(detail::kTemporary))) && detail::is_abandoned(path);
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string path, const CheckpointFolderOptions& options)
    : path_(std::move(path)), options_(options) {
  if (options_.keep < 0)
    throw ArgumentError("checkpoint folder: keep must be 0 or more, got " + std::to_string(options_.keep));
  std::error_code error;
  fs::create_directories(path_, error);
  if (!fs::is_directory(path_))
    throw IoError("checkpoint folder: " + path_ + " cannot be made: " + error.message(), path_);
}

std::vector<Checkpoint> CheckpointFolder::list() const {
  std::vector<Checkpoint> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error))
    if (const auto step = step_in_name(entry.path().filename().string()))
      found.push_back({entry.path().string(), *step});
  if (error) throw IoError("checkpoint folder: " + path_ + " cannot be read: " + error.message(), path_);
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.step < b.step; });
  return found;
}

std::string CheckpointFolder::save(const RunState& run, std::int64_t step) const {
  if (step < 0) throw ArgumentError("checkpoint folder: a step must be 0 or more, got " + std::to_string(step));
  char name[64];
  std::snprintf(name, sizeof name, "checkpoint-%09lld.safetensors", static_cast<long long>(step));
  std::string path = (fs::path(path_) / name).string();
  run.save(path);
  remove_old(step);
  return path;
}

// Files after this step are of a run that went on from an earlier one, or damaged; they neither count nor go.
void CheckpointFolder::remove_old(std::int64_t newest_step) const {
  std::vector<Checkpoint> files = list();
  std::erase_if(files, [&](const Checkpoint& file) { return file.step > newest_step; });
  std::error_code ignored;
  const auto keep = static_cast<std::size_t>(options_.keep);
  if (keep > 0)
    for (std::size_t i = 0; i + keep < files.size(); ++i) fs::remove(files[i].path, ignored);
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored))
    if (is_abandoned_state(entry.path())) fs::remove(entry.path(), ignored);
}

CheckpointFolder::Newest CheckpointFolder::newest() const {
  Newest result;
  std::vector<Checkpoint> files = list();
  for (; !files.empty(); files.pop_back()) {
    try {
      check_run_file(files.back().path);
      result.checkpoint = files.back();
      break;
    } catch (const IoError& error) {
      result.damaged.emplace_back(error.what());
    }
  }
  return result;
}

}  // namespace samebytes
