// samebytes bench --serve: one workload as a worker that is told what to run, in the protocol of benchmarks/peers/
// worker.py, so that benchmarks/compare.py can alternate between it and other frameworks. A line of JSON when it is
// ready, and one for each line that it reads:
//
// - train or infer: makes what the mode needs, runs the first step and warms up; the loss of the first and last step.
// - run SECONDS: steps of that mode for so long, one at least; the loss is that of the last one. steps N: so many.
// - memory: the largest resident size since `train` or `infer`, in all and beyond that before.
// - quit, or the end of the input: ends it.
#include "cli/bench_serve.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "cli/bench_run.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/usage_error.h"
#include "samebytes/engine.h"

namespace samebytes::cli {
namespace {

// The same as the peers'.
constexpr std::int64_t kWarmSteps = 4;
constexpr double kWarmSeconds = 0.5, kLongestWarmSeconds = 6;

void say(const Json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

class Worker {
 public:
  Worker(const Options& options, const Workload& workload) : options_(options), workload_(workload) {
    open();
    const DeviceInfo& info = engine_->device();
    say({{"ready", true},
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
      say(worker.obey(command, words));
    }
  } catch (const std::exception& error) {
    say({{"error", error.what()}});
    return kFailed;
  }
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
