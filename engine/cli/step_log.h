// StepLog: what a run says of itself while it runs: the --log file, one JSON object a line, written at once so that
// `tail -f` and a killed run have all of it, and TensorBoard's event files beside it (--tensorboard).
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "samebytes/tensorboard.h"

namespace samebytes::cli {

class StepLog {
 public:
  // An empty path: nothing is written there. Throws IoError where the file or the folder cannot be opened.
  // keeps: what the file has stays, until rewind() says how much of it.
  explicit StepLog(const std::string& path, const std::string& tensorboard = {}, bool keeps = false);
  bool is_on() const { return file_ != nullptr || curves_; }
  // Throws IoError for a full disk.
  void write(const nlohmann::ordered_json& line);
  // Bytes written so far; and back to there, so that what a resumed run does again is said once. Pipes and devices
  // cannot go back, nor can event files.
  std::int64_t position() const;
  void rewind(std::int64_t position);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void draw(const nlohmann::ordered_json& line);
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::optional<SummaryWriter> curves_;
};

}  // namespace samebytes::cli
