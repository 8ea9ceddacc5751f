#include "samebytes/train/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/json.h"
#include "samebytes/distributed.h"
#include "samebytes/error.h"
#include "samebytes/log.h"

namespace samebytes::train {
namespace {

using LogJson = nlohmann::ordered_json;

constexpr const char* kNanMessage = "check_nan: ";  // what the engine's message begins with

// Bytes of a regular file; 0 for anything else.
std::int64_t size_of(std::FILE* file) {
  struct stat info {};
  return ::fstat(::fileno(file), &info) == 0 && S_ISREG(info.st_mode) ? static_cast<std::int64_t>(info.st_size) : 0;
}

}  // namespace

RunLog::RunLog(const std::string& path, const std::string& tensorboard_folder, bool keeps) : path_(path) {
  if (!tensorboard_folder.empty()) curves_.emplace(tensorboard_folder);
  if (path.empty()) return;
  file_.reset(detail::open_to_write("log", path, keeps ? O_APPEND : O_TRUNC));
  if (!file_) throw IoError(fmt::format("log: {} cannot be written: {}", path, std::strerror(errno)), path);
  std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ);
}

void RunLog::write(std::string_view json) {
  if (curves_) {
    try {
      draw(json);
    } catch (const IoError& error) {
      curves_.reset();
      note_failure(error.what(), error.path());
    }
  }
  if (!file_) return;
  std::string text(json);
  text += '\n';
  const std::int64_t before = size_of(file_.get());
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0) return;
  const std::string why = std::strerror(errno);
  file_.reset();
  ended_at_ = before;
  note_failure(fmt::format("log: writing {} failed: {}", path_, why), path_);
}

void RunLog::note_failure(const std::string& what, const std::string& path) {
  log_message("warning", what + "; the run goes on without it");
  if (!failure_.empty()) return;
  failure_ = what;
  failed_path_ = path;
}

void RunLog::check() const {
  if (!failure_.empty()) throw IoError(failure_, failed_path_);
}

std::int64_t RunLog::position() const { return file_ ? size_of(file_.get()) : std::max<std::int64_t>(ended_at_, 0); }

void RunLog::rewind(std::int64_t position) {
  if (!file_ || size_of(file_.get()) <= position) return;
  if (::ftruncate(::fileno(file_.get()), static_cast<off_t>(position)) != 0 ||
      std::fseek(file_.get(), 0, SEEK_END) != 0)
    throw IoError(fmt::format("log: {} cannot be cut to {} bytes: {}", path_, position, std::strerror(errno)), path_);
}

// Numbers of steps and epochs are curves over the step; the start and the summary are text.
void RunLog::draw(std::string_view json) {
  const LogJson line = LogJson::parse(json);
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

std::string error_line(const std::exception& error) {
  if (const auto* step = dynamic_cast<const StepError*>(&error)) return step->line();
  LogJson line{{"event", "error"}};
  if (const auto* memory = dynamic_cast<const OutOfMemory*>(&error)) {
    line["kind"] = "OutOfMemory";
    line["need_bytes"] = memory->need();
    line["limit_bytes"] = memory->budget();
  } else if (const auto* device = dynamic_cast<const DeviceError*>(&error)) {
    line["kind"] = "DeviceError";
    line["status"] = device->status();
  } else if (dynamic_cast<const distributed::DistributedError*>(&error)) {
    line["kind"] = "DistributedError";
  } else if (dynamic_cast<const std::bad_alloc*>(&error)) {
    line["kind"] = "OutOfMemory";
  } else if (dynamic_cast<const BuildError*>(&error)) {
    line["kind"] = "BuildError";
  } else if (dynamic_cast<const IoError*>(&error)) {
    line["kind"] = "IoError";
  } else if (dynamic_cast<const ArgumentError*>(&error)) {
    line["kind"] = "ArgumentError";
  } else {
    line["kind"] = std::string(error.what()).find(kNanMessage) != std::string::npos ? kNotFinite : "Error";
  }
  line["message"] = error.what();
  return detail::to_line(line);
}

StepError::StepError(std::int64_t step, const Error& cause)
    : Error(fmt::format("step {}: {}", step, cause.what())), step_(step) {
  LogJson line = LogJson::parse(error_line(cause));
  line["step"] = step;
  line_ = detail::to_line(line);
}

StepError::StepError(std::int64_t step, const std::string& message, const char* kind)
    : Error(fmt::format("step {}: {}", step, message)),
      step_(step),
      line_(detail::to_line(LogJson{{"event", "error"}, {"kind", kind}, {"message", message}, {"step", step}})) {}

}  // namespace samebytes::train
