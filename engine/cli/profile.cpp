// samebytes profile: a workload's steps under the profiler; tables for the terminal, a timeline and a page for the
// browser.
#include "samebytes/profile.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/bench_run.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kProfiledSteps = 20;

ProfileBy by_of(const std::string& name) {
  return name == "layer" ? ProfileBy::layer : name == "op" ? ProfileBy::op : ProfileBy::kernel;
}

ProfileSort sort_of(const std::string& name) {
  if (name == "count") return ProfileSort::count;
  if (name == "flops") return ProfileSort::flops;
  return name == "bytes" ? ProfileSort::bytes : ProfileSort::time;
}

}  // namespace

int run_profile(const Options& options) {
  const bool is_training = options.mode != "infer";
  const Workload workload = make_workload(options.workloads.front(), options.form);
  Progress progress(stream_for_people(options), options.quiet);
  DevicePeak peak;
  progress.wait_for("measuring the peak of the device");
  {
    const std::unique_ptr<Engine> engine = open_engine(options, options.device);
    peak = measure_peak();
    progress.say(fmt::format("{}: {:.0f} GFLOP/s of multiply-adds, {:.1f} GB/s of c = a + b", device_text(*engine),
                             peak.gflops, peak.gigabytes_per_second));
  }
  progress.wait_for("making data and model");
  const std::unique_ptr<Engine> engine = open_engine(options, options.device, true);
  const auto steps = static_cast<int>(options.steps.value_or(kProfiledSteps));
  const MemoryWatch memory(options, *engine);
  BenchRun run(options, *engine, workload, is_training);
  Profiler profiler(*engine, {.wait = options.profile_wait, .warmup = options.profile_warmup, .active = steps});
  run.set_step_listener([&profiler] { profiler.step(); });
  progress.wait_for("compiling kernels and recording");
  run.run(std::int64_t{options.profile_wait} + options.profile_warmup + steps);
  Profile profile = profiler.stop();
  progress.erase();
  print_plan(options, *engine);
  memory.save();
  profile.peak = peak;
  const Summary summary = run.summary();

  const std::string title = fmt::format("{} {}, batch {}{}", workload.name, is_training ? "training" : "inference",
                                        summary.batch, summary.precision == "f32" ? "" : ", " + summary.precision);
  std::FILE* const out = stream_for_people(options);
  if (profile.steps > 0) {
    fmt::print(out, "\n{}: {:.3f} ms a step, {:.1f} launches, the device at work {:.1f} % of the time\n", title,
               1e3 * profile.seconds / profile.steps, static_cast<double>(profile.launches.size()) / profile.steps,
               100 * profile.busy_seconds() / std::max(profile.seconds, 1e-12));
    const ProfileSort sort = sort_of(options.profile_sort);
    const auto table = [&](ProfileBy by) {
      fmt::print(out, "\n{}", profile_table(profile, {.by = by, .sort = sort, .top = options.profile_top}));
    };
    table(by_of(options.profile_by));
    if (options.profile_by.empty()) table(ProfileBy::layer);
  }
  if (!options.trace.empty()) {
    io::write_file(options.trace, chrome_trace(profile));
    fmt::print(out, "\n{}: open it in https://ui.perfetto.dev\n", options.trace);
  }
  if (!options.html.empty()) {
    io::write_file(options.html, profile_html(profile, "samebytes profile: " + title));
    fmt::print(out, "{}: a page for any browser\n", options.html);
  }
  if (options.json) {
    Json json{{"workload", workload.name},
              {"mode", is_training ? "train" : "infer"},
              {"batch", summary.batch},
              {"precision", summary.precision}};
    json.update(Json::parse(profile_json(profile, sort_of(options.profile_sort))));
    print_json(json);
  }
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
