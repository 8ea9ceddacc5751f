// samebytes train: trains a workload, tests it after every epoch, and says what it came to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "cli/interrupt.h"
#include "cli/limit.h"
#include "cli/progress.h"
#include "cli/recipe.h"
#include "cli/session.h"
#include "cli/step_log.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/pressure.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLossesKept = 4;  // one more than the engine queues, so that reading the oldest waits for nothing
constexpr double kNewLossShare = 0.2;   // of the smoothed loss that the bar shows

struct StepFacts {
  std::int64_t step = 0;
  int epoch = 0;
  double rate = 0;
  double milliseconds = 0;
  Array loss;
};

class Trainer {
 public:
  Trainer(const Options& options, const Workload& workload, StepLog& log, int fold);
  Summary run();
  Rehearsal rehearsed() const;

 private:
  void train_epoch(int epoch);
  void train_step(int epoch, const data::Batch& batch);
  Array loss_of(const data::Batch& batch);
  void test_epoch(int epoch, double seconds);
  void read_oldest_loss();
  void draw(int epoch, double loss);
  std::string fold_text() const;  // "fold 2/5  " where there are several

  const Options& options_;
  const Workload& workload_;
  Precision precision_;
  const int fold_;
  data::Split split_;
  std::int64_t batch_;
  StepLog& log_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<nn::Module> net_;
  std::unique_ptr<data::Loader> training_, test_;
  std::optional<Recipe> recipe_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> ema_;  // where averages are asked for
  std::optional<PressureGuard> guard_;
  std::unique_ptr<RunMeter> meter_;
  std::unique_ptr<Progress> progress_;
  int epochs_ = 0;
  std::int64_t steps_ = 0;
  Mean mean_;                     // of the losses of this epoch
  std::deque<StepFacts> recent_;  // steps whose loss was not read yet
  double recent_loss_ = NAN;
  Summary summary_;
};

Trainer::Trainer(const Options& options, const Workload& workload, StepLog& log, int fold)
    : options_(options),
      workload_(workload),
      precision_(options, true),
      fold_(fold),
      split_(workload.open(fold)),
      batch_(options.batch.value_or(workload.defaults.batch)),
      log_(log) {
  const std::int64_t samples = split_.train->size();
  if (batch_ > samples)
    throw UsageError(fmt::format("--batch {} is larger than the training set, which has {} samples", batch_, samples));
  if (!options.save.empty()) io::AtomicFile probe(options.save);  // throws here rather than after the training
  engine_ = open_engine(options, options.device);
  net_ = workload.make_model();
  if (!options.load.empty()) io::load(options.load, *net_);
  precision_.prepare(*net_);

  const std::int64_t per_epoch = (samples + batch_ - 1) / batch_;
  epochs_ = options.epochs.value_or(workload.defaults.epochs);
  const std::int64_t default_steps =
      options.epochs || !workload.defaults.steps ? per_epoch * epochs_ : *workload.defaults.steps;
  steps_ = options.steps.value_or(default_steps);
  epochs_ = static_cast<int>((steps_ + per_epoch - 1) / per_epoch);

  data::LoaderOptions loading = loader_options(options, batch_);
  loading.shuffle = true;
  loading.transforms = workload.augment;
  loading.transforms.insert(loading.transforms.end(), workload.prepare.begin(), workload.prepare.end());
  training_ = std::make_unique<data::Loader>(*engine_, split_.train, loading);
  data::LoaderOptions testing = loader_options(options, std::min(batch_, split_.test->size()));
  testing.transforms = workload.prepare;
  test_ = std::make_unique<data::Loader>(*engine_, split_.test, testing);
  recipe_.emplace(options, workload, batch_, steps_, per_epoch);
  optimizer_ = recipe_->make_optimizer(net_->parameters());
  ema_ = recipe_->make_ema(*optimizer_);
  if (!options.limit.rehearses) guard_.emplace(*engine_);
  meter_ = std::make_unique<RunMeter>(*engine_);
  progress_ = std::make_unique<Progress>(stream_for_people(options), options.quiet);
  describe(*engine_, workload, batch_, summary_);
  summary_.optimizer = recipe_->optimizer();
  summary_.schedule = recipe_->schedule();
  summary_.rate = recipe_->rate();
  summary_.warmup = recipe_->warmup();
  summary_.ema = options.ema;
  log_.write({{"event", "start"},
              {"workload", workload.name},
              {"device", summary_.device},
              {"personality", summary_.personality},
              {"precision", options.precision},
              {"tuning", summary_.tuning},
              {"seed", options.seed},
              {"optimizer", summary_.optimizer},
              {"schedule", summary_.schedule},
              {"rate", summary_.rate},
              {"warmup", summary_.warmup},
              {"batch", batch_},
              {"steps", steps_}});
}

std::string Trainer::fold_text() const {
  return workload_.folds > 1 ? fmt::format("fold {}/{}  ", fold_ + 1, workload_.folds) : std::string();
}

Summary Trainer::run() {
  progress_->say(fmt::format(
      "{}{}: {} parameters, {} training and {} test samples, on {}, memory mode {}", fold_text(), workload_.name,
      count_text(static_cast<double>(net_->parameter_count())), count_text(static_cast<double>(split_.train->size())),
      count_text(static_cast<double>(split_.test->size())), summary_.device, summary_.memory_mode));
  progress_->say(fold_text() + recipe_->to_text());
  for (int epoch = 1; epoch <= epochs_ && !is_interrupted(); ++epoch) train_epoch(epoch);
  meter_->fill(summary_);
  precision_.fill(optimizer_.get(), summary_);
  progress_.reset();
  if (!options_.save.empty()) {
    io::Metadata metadata = workload_.metadata;
    metadata.emplace_back("tuning", summary_.tuning);  // which choices gave these bytes
    metadata.emplace_back("precision", options_.precision);
    std::optional<optim::EmaScope> averages;
    if (ema_ && ema_->update_count() > 0) averages.emplace(*ema_);
    io::save(options_.save, *net_, metadata);
  }
  if (workload_.baselines && !is_interrupted()) summary_.baselines = workload_.baselines(split_);
  return summary_;
}

Rehearsal Trainer::rehearsed() const {
  std::vector<Array> state;
  for (const optim::StateArray& array : optimizer_->state()) state.push_back(array.array);
  return {engine_->memory().peak_bytes, memory_at_peak(*engine_, state)};
}

void Trainer::train_epoch(int epoch) {
  const double before = meter_->seconds();
  mean_.reset();
  training_->reset_stats();
  meter_->begin();
  for (const data::Batch& batch : *training_) {
    train_step(epoch, batch);
    if (meter_->steps() == steps_ || is_interrupted()) break;
  }
  meter_->end(training_->stats().loop_wait_seconds);
  while (log_.is_on() && !recent_.empty()) {
    read_oldest_loss();
    recent_.pop_front();
  }
  recent_.clear();
  summary_.train_loss = mean_.value();
  if (!std::isfinite(*summary_.train_loss))
    throw Error(fmt::format("epoch {}: the loss is {}; --check-nan finds the step and the op that made it", epoch,
                            *summary_.train_loss));
  test_epoch(epoch, meter_->seconds() - before);
}

Array Trainer::loss_of(const data::Batch& batch) {
  const std::unique_ptr<Autocast> scope = precision_.scope();
  return workload_.loss(workload_.forward(*net_, batch), batch);
}

void Trainer::train_step(int epoch, const data::Batch& batch) {
  const std::int64_t step = meter_->steps() + 1;
  try {
    const double rate = optimizer_->rate();
    const Array loss = loss_of(batch);
    precision_.step(*optimizer_, loss);
    if (ema_) ema_->update();
    mean_.add(loss, static_cast<double>(batch.samples()));
    meter_->step(batch.samples());
    if (guard_) guard_->look();
    recent_.push_back({step, epoch, rate, meter_->last_step_seconds() * 1e3, loss});
  } catch (const BuildError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("step {}: {}", step, error.what()));
  }
  if (recent_.size() <= kLossesKept) return;
  const bool is_due = progress_->is_due();
  if (is_due || log_.is_on()) read_oldest_loss();
  recent_.pop_front();
  // A line every few seconds may wait for the queue and show the mean; the bar smooths what it has read.
  if (is_due) draw(epoch, progress_->is_terminal() ? recent_loss_ : mean_.value());
}

void Trainer::read_oldest_loss() {
  const StepFacts& facts = recent_.front();
  const double loss = facts.loss.value();
  if (!std::isfinite(loss))
    throw Error(fmt::format("step {}: the loss is {}; --check-nan finds the op that made it", facts.step, loss));
  recent_loss_ = std::isnan(recent_loss_) ? loss : (1 - kNewLossShare) * recent_loss_ + kNewLossShare * loss;
  log_.write({{"event", "step"},
              {"step", facts.step},
              {"epoch", facts.epoch},
              {"loss", loss},
              {"rate", facts.rate},
              {"ms", facts.milliseconds}});
}

void Trainer::test_epoch(int epoch, double seconds) {
  const std::unique_ptr<Autocast> scope = precision_.scope();
  std::optional<optim::EmaScope> averages;
  if (ema_) averages.emplace(*ema_);
  const std::optional<Evaluation> result = evaluate(workload_, *net_, *test_);
  averages.reset();
  if (result) recipe_->tested(*optimizer_, result->loss);
  Json line = {{"event", "epoch"},
               {"epoch", epoch},
               {"step", meter_->steps()},
               {"train_loss", *summary_.train_loss},
               {"seconds", seconds}};
  std::string text = fmt::format("{}epoch {}/{}  loss {:.4f}", fold_text(), epoch, epochs_, *summary_.train_loss);
  if (result) {
    result->fill(summary_);
    line["test_loss"] = result->loss;
    if (result->accuracy) line["test_accuracy"] = *result->accuracy;
    if (result->balanced_accuracy) line["test_balanced_accuracy"] = *result->balanced_accuracy;
    if (result->area_under_curve) line["test_area_under_curve"] = *result->area_under_curve;
    text += "  " + result->to_text();
  }
  log_.write(line);
  progress_->say(text + "  " + duration_text(seconds));
}

void Trainer::draw(int epoch, double loss) {
  progress_->draw({.title = fmt::format("{}epoch {}/{}", fold_text(), epoch, epochs_),
                   .done = meter_->steps(),
                   .total = steps_,
                   .samples = meter_->samples(),
                   .seconds = meter_->seconds(),
                   .loss = loss});
}

}  // namespace

Rehearsal rehearse_train(const Options& options, const Workload& workload) {
  StepLog log("");
  Trainer trainer(options, workload, log, 0);
  trainer.run();
  return trainer.rehearsed();
}

int run_train(const Options& asked) {
  const Workload workload = with_data_kept(make_workload(asked.workloads.front(), asked.form));
  const Fitted fitted = fit_train(asked, workload);
  const Options& options = fitted.options;
  if (options.device == "all") throw UsageError("train uses one device; --device all is for bench");
  if (workload.folds > 1 && !options.save.empty())
    throw UsageError("--save keeps one network, and this data is trained in several folds");
  StepLog log(options.log, options.tensorboard);
  if (!fitted.text.empty()) {
    if (!options.quiet) fmt::print(stream_for_people(options), "{}\n", fitted.text);
    log.write(fitted.to_json());
  }
  Summary summary;
  std::vector<double> areas;  // under the curve, of each fold
  for (int fold = 0; fold < workload.folds && !is_interrupted(); ++fold) {
    summary = Trainer(options, workload, log, fold).run();
    if (summary.test_area_under_curve) areas.push_back(*summary.test_area_under_curve);
  }
  if (workload.folds > 1) summary.fold_areas = areas;
  fitted.fill(summary);
  Json line = to_json(summary);
  line["event"] = "summary";
  line["interrupted"] = is_interrupted();
  log.write(line);
  print_summary(options, summary, is_interrupted());
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
