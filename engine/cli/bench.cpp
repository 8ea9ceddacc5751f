// samebytes bench: training and inference of the workloads on made-up data, each against the measured peak of the
// device.
//
// bench --serve is one workload as a worker that is told what to run, in the protocol of benchmarks/peers/
// worker.py, so that benchmarks/compare.py can alternate between it and other frameworks. A line of JSON when it is
// ready, and one for each line that it reads:
//
// - train or infer: makes what the mode needs, runs the first step and warms up; the loss of the first and last step.
// - run SECONDS: steps of that mode for so long, one at least; the loss is that of the last one. steps N: so many.
// - memory: the largest resident size since `train` or `infer`, in all and beyond that before.
// - quit, or the end of the input: ends it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/bench_run.h"
#include "cli/interrupt.h"
#include "cli/limit.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/energy.h"
#include "samebytes/engine.h"
#include "samebytes/peak.h"
#include "samebytes/samebytes.h"
#include "samebytes/throughput.h"

namespace samebytes::cli {
namespace {

// The same as the peers'.
constexpr std::int64_t kWarmSteps = 4;
constexpr double kWarmSeconds = 0.5, kLongestWarmSeconds = 6;

class Worker {
 public:
  Worker(const Options& options, const Workload& workload) : options_(options), workload_(workload) {
    open();
    const DeviceInfo& info = engine_->device();
    print_json({{"ready", true},
                {"peer", "samebytes"},
                {"version", kVersionNumber},
                {"variant", ""},
                {"workload", workload.name},
                {"threads", info.cores},
                {"device", info.name},
                {"platform", info.platform},
                {"driver", info.driver},
                {"memory_mode", name_of(info.memory_mode)},
                {"personality", name_of(info.personality)}});
  }

  Json obey(const std::string& command, std::istream& rest) {
    if (command == "train" || command == "infer") return prepare(command == "train", rest);
    if (command != "run" && command != "steps" && command != "memory")
      throw UsageError(
          fmt::format("there is no command {}; there are train, infer, run, steps, memory, quit", command));
    if (!run_) throw UsageError(command + ": say train or infer first");
    if (command == "run") return run(BenchRun::kEndless, positive<double>(command, "seconds", rest));
    if (command == "steps") return run(positive<std::int64_t>(command, "a number of steps", rest), BenchRun::kForever);
    const auto peak = run_->resident_peak(), size = run_->resident_size();
    return {{"peak_bytes", peak ? Json(*peak) : Json()}, {"resident_bytes", size ? Json(*size) : Json()}};
  }

 private:
  void open() { engine_ = open_engine(options_, options_.device); }

  template <typename T>
  static T positive(const std::string& command, const char* what, std::istream& rest) {
    T value = 0;
    if (!(rest >> value) || !(value > 0)) throw UsageError(fmt::format("{}: needs {}, more than 0", command, what));
    return value;
  }

  // The first step, and then the warm-up; or so many steps in all as the rest of the line says.
  Json prepare(bool is_training, std::istream& rest) {
    std::int64_t steps = 0;
    const bool is_counted = static_cast<bool>(rest >> steps);
    // An engine of its own, so that nothing of the other mode is left.
    run_.reset();
    engine_.reset();
    open();
    run_ = std::make_unique<BenchRun>(options_, *engine_, workload_, is_training);
    run_->run(1);
    const Summary first = run_->summary();
    run_->restart();
    if (!is_counted) {
      run_->run(kWarmSteps, kLongestWarmSeconds);
      if (const double spent = run_->summary().seconds; spent < kWarmSeconds)
        run_->run(BenchRun::kEndless, kWarmSeconds - spent);
    } else if (steps > 1) {
      run_->run(steps - 1);
    }
    const Summary warm = run_->summary();
    return {{"mode", first.mode},
            {"first_step_seconds", first.first_step_seconds},
            {"parameters", first.parameters},
            {"loss", first.train_loss ? Json(*first.train_loss) : Json()},
            {"last_loss", warm.train_loss ? Json(*warm.train_loss) : Json()},
            {"step_ms_p50", warm.step_ms_p50},
            {"ledger_peak_bytes", engine_->memory().peak_bytes},
            {"batch", first.batch}};
  }

  Json run(std::int64_t steps, double seconds) {
    run_->restart();
    run_->run(steps, seconds);
    const Summary summary = run_->summary();
    return {{"samples_per_second", summary.samples_per_second()},
            {"steps", summary.steps},
            {"seconds", summary.seconds},
            {"step_ms_p50", summary.step_ms_p50},
            {"launches_per_step", summary.launches_per_step},
            {"bytes_copied_per_step", summary.bytes_copied_per_step},
            {"bytes_gathered_per_step", summary.bytes_gathered_per_step},
            {"stall_fraction", summary.stall_fraction},
            {"loss", summary.train_loss ? Json(*summary.train_loss) : Json()},
            {"ledger_peak_bytes", engine_->memory().peak_bytes}};
  }

  const Options& options_;
  const Workload& workload_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<BenchRun> run_;
};

}  // namespace

int serve_bench(const Options& options, const Workload& workload) {
  try {
    Worker worker(options, workload);
    for (std::string line; !is_interrupted() && std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string command;
      if (!(words >> command)) continue;
      if (command == "quit") break;
      print_json(worker.obey(command, words));
    }
  } catch (const std::exception& error) {
    print_json({{"error", error.what()}});
    return kFailed;
  }
  return is_interrupted() ? kInterrupted : kDone;
}

namespace {

constexpr std::int64_t kBenchSteps = 100;
constexpr double kDefaultSeconds = 30;    // where --steps was not given, a slow device ends earlier
constexpr std::int64_t kWarmUpSteps = 5;  // kernels are built, caches and the loader's slots are full

Summary measure(const Options& options, Engine& engine, const Workload& workload, bool is_training,
                Progress& progress) {
  const std::string title = fmt::format("{} {}", workload.name, is_training ? "train" : "infer");
  progress.wait_for(title + ": making data and model");
  const MemoryWatch memory(options, engine);
  BenchRun run(options, engine, workload, is_training);
  const WaitEnds ends(progress);  // before the engine does
  progress.wait_for(title + ": compiling kernels", compiled_on(engine));
  run.run(kWarmUpSteps, kDefaultSeconds);
  run.restart();
  const auto done = std::make_shared<std::atomic<std::int64_t>>(0);
  const std::int64_t steps = options.steps.value_or(kBenchSteps);
  run.set_step_listener([done] { done->fetch_add(1, std::memory_order_relaxed); });
  progress.wait_for(title + ": measuring", [done, steps] { return Counted{done->load(), steps}; });
  const EnergyMeter energy;
  run.run(steps, options.steps ? BenchRun::kForever : kDefaultSeconds);
  // The counters are the processor's; what another device uses is not in them.
  const std::optional<double> joules = engine.device().type == "cpu" ? energy.joules() : std::nullopt;
  progress.erase();
  memory.save();
  Summary summary = run.summary();
  summary.joules = joules;
  return summary;
}

void set_shares(const DevicePeak& peak, Summary& summary) {
  summary.fraction_of_peak = peak.gflops > 0 ? summary.gflops / peak.gflops : 0;
  summary.fraction_of_bandwidth =
      peak.gigabytes_per_second > 0 ? summary.gigabytes_per_second() / peak.gigabytes_per_second : 0;
}

std::vector<std::string> device_names(const Options& options) {
  if (options.device != "all") return {options.device};
  std::vector<std::string> ids;
  for (const DeviceInfo& info : list_devices())
    if (info.refused.empty()) ids.push_back(info.id);
  if (ids.empty()) ids.push_back("");  // the engine says why there is none
  return ids;
}

// As wide as the longest name.
std::size_t name_width(const std::vector<Workload>& chosen) {
  std::size_t width = std::string_view("workload").size();
  for (const Workload& workload : chosen) width = std::max(width, workload.name.size());
  return width;
}

std::string table_heading(std::size_t width) {
  return fmt::format(
      "{:<{}} {:<6} {:>6} {:>12} {:>9} {:>9} {:>9} {:>8} {:>7} {:>9} {:>11} {:>10} {:>10} {:>10} {:>8} {:>9}",
      "workload", width, "mode", "batch", "samples/s", "ms p50", "ms p95", "GFLOP/s", "of peak", "GB/s", "launches",
      "copied/step", "gathered", "memory", "resident", "stalled", "1st step");
}

std::string table_row(const Summary& summary, std::size_t width) {
  return fmt::format(
      "{:<{}} {:<6} {:>6} {:>12} {:>9.2f} {:>9.2f} {:>9.1f} {:>6.1f} % {:>7.1f} {:>9} {:>11} {:>10} {:>10} {:>10} "
      "{:>6.1f} % "
      "{:>9}",
      summary.workload, width, summary.mode, summary.batch, count_text(summary.samples_per_second()),
      summary.step_ms_p50, summary.step_ms_p95, summary.gflops, 100 * summary.fraction_of_peak,
      summary.gigabytes_per_second(), count_text(summary.launches_per_step), count_text(summary.bytes_copied_per_step),
      bytes_text(static_cast<std::size_t>(summary.bytes_gathered_per_step)), bytes_text(summary.peak_bytes),
      summary.resident_peak_bytes ? bytes_text(*summary.resident_peak_bytes) : "", 100 * summary.stall_fraction,
      duration_text(summary.first_step_seconds));
}

DeviceInfo device_of(const Options& options, const std::string& device, Progress& progress) {
  progress.wait_for("opening the device");
  const std::unique_ptr<Engine> engine = open_engine(options, device);
  const DeviceInfo& info = engine->device();
  progress.say(fmt::format("{}, memory mode {}, {} kernels", device_text(*engine), name_of(info.memory_mode),
                           name_of(info.personality)));
  return info;
}

// After the first workload has run: its first step would find kernels that are built for this.
DevicePeak peak_of(const Options& options, const std::string& device, Progress& progress) {
  progress.wait_for("measuring the peak of the device");
  const std::unique_ptr<Engine> engine = open_engine(options, device);
  const EngineScope scope(*engine);
  const DevicePeak peak = measure_peak();
  progress.say(
      fmt::format("{:.0f} GFLOP/s of multiply-adds, {:.1f} GB/s of c = a + b", peak.gflops, peak.gigabytes_per_second));
  return peak;
}

ThroughputRow throughput_row(const Summary& summary, std::size_t device) {
  const double step_seconds = summary.steps > 0 ? summary.seconds / static_cast<double>(summary.steps) : 0;
  return {.device = device,
          .workload = summary.workload,
          .mode = summary.mode,
          .batch = summary.batch,
          .samples_per_second = summary.samples_per_second(),
          .step_ms_p50 = summary.step_ms_p50,
          .step_ms_p95 = summary.step_ms_p95,
          .largest_batch = summary.largest_batch,
          .flops_per_step = summary.gflops * 1e9 * step_seconds,
          .bytes_per_step = summary.bytes_per_step,
          .bytes_copied_per_step = summary.bytes_copied_per_step,
          .bytes_gathered_per_step = summary.bytes_gathered_per_step,
          .peak_bytes = summary.peak_bytes,
          .joules_per_sample = summary.joules_per_sample()};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::localtime(now));
}

}  // namespace

int run_bench(const Options& options) {
  const std::vector<Workload> chosen = chosen_workloads(options);
  if (!options.memory.snapshot.empty() && (chosen.size() != 1 || options.mode == "both" || options.serve))
    throw UsageError("--memory-snapshot needs one workload, --mode train or infer, and no --serve");
  if (options.serve) {
    if (!options.html.empty())
      throw UsageError("--html draws a table, and --serve makes none; leave one of the two out");
    if (chosen.size() != 1 || options.workloads.empty())
      throw UsageError(fmt::format("--serve needs one workload, got {}", options.workloads.size()));
    if (is_list(options.device)) throw UsageError("--serve needs one device, got --device " + options.device);
    return serve_bench(options, chosen.front());
  }

  train::RunLog log(options.log);
  Progress progress(stream_for_people(options), options.quiet && options.json);
  if (options.quiet) progress.leave_waits_out();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  Throughput throughput{.command = options.command_line, .date = today()};
  const std::size_t width = name_width(chosen);
  const auto report = [&](const Summary& summary) {
    throughput.rows.push_back(throughput_row(summary, throughput.devices.size() - 1));
    list.push_back(to_json(summary));
    log.write(to_line(list.back()));
    progress.say(table_row(summary, width));
  };
  for (const std::string& device : device_names(options)) {
    throughput.devices.push_back({device_of(options, device, progress), {}});
    std::optional<DevicePeak> peak;
    for (const Workload& workload : chosen) {
      for (const bool training : {true, false}) {
        if (is_interrupted()) break;
        if (options.mode == (training ? "infer" : "train")) continue;
        // An engine for each, so that the memory peak is this run's own.
        if (options.limit.memory || options.limit.automatic_batch)
          progress.wait_for(workload.name + ": planning the step in memory");
        const Fitted fitted = fit_bench(options, device, workload, training);
        if (!fitted.text.empty()) progress.say(fitted.text);
        std::optional<std::int64_t> largest;
        if (options.finds_largest_batch || !options.html.empty())
          progress.wait_for(workload.name + ": planning the largest batch"),
              largest = largest_bench_batch(options, device, workload, training);
        const std::unique_ptr<Engine> engine = open_engine(fitted.options, device);
        Summary summary = measure(fitted.options, *engine, workload, training, progress);
        if (!is_interrupted()) {
          if (!peak) {
            throughput.devices.back().peak = peak.emplace(peak_of(options, device, progress));
            progress.say(table_heading(width));
          }
          set_shares(*peak, summary);
          fitted.fill(summary);
          summary.largest_batch = largest;
          report(summary);
        }
        progress.erase();
        print_plan(options, *engine);
      }
    }
  }
  if (!options.html.empty()) {
    io::write_file(options.html, throughput_html(throughput, "samebytes bench"));
    progress.say(options.html + ": a page for any browser");
  }
  if (options.json) print_json(list);
  log.check();
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
