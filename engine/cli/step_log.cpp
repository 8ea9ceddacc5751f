#include "cli/step_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "samebytes/error.h"

namespace samebytes::cli {

StepLog::StepLog(const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "w"));
  if (!file_) throw IoError(fmt::format("log: {} cannot be written: {}", path, std::strerror(errno)), path);
  std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ);
}

void StepLog::write(const nlohmann::ordered_json& line) {
  if (!file_) return;
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0)
    throw IoError(fmt::format("log: writing {} failed: {}", path_, std::strerror(errno)), path_);
}

}  // namespace samebytes::cli
