// samebytes tune: searches for better tiles, splits and parameters of a device, shows the store, or removes it.
#include "samebytes/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

constexpr double kSeconds = 180;
constexpr double kRapidSeconds = 20;
constexpr std::int64_t kProgressSteps = 1000;

template <class Call>
auto on_device(const Call& call) {
  if (const std::string trouble = explain_no_device(); !trouble.empty()) throw DeviceError(trouble, "", "", "");
  try {
    return call();
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
}

int show(const Options& options) {
  const std::string file = on_device([&] { return tuning_file(options.device); });
  const std::vector<TuningChoice> table = on_device([&] { return tuning_table(options.device); });
  const bool is_there = !file.empty() && std::filesystem::exists(file);
  const bool is_used =
      std::any_of(table.begin(), table.end(), [](const auto& row) { return row.value != row.built_in; });
  if (options.json) {
    Json list = Json::array();
    for (const TuningChoice& row : table)
      list.push_back({{"key", row.key}, {"value", row.value}, {"built_in", row.built_in}, {"legal", row.legal}});
    fmt::print("{}\n", Json{{"file", file}, {"exists", is_there}, {"choices", list}}.dump());
    return kDone;
  }
  fmt::print("store: {}{}\n", file.empty() ? "none (SAMEBYTES_TUNING=off)" : file,
             file.empty() ? ""
             : !is_there  ? " (not there)"
             : is_used    ? ""
                          : " (says nothing that is not built in)");
  fmt::print("{:<42} {:>8} {:>8}   {}\n", "choice", "value", "built-in", "legal");
  for (const TuningChoice& row : table)
    fmt::print("{:<42} {:>8} {:>8}   {}\n", row.key, row.value, row.value == row.built_in ? "" : row.built_in,
               row.legal);
  return kDone;
}

int reset(const Options& options) {
  const std::string file = on_device([&] { return tuning_file(options.device); });
  const bool removed = on_device([&] { return reset_tuning(options.device); });
  if (options.json)
    fmt::print("{}\n", Json{{"file", file}, {"removed", removed}}.dump());
  else
    fmt::print("{}: {}\n", file.empty() ? "no store" : file, removed ? "removed" : "there was none");
  return kDone;
}

Json to_json(const TuneReport& report) {
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
  for (const TuningChoice& row : report.found)
    found.push_back({{"key", row.key}, {"value", row.value}, {"built_in", row.built_in}});
  return {{"device", report.device},     {"file", report.file},          {"tuning", report.hash},
          {"seconds", report.seconds},   {"written", report.is_written}, {"interrupted", report.is_interrupted},
          {"tried", report.tried},       {"wrong", report.wrong},        {"not_built", report.not_built},
          {"refusals", report.refusals}, {"problems", problems},         {"choices", found}};
}

void print(const TuneReport& report) {
  fmt::print("{:<8} {:<16} {:<24} {:>12} {:>12} {:>8} {:>7} {:>8}\n", "group", "kernel", "shape", "built-in ms",
             "best ms", "gain", "tried", "refused");
  for (const TunedProblem& row : report.problems)
    fmt::print("{:<8} {:<16} {:<24} {:>12.4f} {:>12.4f} {:>7.2f}x {:>7} {:>8}\n", row.group, row.kernel, row.shape,
               row.built_in_ms, row.best_ms, row.gain, row.tried, row.refused);
  for (const std::string& line : report.refusals) fmt::print("refused: {}\n", line.substr(0, 108));
  fmt::print("{} candidates in {}: {} gave wrong results, {} did not build\n", report.tried,
             duration_text(report.seconds), report.wrong, report.not_built);
  for (const TuningChoice& row : report.found)
    fmt::print("  {} = {} (built in: {})\n", row.key, row.value, row.built_in);
  if (report.found.empty()) fmt::print("  nothing is better than what is built in\n");
  if (report.is_written)
    fmt::print("written to {}, tuning {}\n", report.file, report.hash);
  else
    fmt::print("nothing was written\n");
}

}  // namespace

int run_tune(const Options& options) {
  expect_one_device(options, "tune");
  if (options.devices.fallback)
    throw UsageError("tune times the kernels of one device; leave --fallback out, which has others run them");
  const bool tunes = options.tune_rapid || options.tune_seconds || !options.tune_only.empty() || options.tune_dry_run;
  if (options.tune_show + options.tune_reset + tunes > 1)
    throw UsageError("--show and --reset tune nothing; leave the other options of tune out");
  if (options.tune_show) return show(options);
  if (options.tune_reset) return reset(options);
  TuneOptions tune_options;
  tune_options.device = options.device;
  tune_options.rapid = options.tune_rapid;
  tune_options.seconds = options.tune_seconds.value_or(options.tune_rapid ? kRapidSeconds : kSeconds);
  tune_options.only = options.tune_only;
  tune_options.dry_run = options.tune_dry_run;
  Progress progress(stream_for_people(options), options.quiet);
  tune_options.progress = [&](const TuneProgress& now) {
    if (progress.is_due()) {
      const double done = std::clamp(now.fraction, 0.0, 1.0) * static_cast<double>(kProgressSteps);
      progress.draw({.title = now.what,
                     .done = static_cast<std::int64_t>(done),
                     .total = kProgressSteps,
                     .seconds = now.seconds,
                     .loss = NAN});
    }
    return !is_interrupted();
  };
  if (!options.quiet) progress.say("tuning; Ctrl-C ends it and keeps what was found");
  const TuneReport report = on_device([&] { return tune(tune_options); });
  progress.erase();
  if (options.json)
    fmt::print("{}\n", to_json(report).dump());
  else
    print(report);
  return report.is_interrupted ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
