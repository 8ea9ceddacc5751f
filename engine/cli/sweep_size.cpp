// One size of a sweep: the steps that are timed, and between them tests and measurements of the noise scale.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/interrupt.h"
#include "cli/recipe.h"
#include "cli/session.h"
#include "cli/sweep.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kTests = 40;            // of a size that runs to its end
constexpr std::int64_t kLeastTimedSteps = 20;  // for a median
constexpr std::int64_t kStepsOfPeak = 3;       // memory has its peak by then
constexpr std::int64_t kFirstProbes = 4, kTestsOfAProbe = 4;
constexpr std::int64_t kMicroBatches = 8, kLargestMicroBatch = 16;
constexpr double kNoiseDecay = 0.95;

std::size_t bytes_of(const Array& array) {
  return static_cast<std::size_t>(array.size()) * samebytes::bytes_of(array.dtype());
}

Options with_batch(const Options& options, std::int64_t batch) {
  Options own = options;
  own.batch = batch;
  if (!own.schedule) own.schedule = "constant";  // so that a longer run does not change its first steps
  if (!own.scale_rate) own.scale_rate = scale_rule_of(options) == optim::ScaleRule::linear ? "linear" : "sqrt";
  return own;
}

// The noise scale at the parameters as they are, from samples of its own; trains nothing.
class NoiseProbe {
 public:
  NoiseProbe(Engine& engine, const Options& options, const Workload& workload, const data::DatasetPtr& set,
             nn::Module& net, train::Precision& precision, optim::Optimizer& optimizer,
             const std::vector<data::TransformPtr>& transforms)
      : workload_(workload), net_(net), precision_(precision), sums_(optimizer), meter_(sums_, {.decay = kNoiseDecay}) {
    data::LoaderOptions loading = loader_options(
        options, std::clamp<std::int64_t>(std::min(workload.defaults.batch / 4, set->size() / kMicroBatches), 1,
                                          kLargestMicroBatch));
    loading.shuffle = true;
    loading.drop_last = true;
    loading.seed = options.seed + 1;
    loading.transforms = transforms;
    batches_ = std::make_unique<data::Loader>(engine, set, loading);
  }
  void measure() {
    for (std::int64_t i = 0; i < kMicroBatches; ++i) {
      if (!next_ || *next_ == batches_->end()) next_.emplace(batches_->begin());
      const data::Batch& batch = **next_;
      const std::unique_ptr<Autocast> scope = precision_.scope();
      const Array loss = workload_.loss(workload_.forward(net_, batch), batch);
      sums_.add(precision_.scaled(loss), static_cast<double>(batch.samples()));
      ++*next_;
    }
    meter_.measure(precision_.scaler());
    sums_.reset();
  }
  void fill(SweepRow& row) {
    const optim::GradientNoiseScale& scale = meter_.read();
    row.noise_scale = scale.noise_scale();
    row.gradient_square = scale.gradient_square();
    row.covariance_trace = scale.covariance_trace();
  }

 private:
  const Workload& workload_;
  nn::Module& net_;
  train::Precision& precision_;
  optim::Accumulator sums_;
  optim::NoiseScaleMeter meter_;
  std::unique_ptr<data::Loader> batches_;
  std::optional<data::Loader::Iterator> next_;
};

class SizeRun {
 public:
  SizeRun(const SweepPlan& plan, std::int64_t batch, std::optional<double> target, std::string title);
  void run(SweepRow& row);

 private:
  void note_memory(SweepRow& row, const data::Batch& batch);
  bool test(SweepRow& row);  // false where it is time to end
  void step(const data::Batch& batch);

  const SweepPlan& plan_;
  const Workload& workload_;
  const std::optional<double> target_;
  const std::string title_;
  const std::int64_t steps_, every_;
  const Options options_;
  train::Precision precision_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<nn::Module> net_;
  std::unique_ptr<data::Loader> training_, test_;
  std::optional<Recipe> recipe_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> ema_;  // where averages are asked for
  std::unique_ptr<NoiseProbe> probe_;
  std::unique_ptr<train::RunMeter> meter_;
  std::vector<data::TransformPtr> transforms_;
};

SizeRun::SizeRun(const SweepPlan& plan, std::int64_t batch, std::optional<double> target, std::string title)
    : plan_(plan),
      workload_(plan.workload),
      target_(target),
      title_(std::move(title)),
      steps_(steps_of(plan, batch)),
      every_(std::max(kStepsOfPeak, (steps_ + kTests - 1) / kTests)),
      options_(with_batch(plan.options, batch)),
      precision_(precision_options(options_, true)),
      engine_(open_engine(options_, options_.device)),
      net_(workload_.make_model()),
      transforms_(workload_.augment) {
  precision_.prepare(*net_);
  transforms_.insert(transforms_.end(), workload_.prepare.begin(), workload_.prepare.end());
  data::LoaderOptions loading = loader_options(options_, batch);
  loading.shuffle = true;
  loading.transforms = transforms_;
  training_ = std::make_unique<data::Loader>(*engine_, plan.split.train, loading);
  data::LoaderOptions testing = loader_options(options_, std::min(workload_.defaults.batch, plan.test->size()));
  testing.transforms = workload_.prepare;
  test_ = std::make_unique<data::Loader>(*engine_, plan.test, testing);
  recipe_.emplace(options_, workload_, batch, steps_, training_->size());
  optimizer_ = recipe_->make_optimizer(net_->parameters());
  ema_ = recipe_->make_ema(*optimizer_);
  meter_ = std::make_unique<train::RunMeter>(*engine_);
}

// Before anything but training steps has run. Of the rest, gradients count whole; where the planner let them share
// bytes with activations, those are said to be so much less.
void SizeRun::note_memory(SweepRow& row, const data::Batch& batch) {
  engine_->wait();
  row.peak_bytes = engine_->memory().peak_bytes;
  std::size_t kept = 0, batch_bytes = 0;
  for (const optim::ParameterArena& arena : optimizer_->arenas()) kept += 2 * bytes_of(arena.values());
  for (const auto& entry : optimizer_->state()) kept += bytes_of(entry.array);
  for (const auto& entry : net_->named_buffers()) kept += bytes_of(entry.array);
  for (std::size_t i = 0; i < batch.field_count(); ++i) batch_bytes += bytes_of(batch[i]);
  kept += batch_bytes * static_cast<std::size_t>(training_->stats().slots);
  row.activation_bytes = row.peak_bytes - std::min(kept, row.peak_bytes);
}

bool SizeRun::test(SweepRow& row) {
  meter_->end(0);
  std::optional<optim::EmaScope> averages;
  if (ema_) averages.emplace(*ema_);
  std::unique_ptr<Autocast> scope = precision_.scope();
  const std::optional<train::Evaluation> result =
      train::evaluate(task_of(workload_), *net_, *test_, {.should_stop = is_interrupted});
  scope.reset();
  averages.reset();
  if (!result) return false;
  recipe_->tested(*optimizer_, result->loss);
  const SweepPoint point{meter_->steps(), meter_->seconds(), result->loss};
  row.curve.push_back(point);
  if (!std::isfinite(result->loss)) {
    row.trouble = "diverged";
    return false;
  }
  row.test_loss = std::isnan(row.test_loss) ? result->loss : std::min(row.test_loss, result->loss);
  if (target_ && !row.target && result->loss <= *target_) row.target = point;
  const auto tests = static_cast<std::int64_t>(row.curve.size());
  if (tests <= kFirstProbes || tests % kTestsOfAProbe == 0) probe_->measure();
  engine_->wait();
  meter_->begin();
  return !row.target || meter_->steps() < std::min(kLeastTimedSteps, steps_);
}

void SizeRun::step(const data::Batch& batch) {
  {
    const std::unique_ptr<Autocast> scope = precision_.scope();
    precision_.step(*optimizer_, workload_.loss(workload_.forward(*net_, batch), batch));
  }
  if (ema_) ema_->update();
  meter_->step(batch.samples());
}

void SizeRun::run(SweepRow& row) {
  row.rate = recipe_->rate();
  row.warmup = recipe_->warmup();
  bool goes_on = true;
  meter_->begin();
  while (goes_on) {
    for (const data::Batch& batch : *training_) {
      step(batch);
      const std::int64_t done = meter_->steps();
      if (done == std::min(kStepsOfPeak, steps_)) {
        note_memory(row, batch);
        probe_ = std::make_unique<NoiseProbe>(*engine_, options_, workload_, plan_.split.train, *net_, precision_,
                                              *optimizer_, transforms_);
      }
      if (done % every_ == 0 || done == steps_) goes_on = test(row);
      if (done >= steps_ || is_interrupted()) goes_on = false;
      if (!goes_on) break;
      if (plan_.progress.is_due())
        plan_.progress.draw({.title = title_,
                             .done = done,
                             .total = steps_,
                             .samples = meter_->samples(),
                             .seconds = meter_->seconds(),
                             .loss = row.curve.empty() ? NAN : row.curve.back().test_loss});
    }
  }
  engine_->wait();
  if (probe_) probe_->fill(row);
  const train::RunFigures figures = meter_->figures();
  if (precision_.scaler() != nullptr) row.skipped_steps = optimizer_->skipped_steps();
  row.steps = figures.steps;
  row.samples = figures.samples;
  row.seconds = figures.seconds;
  row.step_ms_p50 = figures.step_ms_p50;
  row.step_ms_p95 = figures.step_ms_p95;
}

}  // namespace

std::int64_t steps_of(const SweepPlan& plan, std::int64_t batch) {
  return plan.options.steps.value_or(std::max(kLeastTimedSteps, (plan.samples + batch - 1) / batch));
}

SweepRow train_size(const SweepPlan& plan, std::int64_t batch, std::optional<double> target, const std::string& title) {
  SweepRow row;
  row.batch = batch;
  try {
    SizeRun(plan, batch, target, title).run(row);
  } catch (const OutOfMemory& error) {
    row.trouble = std::string("out of memory: ") + error.what();
  } catch (const BuildError&) {
    throw;
  } catch (const ArgumentError& error) {  // a batch norm that has one value
    row.trouble = error.what();
  }
  return row;
}

}  // namespace samebytes::cli
