// samebytes sweep: the same training with several batch sizes, a table of what each costs and reaches, and advice.
#include "cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/interrupt.h"
#include "cli/recipe.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kDefaultSamples = 60000;
constexpr double kTestFlops = 4e10;  // of one test; there are some forty for each size
constexpr std::int64_t kLeastTests = 128, kMostTests = 2000;

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

// The size that the workload's own rate was found with, or the nearest one.
std::int64_t reference_of(const std::vector<std::int64_t>& sizes, std::int64_t wanted) {
  return *std::min_element(sizes.begin(), sizes.end(), [&](std::int64_t a, std::int64_t b) {
    const auto far = [&](std::int64_t n) {
      return std::abs(std::log(static_cast<double>(n) / static_cast<double>(wanted)));
    };
    return far(a) < far(b);
  });
}

double target_from(const SweepRow& row, std::int64_t steps) {
  double target = row.curve.empty() ? NAN : row.curve.front().test_loss;
  for (const SweepPoint& point : row.curve)
    if (2 * point.steps <= steps && point.test_loss < target) target = point.test_loss;
  return target;
}

// Where a run that went to its end had reached the target, as the others do while they run.
void find_target(SweepRow& row, double target) {
  for (const SweepPoint& point : row.curve)
    if (!row.target && point.test_loss <= target) row.target = point;
}

optim::BatchRecommendation advise(const Options& options, const Workload& workload, const SweepReport& report,
                                  double noise_scale) {
  std::vector<optim::MeasuredBatch> measured;
  for (const SweepRow& row : report.rows) {
    if (row.samples_per_second() <= 0 || row.trouble == "diverged") continue;
    optim::MeasuredBatch one{
        .batch = row.batch, .samples_per_second = row.samples_per_second(), .peak_bytes = row.peak_bytes};
    if (row.target) {
      one.steps_to_target = row.target->steps;
      one.seconds_to_target = row.target->seconds;
    }
    measured.push_back(one);
  }
  if (measured.empty()) return {};
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  const std::unique_ptr<nn::Module> net = workload.make_model();
  bool has_batch_norm = false;
  for (const auto& one : net->modules()) has_batch_norm |= one.module->kind().starts_with("BatchNorm");
  const std::int64_t base = options.base_batch.value_or(workload.defaults.batch);
  Options unscaled = options;
  unscaled.scale_rate.reset();
  unscaled.base_batch.reset();
  return optim::recommend_batch(
      measured, {.task = workload.name == "gpt" ? optim::BatchTask::language : optim::BatchTask::classification,
                 .has_batch_norm = has_batch_norm,
                 .training_samples = report.training_samples,
                 .base_batch = base,
                 .base_rate = Recipe(unscaled, workload, base, 1, 1).rate(),
                 .rule = scale_rule_of(options),
                 .noise_scale = std::isnan(noise_scale) ? 0 : noise_scale,
                 .memory_limit = engine->memory().limit_bytes});
}

std::string row_text(const SweepRow& row) {
  std::string text = fmt::format("batch {}: {} samples/s, {} steps", row.batch, count_text(row.samples_per_second()),
                                 count_text(static_cast<double>(row.steps)));
  if (row.target)
    text += fmt::format(", target after {} in {}", row.target->steps, duration_text(row.target->seconds));
  else if (!row.trouble.empty())
    text += ", " + row.trouble;
  return text + fmt::format(", lowest test loss {:.4f}", row.test_loss);
}

}  // namespace

int run_sweep(const Options& options) {
  expect_one_device(options, "sweep");
  std::vector<std::int64_t> sizes = options.sweep.batches;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const Workload workload = make_workload(options.workloads.front(), options.form);
  const data::Split split = workload.open(0);
  if (sizes.back() > split.train->size())
    throw UsageError(fmt::format("--batch {} is larger than the training set, which has {} samples", sizes.back(),
                                 split.train->size()));
  if (!options.sweep.plot.empty()) io::AtomicFile probe(options.sweep.plot);  // throws here rather than at the end
  Progress progress(stream_for_people(options), options.quiet);
  SweepPlan plan{.options = options,
                 .workload = workload,
                 .split = split,
                 .test = part_of(split.test, tests_of(workload)),
                 .samples = samples_of(options, workload, split.train->size()),
                 .progress = progress};
  SweepReport report;
  report.workload = workload.name;
  report.precision = options.precision;
  report.seed = options.seed;
  report.training_samples = split.train->size();
  report.test_samples = plan.test->size();
  report.device = device_text(open_engine(options, options.device)->device());
  progress.say(fmt::format("{} in {}: {} training and {} test samples, on {}", workload.name, options.precision,
                           count_text(static_cast<double>(report.training_samples)),
                           count_text(static_cast<double>(report.test_samples)), report.device));

  // The size that the target comes from is the first.
  const std::int64_t reference = reference_of(sizes, workload.defaults.batch);
  std::stable_partition(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size == reference; });
  std::optional<double> target = options.sweep.target_loss;
  report.target_text = "--target-loss";
  for (std::size_t i = 0; i < sizes.size() && !is_interrupted(); ++i) {
    SweepRow row = train_size(plan, sizes[i], target, fmt::format("batch {} ({}/{})", sizes[i], i + 1, sizes.size()));
    if (!target) {
      const std::int64_t steps = steps_of(plan, reference);
      target = target_from(row, steps);
      find_target(row, *target);
      report.target_text = fmt::format("the lowest of batch {} in the first half of its {} steps", reference, steps);
    }
    progress.say(row_text(row));
    report.rows.push_back(std::move(row));
  }
  report.target_loss = target.value_or(NAN);
  const double noise = report.rows.empty() ? NAN : report.rows.front().noise_scale;
  std::sort(report.rows.begin(), report.rows.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
  report.advice = advise(options, workload, report, noise);
  progress.erase();
  fmt::print(stream_for_people(options), "{}{}", options.quiet ? "" : "\n", to_text(report));
  if (!options.sweep.plot.empty()) io::write_file(options.sweep.plot, plot_svg(to_plot(report)));
  if (options.json) fmt::print("{}\n", to_json(report).dump());
  std::fflush(stdout);
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
