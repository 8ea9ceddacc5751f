// samebytes sweep: the same training with several batch sizes (train/sweep.h), a table of what each costs and reaches,
// and advice.
#include "samebytes/train/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/recipe.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

using train::SweepPoint;
using train::SweepReport;
using train::SweepRow;

constexpr std::int64_t kDefaultSamples = 60000;
constexpr double kTestFlops = 4e10;  // of one test; there are some forty for each size
constexpr std::int64_t kLeastTests = 128, kMostTests = 2000;
constexpr std::int64_t kLargestMicroBatch = 16;

// What the report is of.
struct Swept {
  std::string workload, device, precision;
  std::uint64_t seed = 0;
  std::int64_t training_samples = 0, test_samples = 0;
  SweepReport result;

  std::string target_text() const {  // where it comes from
    if (!result.target_steps) return "--target-loss";
    return fmt::format("the lowest of batch {} in the first half of its {} steps", result.reference,
                       *result.target_steps);
  }
};

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
  if (!own.scale_rate) own.scale_rate = scale_rule_of(options) == optim::ScaleRule::linear ? "linear" : "sqrt";
  return own;
}

// What the sizes train: the recipe with the options of one of them.
train::SweepTraining training_of(const Options& asked, const Workload& workload, const data::Split& split,
                                 const data::DatasetPtr& test, const train::SweepSize& size) {
  const auto options = std::make_shared<const Options>(with_batch(asked, size.batch));
  const auto recipe = std::make_shared<const Recipe>(*options, workload, size.batch, size.steps, size.epoch_steps);
  train::SweepTraining training{.net = workload.make_model(),
                                .task = task_of(workload),
                                .training = split.train,
                                .validation = test,
                                .loading = loader_options(*options, size.batch),
                                .augment = workload.augment,
                                .prepare = workload.prepare};
  training.validation_batch = workload.defaults.batch;
  training.noise_batch = std::clamp<std::int64_t>(workload.defaults.batch / 4, 1, kLargestMicroBatch);
  training.make_optimizer = [options, recipe](std::span<const Array> parameters) {
    return recipe->make_optimizer(parameters);
  };
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
          .base_rate = Recipe(unscaled, workload, base, 1, 1).rate(),
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

std::string noise_text(double noise) {
  return std::isnan(noise) ? "" : std::isfinite(noise) ? count_text(std::round(noise)) : "beyond";
}

std::string swept_text(const Swept& report) {
  std::string text = fmt::format("{:>7} {:<6} {:>10} {:>9} {:>9} {:>10} {:>11} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
                                 "batch", "class", "samples/s", "ms p50", "ms p95", "memory", "activations", "noise",
                                 "steps", "samples", "seconds", "rate", "test loss");
  for (const SweepRow& row : report.result.rows) {
    const auto reached = [&](const std::string& value, const std::string& most) {
      return row.target ? value : row.trouble.empty() ? "> " + most : std::string("-");
    };
    const SweepPoint at = row.target.value_or(SweepPoint{});
    text += fmt::format(
        "{:>7} {:<6} {:>10} {:>9.2f} {:>9.2f} {:>10} {:>11} {:>8} {:>8} {:>9} {:>9} {:>9.3g} {:>9.4f}\n", row.batch,
        optim::name_of(optim::class_of_batch(row.batch, report.training_samples)), count_text(row.samples_per_second()),
        row.step_ms_p50, row.step_ms_p95, bytes_text(row.peak_bytes), bytes_text(row.activation_bytes),
        noise_text(row.noise_scale), reached(std::to_string(at.steps), std::to_string(row.steps)),
        reached(std::to_string(at.steps * row.batch), std::to_string(row.samples)),
        reached(fmt::format("{:.2f}", at.seconds), fmt::format("{:.2f}", row.seconds)), row.rate, row.validation_loss);
  }
  for (const SweepRow& row : report.result.rows)
    if (row.skipped_steps && *row.skipped_steps > 0)
      text += fmt::format("batch {}: {} steps were skipped, their gradients overflowed f16\n", row.batch,
                          *row.skipped_steps);
  for (const SweepRow& row : report.result.rows)
    if (!row.trouble.empty()) text += fmt::format("batch {}: {}\n", row.batch, row.trouble);
  text += fmt::format(
      "steps, samples and seconds are those to a test loss of {:.4g} on {} samples: {}\n"
      "noise is the gradient noise scale, in samples; rate is the highest one; computed in {}\n",
      report.result.target_loss, report.test_samples, report.target_text(), report.precision);
  if (report.result.advice.batch == 0) return text;
  text += fmt::format("\nrecommended: {}, because {}\n", report.result.advice.batch, report.result.advice.reason);
  for (const optim::BatchAdvice& advice : report.result.advice.advice)
    text += fmt::format("  {} {:<16} {}\n", advice.holds ? "ok  " : "mind", advice.rule, advice.text);
  return text;
}

Json to_json(const Swept& report) {
  Json rows = Json::array();
  for (const SweepRow& row : report.result.rows) {
    Json curve = Json::array();
    for (const SweepPoint& point : row.curve)
      curve.push_back(
          {{"steps", point.steps}, {"seconds", point.seconds}, {"test_loss", finite_or_null(point.validation_loss)}});
    rows.push_back({{"batch", row.batch},
                    {"class", optim::name_of(optim::class_of_batch(row.batch, report.training_samples))},
                    {"samples_per_second", row.samples_per_second()},
                    {"step_ms_p50", row.step_ms_p50},
                    {"step_ms_p95", row.step_ms_p95},
                    {"peak_bytes", row.peak_bytes},
                    {"activation_bytes", row.activation_bytes},
                    {"noise_scale", finite_or_null(row.noise_scale)},
                    {"gradient_square", finite_or_null(row.gradient_square)},
                    {"covariance_trace", finite_or_null(row.covariance_trace)},
                    {"rate", row.rate},
                    {"warmup", row.warmup},
                    {"steps", row.steps},
                    {"samples", row.samples},
                    {"seconds", row.seconds},
                    {"test_loss", finite_or_null(row.validation_loss)},
                    {"steps_to_target", row.target ? Json(row.target->steps) : Json()},
                    {"samples_to_target", row.target ? Json(row.target->steps * row.batch) : Json()},
                    {"seconds_to_target", row.target ? Json(row.target->seconds) : Json()},
                    {"skipped_steps", row.skipped_steps ? Json(*row.skipped_steps) : Json()},
                    {"trouble", row.trouble.empty() ? Json() : Json(row.trouble)},
                    {"curve", curve}});
  }
  Json advice = Json::array();
  for (const optim::BatchAdvice& one : report.result.advice.advice)
    advice.push_back({{"rule", one.rule}, {"text", one.text}, {"holds", one.holds}});
  return {{"workload", report.workload},
          {"device", report.device},
          {"precision", report.precision},
          {"seed", report.seed},
          {"target_loss", finite_or_null(report.result.target_loss)},
          {"target", report.target_text()},
          {"training_samples", report.training_samples},
          {"test_samples", report.test_samples},
          {"rows", rows},
          {"recommended_batch", report.result.advice.batch > 0 ? Json(report.result.advice.batch) : Json()},
          {"reason", report.result.advice.reason},
          {"advice", advice}};
}

Plot to_plot(const Swept& report) {
  PlotSeries speed{"samples/s"}, steps{"steps"}, seconds{"seconds"}, noise{"noise scale"}, peak{"peak"},
      activations{"activations"};
  constexpr double kMega = 1e-6;
  for (const SweepRow& row : report.result.rows) {
    const auto batch = static_cast<double>(row.batch);
    if (row.step_ms_p50 > 0) speed.points.emplace_back(batch, row.samples_per_second());
    if (row.target) {
      steps.points.emplace_back(batch, static_cast<double>(row.target->steps));
      seconds.points.emplace_back(batch, row.target->seconds);
    }
    noise.points.emplace_back(batch, row.noise_scale);
    if (row.peak_bytes == 0) continue;
    peak.points.emplace_back(batch, kMega * static_cast<double>(row.peak_bytes));
    activations.points.emplace_back(batch, kMega * static_cast<double>(row.activation_bytes));
  }
  const std::string to = fmt::format("to a test loss of {:.4g}", report.result.target_loss);
  return {.title = fmt::format("samebytes sweep {}{}", report.workload,
                               report.precision == "f32" ? "" : " --precision " + report.precision),
          .x_label = "batch",
          .is_log = true,
          .panels = {{.y_label = "samples a second, by the median step", .series = {speed}},
                     {.y_label = "steps " + to, .series = {steps}, .is_log = true},
                     {.y_label = "seconds " + to, .series = {seconds}},
                     {.y_label = "gradient noise scale, samples", .series = {noise}, .is_log = true},
                     {.y_label = "memory, MB", .series = {peak, activations}, .is_log = true}}};
}

}  // namespace

int run_sweep(const Options& options) {
  expect_one_device(options, "sweep");
  const std::int64_t largest = *std::max_element(options.sweep.batches.begin(), options.sweep.batches.end());
  Progress progress(stream_for_people(options), options.quiet);
  progress.wait_for(reading_text(options));
  const Workload workload = make_workload(options.workloads.front(), options.form);
  const data::Split split = workload.open(0);
  if (largest > split.train->size())
    throw UsageError(
        fmt::format("--batch {} is larger than the training set, which has {} samples", largest, split.train->size()));
  progress.wait_for("opening the device");
  const data::DatasetPtr test = part_of(split.test, tests_of(workload));
  Swept report{.workload = workload.name,
               .device = device_text(open_engine(options, options.device)->device()),
               .precision = options.precision,
               .seed = options.seed,
               .training_samples = split.train->size(),
               .test_samples = test->size(),
               .result = {}};
  progress.say(fmt::format("{} in {}: {} training and {} test samples, on {}", workload.name, options.precision,
                           count_text(static_cast<double>(report.training_samples)),
                           count_text(static_cast<double>(report.test_samples)), report.device));
  train::SweepOptions sweep{.batches = options.sweep.batches,
                            .training_samples = report.training_samples,
                            .samples = samples_of(options, workload, report.training_samples),
                            .steps = options.steps,
                            .target_loss = options.sweep.target_loss,
                            .reference = workload.defaults.batch,
                            .facts = facts_of(options, workload)};
  sweep.make_engine = [&options] { return open_engine(options, options.device); };
  sweep.should_stop = is_interrupted;
  sweep.on_row = [&progress](const SweepRow& row) { progress.say(row_text(row)); };
  sweep.on_progress = [&progress](const train::SweepProgress& now) {
    if (!progress.is_due()) return;
    progress.draw({.title = fmt::format("batch {} ({}/{})", now.batch, now.size, now.sizes),
                   .done = now.step,
                   .total = now.steps,
                   .samples = now.samples,
                   .seconds = now.seconds,
                   .loss = now.validation_loss});
  };
  progress.wait_for("compiling kernels");
  report.result = train::sweep_batches(
      sweep, [&](Engine&, const train::SweepSize& size) { return training_of(options, workload, split, test, size); });
  progress.erase();
  fmt::print(stream_for_people(options), "{}{}", options.quiet ? "" : "\n", swept_text(report));
  if (!options.sweep.plot.empty()) io::write_file(options.sweep.plot, plot_svg(to_plot(report)));
  if (options.json) fmt::print("{}\n", to_json(report).dump());
  std::fflush(stdout);
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
