// What the tuner found, and the table of its choices, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "samebytes/figures.h"
#include "samebytes/tune.h"

namespace samebytes {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestRefusal = 108;  // characters

Json json_of(const TuningChoice& row, bool has_legal) {
  Json json{{"key", row.key}, {"value", row.value}, {"built_in", row.built_in}};
  if (has_legal) json["legal"] = row.legal;
  return json;
}

bool exists(const std::string& file) {
  std::error_code ignored;
  return !file.empty() && std::filesystem::exists(file, ignored);
}

}  // namespace

std::string tune_json(const TuneReport& report) {
  Json problems = Json::array(), found = Json::array();
  for (const TunedProblem& row : report.problems)
    problems.push_back({{"group", row.group},
                        {"kernel", row.kernel},
                        {"shape", row.shape},
                        {"built_in_ms", row.built_in_ms},
                        {"best_ms", row.best_ms},
                        {"gain", row.gain},
                        {"tried", row.tried},
                        {"refused", row.refused}});
  for (const TuningChoice& row : report.found) found.push_back(json_of(row, false));
  return detail::to_line(Json{{"device", report.device},
                              {"file", report.file},
                              {"tuning", report.hash},
                              {"seconds", report.seconds},
                              {"written", report.is_written},
                              {"interrupted", report.is_interrupted},
                              {"tried", report.tried},
                              {"wrong", report.wrong},
                              {"not_built", report.not_built},
                              {"refusals", report.refusals},
                              {"problems", problems},
                              {"choices", found}});
}

std::string tune_text(const TuneReport& report) {
  TextTable table("lllrrrrr");
  table.add({"group", "kernel", "shape", "built-in ms", "best ms", "gain", "tried", "refused"});
  for (const TunedProblem& row : report.problems)
    table.add({row.group, row.kernel, row.shape, fmt::format("{:.4f}", row.built_in_ms),
               fmt::format("{:.4f}", row.best_ms), fmt::format("{:.2f}x", row.gain), count_text(row.tried),
               count_text(row.refused)});
  std::string text = table.to_text();
  for (const std::string& line : report.refusals) text += "refused: " + line.substr(0, kLongestRefusal) + "\n";
  text += fmt::format("{} in {}: {} gave wrong results, {} did not build\n", counted_text(report.tried, "candidate"),
                      duration_text(report.seconds), report.wrong, report.not_built);
  for (const TuningChoice& row : report.found)
    text += fmt::format("  {} = {} (built in: {})\n", row.key, row.value, row.built_in);
  if (report.found.empty()) text += "  nothing is better than what is built in\n";
  return text + (report.is_written ? fmt::format("written to {}, tuning {}\n", report.file, report.hash)
                                   : "nothing was written\n");
}

std::string tuning_json(const std::string& file, const std::vector<TuningChoice>& choices) {
  Json list = Json::array();
  for (const TuningChoice& row : choices) list.push_back(json_of(row, true));
  return detail::to_line(Json{{"file", file}, {"exists", exists(file)}, {"choices", list}});
}

std::string tuning_text(const std::string& file, const std::vector<TuningChoice>& choices) {
  const bool is_used =
      std::any_of(choices.begin(), choices.end(), [](const auto& row) { return row.value != row.built_in; });
  TextTable table("lrrl");
  table.add({"choice", "value", "built-in", "legal"});
  for (const TuningChoice& row : choices)
    table.add({row.key, row.value, row.value == row.built_in ? "" : row.built_in, row.legal});
  return fmt::format("store: {}{}\n", file.empty() ? "none (SAMEBYTES_TUNING=off)" : file,
                     file.empty()    ? ""
                     : !exists(file) ? " (not there)"
                     : is_used       ? ""
                                     : " (says nothing that is not built in)") +
         table.to_text();
}

}  // namespace samebytes
