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
  fmt::print("{}", options.json ? tuning_json(file, table) + "\n" : tuning_text(file, table));
  return kDone;
}

int reset(const Options& options) {
  const std::string file = on_device([&] { return tuning_file(options.device); });
  const bool removed = on_device([&] { return reset_tuning(options.device); });
  if (options.json)
    print_json({{"file", file}, {"removed", removed}});
  else
    fmt::print("{}: {}\n", file.empty() ? "no store" : file, removed ? "removed" : "there was none");
  return kDone;
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
                     .seconds_left = now.fraction > 0 ? now.seconds * (1 - now.fraction) / now.fraction : NAN});
    }
    progress.wait_behind_bar(now.what);
    return !is_interrupted();
  };
  if (!options.quiet) progress.say("tuning; Ctrl-C ends it and keeps what was found");
  const TuneReport report = on_device([&] { return tune(tune_options); });
  progress.erase();
  fmt::print("{}", options.json ? tune_json(report) + "\n" : tune_text(report));
  return report.is_interrupted ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
