// RunLog: what a run says of itself while it runs: a file with one JSON object a line, written at once so that
// `tail -f` and a killed run have all of it, and TensorBoard's event files beside it. `samebytes doctor` reads the
// file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "samebytes/error.h"
#include "samebytes/tensorboard.h"

namespace samebytes::train {

class RunLog {
 public:
  // An empty path or folder: nothing is written there. Throws IoError where one cannot be opened.
  // keeps: what the file has stays, until rewind() says how much of it.
  explicit RunLog(const std::string& path, const std::string& tensorboard_folder = {}, bool keeps = false);
  bool is_on() const { return file_ != nullptr || curves_; }
  // A JSON object; its "event" and "step" decide what TensorBoard makes of it: numbers of "step" and "epoch" are
  // curves, all else is text. Throws IoError for a full disk.
  void write(std::string_view json);
  // Bytes written so far; and back to there, so that what a resumed run does again is said once. Pipes and devices
  // cannot go back, nor can event files.
  std::int64_t position() const;
  void rewind(std::int64_t position);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void draw(std::string_view json);
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::optional<SummaryWriter> curves_;
};

// The kind of an error where the loss, or with EngineOptions::check_nan the result of an op, is NaN or infinite.
inline constexpr const char* kNotFinite = "NotFinite";

// {"event": "error", "kind": "OutOfMemory", "message": ..., "need_bytes": ..., "limit_bytes": ...}
std::string error_line(const std::exception& error);

// An error in a step of a run; keeps what error_line() says of its cause.
class StepError : public Error {
 public:
  StepError(std::int64_t step, const Error& cause);
  StepError(std::int64_t step, const std::string& message, const char* kind);
  std::int64_t step() const { return step_; }
  const std::string& line() const { return line_; }

 private:
  std::int64_t step_;
  std::string line_;
};

}  // namespace samebytes::train
