// samebytes bench: training and inference of the workloads on made-up data, each against the measured peak of the
// device.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/step_log.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/peak.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kDefaultSteps = 100;
constexpr double kDefaultSeconds = 30;    // where --steps was not given, a slow device ends earlier
constexpr std::int64_t kWarmUpSteps = 5;  // kernels are built, caches and the loader's slots are full
constexpr std::int64_t kBatchesOfData = 32;

class Bench {
 public:
  Bench(const Options& options, Engine& engine, const DevicePeak& peak)
      : options_(options), engine_(engine), peak_(peak) {}

  Summary train(const Workload& workload) {
    Summary summary = start(workload, "train");
    const std::unique_ptr<nn::Module> net = workload.make_model();
    optim::AdamW optimizer(net->parameters(), optimizer_options(workload));
    Array last;
    measure(workload, summary, workload.augment, [&](const data::Batch& batch) {
      last = workload.loss(workload.forward(*net, batch), batch);
      optimizer.step(last);
    });
    if (last) summary.train_loss = last.value();
    finish(summary, workload.flops.training());
    return summary;
  }

  Summary infer(const Workload& workload) {
    Summary summary = start(workload, "infer");
    const NoGrad no_grad;
    const std::unique_ptr<nn::Module> net = workload.make_model();
    net->eval();
    measure(workload, summary, {}, [&](const data::Batch& batch) { workload.forward(*net, batch).eval(); });
    finish(summary, workload.flops.forward());
    return summary;
  }

 private:
  Summary start(const Workload& workload, const char* mode) {
    Summary summary;
    describe(engine_, workload, options_.batch.value_or(workload.defaults.batch), summary);
    summary.mode = mode;
    return summary;
  }

  template <class Step>
  void measure(const Workload& workload, Summary& summary, const std::vector<data::TransformPtr>& transforms,
               const Step& step) {
    data::LoaderOptions loading = loader_options(options_, summary.batch);
    loading.transforms = transforms;
    loading.transforms.insert(loading.transforms.end(), workload.prepare.begin(), workload.prepare.end());
    data::Loader batches(engine_, workload.make_samples(summary.batch * kBatchesOfData), loading);
    RunMeter meter(engine_);
    const auto loop = [&](std::int64_t steps, double seconds) {
      const std::int64_t until = meter.steps() + steps;
      while (meter.steps() < until && meter.seconds() < seconds && !is_interrupted()) {
        batches.reset_stats();
        meter.begin();
        for (const data::Batch& batch : batches) {
          step(batch);
          meter.step(batch.samples());
          if (meter.steps() >= until || meter.seconds() >= seconds || is_interrupted()) break;
        }
        meter.end(batches.stats().loop_wait_seconds);
      }
    };
    loop(kWarmUpSteps, kDefaultSeconds);
    meter.restart();
    loop(options_.steps.value_or(kDefaultSteps), options_.steps ? 1e9 : kDefaultSeconds);
    meter.fill(summary);
  }

  void finish(Summary& summary, double flops_per_sample) const {
    summary.gflops = flops_per_sample * summary.samples_per_second() * 1e-9;
    summary.fraction_of_peak = peak_.gflops > 0 ? summary.gflops / peak_.gflops : 0;
  }

  const Options& options_;
  Engine& engine_;
  DevicePeak peak_;
};

std::vector<std::string> device_wishes(const Options& options) {
  if (options.device != "all") return {options.device};
  std::vector<std::string> ids;
  for (const DeviceInfo& info : list_devices())
    if (info.refused.empty()) ids.push_back(info.id);
  if (ids.empty()) ids.push_back("");  // the engine says why there is none
  return ids;
}

std::string heading() {
  return fmt::format("{:<9} {:<6} {:>6} {:>12} {:>9} {:>9} {:>9} {:>8} {:>9} {:>11} {:>10} {:>7}", "workload", "mode",
                     "batch", "samples/s", "ms p50", "ms p95", "GFLOP/s", "of peak", "launches", "copied/step",
                     "memory", "stalled");
}

std::string row(const Summary& summary) {
  return fmt::format("{:<9} {:<6} {:>6} {:>12} {:>9.2f} {:>9.2f} {:>9.1f} {:>6.1f} % {:>9} {:>11} {:>10} {:>5.1f} %",
                     summary.workload, summary.mode, summary.batch, count_text(summary.samples_per_second()),
                     summary.step_ms_p50, summary.step_ms_p95, summary.gflops, 100 * summary.fraction_of_peak,
                     count_text(summary.launches_per_step), count_text(summary.bytes_copied_per_step),
                     bytes_text(summary.peak_bytes), 100 * summary.stall_fraction);
}

DevicePeak peak_of(const Options& options, const std::string& wish, Progress& progress) {
  const std::unique_ptr<Engine> engine = open_engine(options, wish);
  const DeviceInfo& info = engine->device();
  const DevicePeak peak = measure_peak();
  progress.say(fmt::format("{}, memory mode {}, {} kernels: {:.0f} GFLOP/s of multiply-adds, {:.1f} GB/s of c = a + b",
                           device_text(info), name_of(info.memory_mode), name_of(info.personality), peak.gflops,
                           peak.gigabytes_per_second));
  progress.say(heading());
  return peak;
}

}  // namespace

int run_bench(const Options& options) {
  std::vector<Workload> chosen;
  for (const std::string& name : options.workloads) chosen.push_back(make_workload(name, options.form));
  if (chosen.empty())
    for (const WorkloadEntry& entry : workloads()) chosen.push_back(make_workload(entry.name, options.form));

  StepLog log(options.log);
  Progress progress(stream_for_people(options), options.quiet && options.json);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto report = [&](const Summary& summary) {
    if (is_interrupted()) return;
    list.push_back(to_json(summary));
    log.write(list.back());
    progress.say(row(summary));
  };
  for (const std::string& wish : device_wishes(options)) {
    const DevicePeak peak = peak_of(options, wish, progress);
    for (const Workload& workload : chosen) {
      for (const bool training : {true, false}) {
        if (is_interrupted()) break;
        // An engine for each, so that the memory peak is this run's own.
        const std::unique_ptr<Engine> engine = open_engine(options, wish);
        Bench bench(options, *engine, peak);
        report(training ? bench.train(workload) : bench.infer(workload));
      }
    }
  }
  if (options.json) fmt::print("{}\n", list.dump());
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
