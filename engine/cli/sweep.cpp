// samebytes sweep: the same training with several batch sizes (train/sweep.h), a table of what each costs and reaches,
// and advice.
#include "samebytes/train/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

using train::SweepRow;

constexpr std::int64_t kDefaultSamples = 60000;
constexpr double kTestFlops = 4e10;  // of one test; there are some forty for each size
constexpr std::int64_t kLeastTests = 128, kMostTests = 2000;
constexpr std::int64_t kLargestMicroBatch = 16;

// Spread evenly, since sets may be sorted by class.
data::DatasetPtr part_of(const data::DatasetPtr& set, std::int64_t count) {
  if (count >= set->size()) return set;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back(i * set->size() / count);
  return data::subset(set, places);
}

std::int64_t tests_of(const Workload& workload) {
  return std::clamp(static_cast<std::int64_t>(kTestFlops / std::max(1.0, workload.flops.forward())), kLeastTests,
                    kMostTests);
}

std::int64_t samples_of(const Options& options, const Workload& workload, std::int64_t training) {
  if (options.epochs) return *options.epochs * training;
  const Defaults& defaults = workload.defaults;
  if (defaults.steps) return std::min(*defaults.steps * defaults.batch, kDefaultSamples);
  const std::int64_t most = std::max<std::int64_t>(1, kDefaultSamples / std::max<std::int64_t>(1, training));
  return std::min<std::int64_t>(defaults.epochs, most) * training;
}

Options with_batch(const Options& options, std::int64_t batch) {
  Options own = options;
  own.batch = batch;
  if (!own.schedule) own.schedule = "constant";  // so that a longer run does not change its first steps
  if (!own.scale_rate) own.scale_rate = name_of(scale_rule_of(options));
  return own;
}

// What the sizes train: the recipe with the options of one of them.
train::SweepTraining training_of(const Options& asked, const Workload& workload, const data::Split& split,
                                 const data::DatasetPtr& test, const train::SweepSize& size) {
  const auto options = std::make_shared<const Options>(with_batch(asked, size.batch));
  const auto recipe =
      std::make_shared<const Recipe>(make_recipe(*options, workload, size.batch, size.steps, size.epoch_steps));
  train::SweepTraining training{.net = workload.make_model(),
                                .task = task_of(workload),
                                .training = split.train,
                                .validation = test,
                                .loading = loader_options(*options, size.batch),
                                .augment = workload.augment,
                                .prepare = workload.prepare};
  training.validation_batch = workload.defaults.batch;
  training.noise_batch = std::clamp<std::int64_t>(workload.defaults.batch / 4, 1, kLargestMicroBatch);
  training.make_optimizer = [recipe](std::span<const Array> parameters) { return recipe->make_optimizer(parameters); };
  training.rate = recipe->rate();
  training.warmup = recipe->warmup();
  training.precision = precision_options(*options, true);
  training.ema = recipe->ema_options();
  training.plateau = recipe->plateau_options();
  training.plateau_start = recipe->warmup();
  return training;
}

// Of the workload, for the advice.
optim::BatchFacts facts_of(const Options& options, const Workload& workload) {
  Options unscaled = options;
  unscaled.scale_rate.reset();
  unscaled.base_batch.reset();
  const std::int64_t base = options.base_batch.value_or(workload.defaults.batch);
  return {.task = workload.name == "gpt" ? optim::BatchTask::language : optim::BatchTask::classification,
          .base_batch = base,
          .base_rate = make_recipe(unscaled, workload, base, 1, 1).rate(),
          .rule = scale_rule_of(options)};
}

std::string row_text(const SweepRow& row) {
  std::string text = fmt::format("batch {}: {} samples/s, {} steps", row.batch, count_text(row.samples_per_second()),
                                 count_text(static_cast<double>(row.steps)));
  if (row.target)
    text += fmt::format(", target after {} in {}", row.target->steps, duration_text(row.target->seconds));
  else if (!row.trouble.empty())
    text += ", " + row.trouble;
  return text + fmt::format(", lowest test loss {:.4f}", row.validation_loss);
}

}  // namespace

int run_sweep(const Options& options) {
  expect_one_device(options, "sweep");
  const std::int64_t largest = *std::max_element(options.sweep.batches.begin(), options.sweep.batches.end());
  Progress progress(stream_for_people(options), options.quiet);
  progress.wait_for(reading_text(options));
  const Workload workload = make_workload(options.workloads.front(), options.form);
  const data::Split split = workload.open(0);
  expect_within(largest, *split.train, "training set");
  progress.wait_for("opening the device");
  const data::DatasetPtr test = part_of(split.test, tests_of(workload));
  const train::SweepSubject subject{.workload = workload.name,
                                    .device = device_text(open_engine(options, options.device)->device()),
                                    .precision = options.precision,
                                    .seed = options.seed,
                                    .training_samples = split.train->size(),
                                    .test_samples = test->size(),
                                    .target_name = "--target-loss"};
  progress.say(fmt::format("{} in {}: {} training and {} test samples, on {}", workload.name, options.precision,
                           count_text(static_cast<double>(subject.training_samples)),
                           count_text(static_cast<double>(subject.test_samples)), subject.device));
  train::SweepOptions sweep{.batches = options.sweep.batches,
                            .training_samples = subject.training_samples,
                            .samples = samples_of(options, workload, subject.training_samples),
                            .steps = options.steps,
                            .target_loss = options.sweep.target_loss,
                            .reference = workload.defaults.batch,
                            .facts = facts_of(options, workload)};
  sweep.make_engine = [&options] { return open_engine(options, options.device); };
  sweep.should_stop = is_interrupted;
  sweep.on_row = [&progress](const SweepRow& row) { progress.say(row_text(row)); };
  sweep.on_wait = [&progress](const std::string& what) { progress.wait_behind_bar(what); };
  sweep.on_progress = [&progress](const train::SweepProgress& now) {
    if (!progress.is_due()) return;
    progress.draw({.title = fmt::format("batch {} ({}/{})", now.batch, now.size, now.sizes),
                   .done = now.step,
                   .total = now.steps,
                   .samples_per_second = now.samples_per_second,
                   .seconds_left = now.seconds_left,
                   .loss = now.validation_loss});
  };
  progress.wait_for("compiling kernels");
  const train::SweepReport report = train::sweep_batches(
      sweep, [&](Engine&, const train::SweepSize& size) { return training_of(options, workload, split, test, size); });
  progress.erase();
  fmt::print(stream_for_people(options), "{}{}", options.quiet ? "" : "\n", train::sweep_text(report, subject));
  if (!options.sweep.plot.empty()) io::write_file(options.sweep.plot, plot_svg(train::sweep_plot(report, subject)));
  if (options.json) fmt::print("{}\n", train::sweep_json(report, subject));
  std::fflush(stdout);
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
