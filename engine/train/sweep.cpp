#include "samebytes/train/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/nn/module.h"
#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/adam.h"
#include "samebytes/optim/noise_scale.h"
#include "samebytes/train/run_meter.h"

namespace samebytes::train {
namespace {

constexpr std::int64_t kValidations = 40;      // of a size that runs to its end
constexpr std::int64_t kLeastTimedSteps = 20;  // for a median
constexpr std::int64_t kStepsOfPeak = 3;       // memory has its peak by then
constexpr std::int64_t kFirstProbes = 4, kValidationsOfAProbe = 4;
constexpr std::int64_t kMicroBatches = 8;
constexpr double kNoiseDecay = 0.95;

std::size_t bytes_of(const Array& array) {
  return static_cast<std::size_t>(array.size()) * samebytes::bytes_of(array.dtype());
}

data::LoaderOptions training_loader(const SweepTraining& training, std::int64_t batch) {
  data::LoaderOptions loading = training.loading;
  loading.batch = batch;
  loading.shuffle = true;
  loading.transforms = training.augment;
  loading.transforms.insert(loading.transforms.end(), training.prepare.begin(), training.prepare.end());
  return loading;
}

data::LoaderOptions validation_loader(const SweepTraining& training) {
  data::LoaderOptions loading = training.loading;
  loading.batch = std::min(training.validation_batch, training.validation->size());
  loading.transforms = training.prepare;
  return loading;
}

// The noise scale at the parameters as they are, from samples of its own; trains nothing.
class NoiseProbe {
 public:
  NoiseProbe(Engine& engine, const SweepTraining& training, Precision& precision, optim::Optimizer& optimizer)
      : training_(training), precision_(precision), sums_(optimizer), meter_(sums_, {.decay = kNoiseDecay}) {
    data::LoaderOptions loading = training_loader(
        training, std::clamp<std::int64_t>(training.training->size() / kMicroBatches, 1, training.noise_batch));
    loading.drop_last = true;
    loading.seed += 1;
    batches_ = std::make_unique<data::Loader>(engine, training.training, loading);
  }
  void measure() {
    for (std::int64_t i = 0; i < kMicroBatches; ++i) {
      if (!next_ || *next_ == batches_->end()) next_.emplace(batches_->begin());
      const data::Batch& batch = **next_;
      const std::unique_ptr<Autocast> scope = precision_.scope();
      const Array loss = training_.task.loss_of(*training_.net, batch);
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
  const SweepTraining& training_;
  Precision& precision_;
  optim::Accumulator sums_;
  optim::NoiseScaleMeter meter_;
  std::unique_ptr<data::Loader> batches_;
  std::optional<data::Loader::Iterator> next_;
};

// One size: the steps that are timed, and between them validations and measurements of the noise scale.
class SizeRun {
 public:
  SizeRun(const SweepOptions& options, Engine& engine, const SweepSize& size, SweepTraining training);
  void run(SweepRow& row, std::optional<double> target, SweepProgress progress);

 private:
  void note_memory(SweepRow& row, const data::Batch& batch);
  bool validate(SweepRow& row, std::optional<double> target);  // false where it is time to end
  void step(const data::Batch& batch);
  bool stops() const { return options_.should_stop && options_.should_stop(); }
  void wait_for(const char* what) const {
    if (options_.on_wait) options_.on_wait(*what ? fmt::format("batch {}: {}", size_.batch, what) : "");
  }

  const SweepOptions& options_;
  Engine& engine_;
  const SweepSize size_;
  SweepTraining training_;
  Precision precision_;
  std::unique_ptr<data::Loader> batches_, validation_;
  OptimizerPtr optimizer_;
  std::unique_ptr<optim::Ema> ema_;
  std::optional<optim::Plateau> plateau_;
  std::unique_ptr<NoiseProbe> probe_;
  RunMeter meter_;
};

SizeRun::SizeRun(const SweepOptions& options, Engine& engine, const SweepSize& size, SweepTraining training)
    : options_(options),
      engine_(engine),
      size_(size),
      training_(std::move(training)),
      precision_(training_.precision),
      meter_(engine) {
  if (!training_.net || !training_.training || !training_.validation)
    throw ArgumentError("sweep_batches: expected a net, a training set and a validation set, got none of one of them");
  precision_.prepare(*training_.net);
  batches_ = std::make_unique<data::Loader>(engine, training_.training, training_loader(training_, size.batch));
  validation_ = std::make_unique<data::Loader>(engine, training_.validation, validation_loader(training_));
  const auto parameters = training_.net->parameters();
  optimizer_ =
      training_.make_optimizer ? training_.make_optimizer(parameters) : std::make_unique<optim::AdamW>(parameters);
  if (training_.ema) ema_ = std::make_unique<optim::Ema>(*optimizer_, *training_.ema);
  if (training_.plateau) plateau_.emplace(*training_.plateau);
}

// Before anything but training steps has run. Of the rest, gradients count whole; where the planner let them share
// bytes with activations, those are said to be so much less.
void SizeRun::note_memory(SweepRow& row, const data::Batch& batch) {
  engine_.wait();
  row.peak_bytes = engine_.memory().peak_bytes;
  std::size_t kept = 0, batch_bytes = 0;
  for (const optim::ParameterArena& arena : optimizer_->arenas()) kept += 2 * bytes_of(arena.values());
  for (const auto& entry : optimizer_->state()) kept += bytes_of(entry.array);
  for (const auto& entry : training_.net->named_buffers()) kept += bytes_of(entry.array);
  for (std::size_t i = 0; i < batch.field_count(); ++i) batch_bytes += bytes_of(batch[i]);
  kept += batch_bytes * static_cast<std::size_t>(batches_->stats().slots);
  row.activation_bytes = row.peak_bytes - std::min(kept, row.peak_bytes);
}

bool SizeRun::validate(SweepRow& row, std::optional<double> target) {
  meter_.end(0);
  wait_for("testing");
  std::optional<optim::EmaScope> averages;
  if (ema_) averages.emplace(*ema_);
  std::unique_ptr<Autocast> scope = precision_.scope();
  const std::optional<Evaluation> result =
      evaluate(training_.task, *training_.net, *validation_, {.should_stop = options_.should_stop});
  scope.reset();
  averages.reset();
  if (!result) return false;
  if (plateau_ && optimizer_->step_count() >= training_.plateau_start && plateau_->step(result->loss))
    optimizer_->set_rate(plateau_->rate());
  const SweepPoint point{meter_.steps(), meter_.seconds(), result->loss};
  row.curve.push_back(point);
  if (!std::isfinite(result->loss)) {
    row.trouble = "diverged";
    return false;
  }
  row.validation_loss = std::isnan(row.validation_loss) ? result->loss : std::min(row.validation_loss, result->loss);
  if (target && !row.target && result->loss <= *target) row.target = point;
  const auto validations = static_cast<std::int64_t>(row.curve.size());
  if (validations <= kFirstProbes || validations % kValidationsOfAProbe == 0) {
    wait_for("measuring the noise of the gradient");
    probe_->measure();
  }
  engine_.wait();
  wait_for("");
  meter_.begin();
  return !row.target || meter_.steps() < std::min(kLeastTimedSteps, size_.steps);
}

void SizeRun::step(const data::Batch& batch) {
  {
    const std::unique_ptr<Autocast> scope = precision_.scope();
    precision_.step(*optimizer_, training_.task.loss_of(*training_.net, batch));
  }
  if (ema_) ema_->update();
  meter_.step(batch.samples());
}

void SizeRun::run(SweepRow& row, std::optional<double> target, SweepProgress progress) {
  row.rate = training_.rate;
  row.warmup = training_.warmup;
  const std::int64_t steps = size_.steps, every = std::max(kStepsOfPeak, (steps + kValidations - 1) / kValidations);
  bool goes_on = true;
  wait_for("compiling kernels");
  meter_.begin();
  while (goes_on) {
    for (const data::Batch& batch : *batches_) {
      step(batch);
      const std::int64_t done = meter_.steps();
      if (done == std::min(kStepsOfPeak, steps)) {
        note_memory(row, batch);
        probe_ = std::make_unique<NoiseProbe>(engine_, training_, precision_, *optimizer_);
      }
      if (done % every == 0 || done == steps) goes_on = validate(row, target);
      if (done >= steps || stops()) goes_on = false;
      if (!goes_on) break;
      if (!options_.on_progress) continue;
      progress.step = done;
      progress.samples = meter_.samples();
      progress.seconds = meter_.seconds();
      progress.samples_per_second = meter_.samples_per_second();
      if (const double each = meter_.seconds_per_step(); each > 0)
        progress.seconds_left = each * static_cast<double>(steps - done);
      if (!row.curve.empty()) progress.validation_loss = row.curve.back().validation_loss;
      options_.on_progress(progress);
    }
  }
  engine_.wait();
  if (probe_) probe_->fill(row);
  const RunFigures figures = meter_.figures();
  if (precision_.scaler() != nullptr) row.skipped_steps = optimizer_->skipped_steps();
  row.steps = figures.steps;
  row.samples = figures.samples;
  row.seconds = figures.seconds;
  row.step_ms_p50 = figures.step_ms_p50;
  row.step_ms_p95 = figures.step_ms_p95;
}

// The size nearest to the wanted one, in the logarithm.
std::int64_t nearest(const std::vector<std::int64_t>& sizes, std::int64_t wanted) {
  return *std::min_element(sizes.begin(), sizes.end(), [&](std::int64_t a, std::int64_t b) {
    const auto far = [&](std::int64_t n) {
      return std::abs(std::log(static_cast<double>(n) / static_cast<double>(wanted)));
    };
    return far(a) < far(b);
  });
}

double target_from(const SweepRow& row, std::int64_t steps) {
  double target = row.curve.empty() ? NAN : row.curve.front().validation_loss;
  for (const SweepPoint& point : row.curve)
    if (2 * point.steps <= steps && point.validation_loss < target) target = point.validation_loss;
  return target;
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const MakeSweepTraining& make) : options_(options), make_(make) {
    const auto refuse = [](const std::string& what) { throw ArgumentError("sweep_batches: " + what); };
    facts_ = options.facts;
    sizes_ = options.batches;
    std::sort(sizes_.begin(), sizes_.end());
    sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
    if (sizes_.empty()) refuse("expected at least one batch size, got none");
    if (sizes_.front() < 1 || sizes_.back() > options.training_samples)
      refuse(fmt::format("expected batches from 1 to the {} training samples, got {}", options.training_samples,
                         sizes_.front() < 1 ? sizes_.front() : sizes_.back()));
    if (options.reference < 1) refuse(fmt::format("expected a reference of 1 or more, got {}", options.reference));
    if (options.steps && *options.steps < 1) refuse(fmt::format("expected steps of 1 or more, got {}", *options.steps));
  }

  SweepReport run() {
    SweepReport report;
    report.reference = nearest(sizes_, options_.reference);
    std::stable_partition(sizes_.begin(), sizes_.end(), [&](std::int64_t size) { return size == report.reference; });
    std::optional<double> target = options_.target_loss;
    for (std::size_t i = 0; i < sizes_.size() && !(options_.should_stop && options_.should_stop()); ++i) {
      SweepRow row = train(i, target);
      if (!target) {
        report.target_steps = steps_of(report.reference);
        target = target_from(row, *report.target_steps);
        // Where a run that went to its end had reached the target, as the others do while they run.
        for (const SweepPoint& point : row.curve)
          if (!row.target && point.validation_loss <= *target) row.target = point;
      }
      if (options_.on_row) options_.on_row(row);
      report.rows.push_back(std::move(row));
    }
    report.target_loss = target.value_or(NAN);
    if (!report.rows.empty() && !std::isnan(report.rows.front().noise_scale))
      facts_.noise_scale = report.rows.front().noise_scale;
    std::sort(report.rows.begin(), report.rows.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
    report.advice = advise(report);
    return report;
  }

 private:
  std::int64_t steps_of(std::int64_t batch) const {
    return options_.steps.value_or(std::max(kLeastTimedSteps, (options_.samples + batch - 1) / batch));
  }

  SweepRow train(std::size_t number, std::optional<double> target) {
    SweepRow row{.batch = sizes_[number]};
    const SweepSize size{row.batch, steps_of(row.batch), (options_.training_samples + row.batch - 1) / row.batch};
    try {
      const std::unique_ptr<Engine> engine = options_.make_engine();
      const EngineScope scope(*engine);
      SweepTraining training = make_(*engine, size);
      if (training.net)
        for (const auto& one : training.net->modules())
          facts_.has_batch_norm |= one.module->kind().starts_with("BatchNorm");
      facts_.memory_limit = engine->memory().limit_bytes;
      SizeRun(options_, *engine, size, std::move(training))
          .run(row, target, {.batch = row.batch, .size = number + 1, .sizes = sizes_.size(), .steps = size.steps});
    } catch (const OutOfMemory& error) {
      row.trouble = std::string("out of memory: ") + error.what();
    } catch (const BuildError&) {
      throw;
    } catch (const ArgumentError& error) {  // a batch norm that has one value
      row.trouble = error.what();
    }
    return row;
  }

  optim::BatchRecommendation advise(const SweepReport& report) const {
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
    optim::BatchFacts facts = facts_;
    facts.training_samples = options_.training_samples;
    return optim::recommend_batch(measured, facts);
  }

  const SweepOptions& options_;
  const MakeSweepTraining& make_;
  std::vector<std::int64_t> sizes_;
  optim::BatchFacts facts_;
};

}  // namespace

SweepReport sweep_batches(const SweepOptions& options, const MakeSweepTraining& make) {
  return Sweep(options, make).run();
}

}  // namespace samebytes::train
