// RunLog: the log of a run: a file with one JSON object per line, flushed after each line so that `tail -f` and a
// killed run show all of it, and optionally TensorBoard's event files. `samebytes doctor` reads the file.
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
  // An empty path or folder disables that output. Throws IoError if one cannot be opened.
  // keeps: keeps the file's content, until rewind() cuts it.
  explicit RunLog(const std::string& path, const std::string& tensorboard_folder = {}, bool keeps = false);
  bool is_on() const { return file_ != nullptr || curves_; }
  // Writes a JSON object. Its "event" and "step" decide what TensorBoard shows: numbers of the events "step" and
  // "epoch" are curves, everything else is text. A write that fails (a full disk) ends this output and not the run, and
  // is a warning; check() throws it.
  void write(std::string_view json);
  // Throws IoError if a write has failed: what was to be written since then is missing. Call at the end of a run.
  void check() const;
  // position() is the number of bytes written so far; rewind() returns to it, so that steps which a resumed run repeats
  // are logged once. It has no effect on pipes, devices and event files.
  std::int64_t position() const;
  void rewind(std::int64_t position);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void draw(std::string_view json);
  void note_failure(const std::string& what, const std::string& path);
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::optional<SummaryWriter> curves_;
  std::string failure_, failed_path_;  // of the first write that failed
  std::int64_t ended_at_ = -1;         // bytes before it; -1: none failed
};

// The kind of an error for a loss, or with EngineOptions::check_nan a result of an op, that is NaN or infinite.
inline constexpr const char* kNotFinite = "NotFinite";

// {"event": "error", "kind": "OutOfMemory", "message": ..., "need_bytes": ..., "limit_bytes": ...}
std::string error_line(const std::exception& error);

// An error in a step of a run; line() is the error_line() of its cause.
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
