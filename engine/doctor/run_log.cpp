#include "doctor/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "core/json.h"
#include "samebytes/error.h"

namespace samebytes::doctor {
namespace {

using SortedJson = nlohmann::json;

constexpr const char* kReader = "doctor";

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw IoError(fmt::format("{} cannot be read: {}", path, std::strerror(errno)), path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// A line of a file, in which it begins at `offset`.
SortedJson object_of(const std::string& path, std::size_t line, std::int64_t offset, const std::string& text) {
  const std::string place = fmt::format("{}:{}", path, line);
  try {
    auto json = detail::parse_json<SortedJson>(kReader, place, text, offset, [](const std::string&, int) {});
    if (!json.is_object()) detail::throw_io(kReader, place, offset, "a JSON object", json.type_name());
    return json;
  } catch (const IoError& error) {
    throw IoError(error.what(), path, error.offset());
  }
}

std::optional<double> number_of(const SortedJson& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return {};
  return found->get<double>();
}

std::string text_of(const SortedJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t count_of(const SortedJson& json, const char* key) {
  return static_cast<std::int64_t>(std::clamp(number_of(json, key).value_or(0), -kMostCounted, kMostCounted));
}

LoggedError error_of(const SortedJson& json, int line) {
  LoggedError error{line, {}, text_of(json, "kind"), text_of(json, "message"), {}, {}};
  if (number_of(json, "step")) error.step = count_of(json, "step");
  error.need_bytes = number_of(json, "need_bytes");
  error.limit_bytes = number_of(json, "limit_bytes");
  return error;
}

void take(RunLog& run, const SortedJson& json, int line) {
  const std::string event = text_of(json, "event");
  run.end_line = line;
  if (event == "start") {
    RunLog fresh;
    fresh.path = run.path;
    fresh.start = json;
    fresh.start_line = fresh.end_line = line;
    run = fresh;
  } else if (event == "step") {
    run.steps.push_back({line, count_of(json, "step"), number_of(json, "loss").value_or(NAN),
                         number_of(json, "rate").value_or(NAN), number_of(json, "ms").value_or(NAN),
                         number_of(json, "grad_norm")});
  } else if (event == "epoch") {
    run.epochs.push_back({line, static_cast<int>(count_of(json, "epoch")), count_of(json, "step"),
                          number_of(json, "train_loss").value_or(NAN), number_of(json, "test_loss"),
                          number_of(json, "stall_fraction")});
  } else if (event == "error") {
    run.error = error_of(json, line);
  } else if (event == "summary") {
    run.summary = json;
    run.summary_line = line;
  }
}

std::vector<ProfileRowRead> rows_of(const SortedJson& json, const char* key) {
  std::vector<ProfileRowRead> rows;
  for (const SortedJson& row : json.at(key))
    rows.push_back({text_of(row, "name"), number_of(row, "seconds").value_or(0), number_of(row, "share").value_or(0),
                    number_of(row, "share_of_bound").value_or(0)});
  return rows;
}

}  // namespace

std::optional<double> RunLog::number(const char* key) const { return number_of(start, key); }
std::string RunLog::text(const char* key) const { return text_of(start, key); }
bool RunLog::flag(const char* key) const {
  const auto found = start.find(key);
  return found != start.end() && found->is_boolean() && found->get<bool>();
}
std::optional<double> RunLog::result(const char* key) const { return number_of(summary, key); }

RunLog read_run_log(const std::string& path) {
  const std::vector<std::string> lines = read_lines(path);
  RunLog run;
  run.path = path;
  bool has_event = false;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < lines.size(); offset += static_cast<std::int64_t>(lines[i++].size()) + 1) {
    if (lines[i].find_first_not_of(" \t\r") == std::string::npos) continue;
    SortedJson json;
    try {
      json = object_of(path, i + 1, offset, lines[i]);
    } catch (const IoError&) {
      if (i + 1 == lines.size() && has_event) break;  // it was killed in the middle of this line
      throw;
    }
    has_event = has_event || json.contains("event");
    take(run, json, static_cast<int>(i) + 1);
  }
  if (!has_event)
    throw IoError(fmt::format("{} is no log of `samebytes train --log FILE.jsonl`: no line has an event", path), path);
  return run;
}

ProfileLog read_profile(const std::string& path) {
  const std::vector<std::string> lines = read_lines(path);
  std::size_t last = lines.size();
  while (last > 0 && lines[last - 1].find_first_not_of(" \t\r") == std::string::npos) --last;
  ProfileLog profile;
  profile.path = path;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i + 1 < last; ++i) offset += static_cast<std::int64_t>(lines[i].size()) + 1;
  if (last > 0) profile.all = object_of(path, last, offset, lines[last - 1]);
  const double seconds = number_of(profile.all, "seconds").value_or(0);
  if (seconds <= 0 || !profile.all.contains("by_op") || !profile.all.contains("by_kernel") ||
      !profile.all.contains("by_layer"))
    throw IoError(fmt::format("{} is no profile of `samebytes profile WORKLOAD --json`", path), path);
  const double steps = std::max(number_of(profile.all, "steps").value_or(1), 1.0);
  profile.busy_share = number_of(profile.all, "busy_seconds").value_or(0) / seconds;
  profile.launches = number_of(profile.all, "launches").value_or(0) / steps;
  profile.step_seconds = seconds / steps;
  profile.by_kernel = rows_of(profile.all, "by_kernel");
  profile.by_op = rows_of(profile.all, "by_op");
  profile.by_layer = rows_of(profile.all, "by_layer");
  return profile;
}

}  // namespace samebytes::doctor
