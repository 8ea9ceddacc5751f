#include "cli/step_log.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "samebytes/error.h"

namespace samebytes::cli {

namespace {

// Bytes of a regular file; 0 for anything else.
std::int64_t size_of(std::FILE* file) {
  struct stat info {};
  return ::fstat(::fileno(file), &info) == 0 && S_ISREG(info.st_mode) ? static_cast<std::int64_t>(info.st_size) : 0;
}

}  // namespace

StepLog::StepLog(const std::string& path, const std::string& tensorboard, bool keeps) : path_(path) {
  if (!tensorboard.empty()) curves_.emplace(tensorboard);
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), keeps ? "a" : "w"));
  if (!file_) throw IoError(fmt::format("log: {} cannot be written: {}", path, std::strerror(errno)), path);
  std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ);
}

void StepLog::write(const nlohmann::ordered_json& line) {
  if (curves_) draw(line);
  if (!file_) return;
  std::string text = line.dump();
  text += '\n';
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0)
    throw IoError(fmt::format("log: writing {} failed: {}", path_, std::strerror(errno)), path_);
}

std::int64_t StepLog::position() const { return file_ ? size_of(file_.get()) : 0; }

void StepLog::rewind(std::int64_t position) {
  if (!file_ || size_of(file_.get()) <= position) return;
  if (::ftruncate(::fileno(file_.get()), static_cast<off_t>(position)) != 0 ||
      std::fseek(file_.get(), 0, SEEK_END) != 0)
    throw IoError(fmt::format("log: {} cannot be cut to {} bytes: {}", path_, position, std::strerror(errno)), path_);
}

// Numbers of steps and epochs are curves over the step; the start and the summary are text.
void StepLog::draw(const nlohmann::ordered_json& line) {
  const std::string event = line.value("event", std::string());
  const std::int64_t step = line.value("step", std::int64_t{0});
  if (event != "step" && event != "epoch") {
    curves_->text(event.empty() ? "run" : event, line.dump(2), step);
    curves_->flush();
    return;
  }
  for (const auto& [key, value] : line.items())
    if (value.is_number() && key != "step" && key != "epoch")
      curves_->scalar(fmt::format("{}/{}", event, key), value.get<double>(), step);
  if (event == "epoch") curves_->flush();
}

}  // namespace samebytes::cli
