// What a run said of itself, read again: the lines of `train --log FILE.jsonl`, and the tables of `profile --json`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace samebytes::doctor {

// Numbers of a log as bytes and as counts; anybody may have written them, so what cannot be one is the nearest that
// can.
inline constexpr double kMostCounted = 9007199254740992.0;  // up to which a double has every integer
inline std::size_t size_of(double value) { return static_cast<std::size_t>(std::clamp(value, 0.0, kMostCounted)); }
inline int whole_of(double value) { return static_cast<int>(std::clamp(value, 0.0, 1e9)); }

struct LoggedStep {
  int line = 0;  // of the file, from 1
  std::int64_t step = 0;
  double loss = 0;  // not finite where the log has none
  double rate = 0;
  double milliseconds = 0;
  std::optional<double> grad_norm = {};
};

struct LoggedEpoch {
  int line = 0;
  int epoch = 0;
  std::int64_t step = 0;
  double train_loss = 0;
  std::optional<double> test_loss;
  std::optional<double> stall_fraction;
};

struct LoggedError {
  int line = 0;
  std::optional<std::int64_t> step;
  std::string kind;  // as train::error_line() says
  std::string message;
  std::optional<double> need_bytes, limit_bytes;
};

// The last run in a log: of several folds, the last one.
struct RunLog {
  std::string path;
  int start_line = 0, end_line = 0, summary_line = 0;  // 0: there is none
  nlohmann::json start = nlohmann::json::object();
  nlohmann::json summary = nlohmann::json::object();
  std::vector<LoggedStep> steps;
  std::vector<LoggedEpoch> epochs;
  std::optional<LoggedError> error;

  // Of the line that opens the run, empty where an older log does not have it.
  std::optional<double> number(const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key) const;
  std::optional<double> result(const char* key) const;  // of the summary
};

// Throws IoError for a file that cannot be read, that is no log of train, or that has a broken line before its last
// one; the last one of a run that was killed may be cut.
RunLog read_run_log(const std::string& path);

struct ProfileRowRead {
  std::string name;
  double seconds = 0, share = 0, share_of_bound = 0;
};

struct ProfileLog {
  std::string path;
  nlohmann::json all;
  double busy_share = 0;  // of the time, in which a launch ran
  double launches = 0;    // a step
  double step_seconds = 0;
  std::vector<ProfileRowRead> by_kernel, by_op, by_layer;
};

// The last line of a file that `profile --json` was sent to. Throws IoError for anything else.
ProfileLog read_profile(const std::string& path);

}  // namespace samebytes::doctor
