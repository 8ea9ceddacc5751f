#include "cli/step_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "samebytes/error.h"

namespace samebytes::cli {

StepLog::StepLog(const std::string& path, const std::string& tensorboard) : path_(path) {
  if (!tensorboard.empty()) curves_.emplace(tensorboard);
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "w"));
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
