#include "cli/trainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/head.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/lora.h"
#include "cli/relief.h"
#include "cli/start_line.h"
#include "cli/step_error.h"
#include "cli/text.h"
#include "cli/usage_error.h"

namespace samebytes::cli {
namespace {

constexpr std::size_t kLossesKept = 4;  // one more than the engine queues, so that reading the oldest waits for nothing
constexpr double kNewLossShare = 0.2;   // of the smoothed loss that the bar shows

}  // namespace

Trainer::Trainer(const Options& options, const Workload& workload, StepLog& log, Keeper& keeper, int fold, Ranks& ranks)
    : options_(options),
      workload_(with_head(workload, options)),
      precision_(options, true),
      fold_(fold),
      split_(workload.open(fold)),
      batch_(options.batch.value_or(workload.defaults.batch)),
      log_(log),
      keeper_(keeper),
      ranks_(ranks) {
  const std::int64_t samples = split_.train->size();
  if (batch_ > samples)
    throw UsageError(fmt::format("--batch {} is larger than the training set, which has {} samples", batch_, samples));
  const std::int64_t first_batch = batch_;
  if (options.adaptive.is_on) batch_ = AdaptiveSteps::micro_batch(options, first_batch);
  for (const std::string& file : {options.save, options.lora.save})
    if (!file.empty()) io::AtomicFile probe(file);  // throws here rather than after the training
  engine_ = open_engine(options, options.device);
  memory_ = std::make_unique<MemoryWatch>(options, *engine_);
  net_ = workload.make_model();
  if (!options.load.empty()) io::load(options.load, *net_);
  adapters_ = add_adapters(options, *net_);
  precision_.prepare(*net_);
  divide(*net_, options);

  const std::int64_t per_step = batch_ * options.step.accumulate;  // samples; with --adaptive-batch, of a micro-batch
  const std::int64_t per_epoch = (samples + per_step - 1) / per_step;
  epochs_ = options.epochs.value_or(workload.defaults.epochs);
  const std::int64_t default_steps =
      options.epochs || !workload.defaults.steps ? per_epoch * epochs_ : *workload.defaults.steps;
  steps_ = options.steps.value_or(default_steps);
  epochs_ = static_cast<int>((steps_ + per_epoch - 1) / per_epoch);

  loading_ = training_loader_options(options, batch_);
  loading_.shuffle = true;
  loading_.transforms = workload.augment;
  loading_.transforms.insert(loading_.transforms.end(), workload.prepare.begin(), workload.prepare.end());
  ranks_.divide(loading_, *split_.train);
  training_ = std::make_unique<data::Loader>(*engine_, split_.train, loading_);
  data::LoaderOptions testing = loader_options(options, std::min(batch_, split_.test->size()));
  testing.transforms = workload.prepare;
  ranks_.divide_test(testing, *split_.test);
  test_ = std::make_unique<data::Loader>(*engine_, split_.test, testing);
  recipe_.emplace(options, workload, first_batch * options.step.accumulate, steps_, per_epoch);
  optimizer_ = recipe_->make_optimizer(net_->parameters());
  shared_ = SharedSteps::make(options, *engine_, *net_);
  accumulation_.emplace(options, precision_, *optimizer_, &ranks_);
  accumulation_->share(shared_.get());
  joined_ = ranks_.join(*engine_, *net_, *optimizer_, options.ranks.shard_state);
  norms_.emplace(options, workload.defaults, *optimizer_);
  ema_ = recipe_->make_ema(*optimizer_);
  if (options.adaptive.is_on)
    adaptive_ = std::make_unique<AdaptiveSteps>(options, *recipe_, precision_, *optimizer_, first_batch, samples);
  if (!options.limit.rehearses && !ranks_.are_many())
    guard_.emplace(*engine_,
                   pressure_options(options, {*engine_, *net_, *optimizer_, *accumulation_, *training_, *test_, batch_},
                                    [this](const PressureAction& action) { tell(action); }));
  meter_ = std::make_unique<RunMeter>(*engine_);
  progress_ = std::make_unique<Progress>(stream_for_people(options), options.quiet);
  describe(*engine_, workload, first_batch, summary_);
  summary_.optimizer = recipe_->optimizer();
  summary_.schedule = recipe_->schedule();
  summary_.rate = recipe_->rate();
  summary_.warmup = recipe_->warmup();
  summary_.ema = options.ema;
  const auto resumed = keeper_.begin(workload, {.engine = *engine_,
                                                .net = *net_,
                                                .optimizer = *optimizer_,
                                                .scaler = precision_.scaler(),
                                                .ema = ema_.get(),
                                                .adaptive = adaptive_.get(),
                                                .shared = shared_.get(),
                                                .recipe = *recipe_,
                                                .training = *training_,
                                                .mean = mean_,
                                                .batch = batch_,
                                                .steps = steps_,
                                                .done = [this] { return meter_->steps(); },
                                                .counts = [this] { return counts(); },
                                                .set_counts = [this](const std::string& text) { set_counts(text); }});
  ranks_.spread_random_numbers();
  for (const std::string& text : keeper_.troubles()) progress_->say(text);
  if (shared_) {
    shared_->report([this](const std::string& text) { progress_->say(fold_text() + text); }, log_);
    shared_->find(*optimizer_, precision_, *training_, batch_,
                  [this](const data::Batch& piece) { return loss_of(piece); });
  }
  if (resumed) {
    progress_->say(fold_text() + *resumed);
    kept_steps_ = meter_->steps();
  } else {
    log_start();
  }
  keeper_.tell_log();
}

void Trainer::log_start() {
  Json line = start_line({options_, workload_, *recipe_, summary_, split_, summary_.batch, steps_}, *engine_, *net_);
  add_loading_to(line, loading_);
  if (shared_) shared_->add_to(line);
  log_.write(line);
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
  if (shared_) progress_->say(fold_text() + shared_->text());
  if (const std::string text = loading_text(options_, loading_); !text.empty()) progress_->say(text);
  if (!adapters_.empty()) progress_->say(adapters_);
  // The first epoch of a run that goes on may be what is left of one, or its test alone.
  while (!ranks_.agree_to_stop() && tested_steps_ < steps_) train_epoch(static_cast<int>(training_->place().epoch) + 1);
  if (keeper_.saves() && meter_->steps() != kept_steps_) keep();
  meter_->fill(summary_);
  keeper_.fill(summary_);
  if (shared_) shared_->fill(summary_);
  precision_.fill(optimizer_.get(), summary_);
  if (adaptive_) adaptive_->fill(summary_);
  ranks_.fill(*optimizer_, summary_);
  progress_.reset();
  print_plan(options_, *engine_);
  memory_->save();
  save_network();
  if (workload_.baselines && !is_interrupted()) summary_.baselines = workload_.baselines(split_);
  return summary_;
}

void Trainer::save_network() {
  if (options_.save.empty() && options_.lora.save.empty()) return;
  io::Metadata metadata = workload_.metadata;
  metadata.emplace_back("tuning", summary_.tuning);  // which choices gave these bytes
  metadata.emplace_back("precision", options_.precision);
  std::optional<optim::EmaScope> averages;
  if (ema_ && ema_->update_count() > 0) averages.emplace(*ema_);
  save_adapters(options_, *net_, metadata);
  if (options_.save.empty()) return;
  merge_adapters(*net_);
  io::save(options_.save, *net_, metadata);
}

Rehearsal Trainer::rehearsed() const {
  std::vector<Array> state;
  for (const optim::StateArray& array : optimizer_->state()) state.push_back(array.array);
  return {engine_->memory().peak_bytes, memory_at_peak(*engine_, state)};
}

void Trainer::train_epoch(int epoch) {
  const double before = meter_->seconds();
  if (training_->place().step == 0) mean_.reset();
  training_->reset_stats();
  meter_->begin();
  if (meter_->steps() < steps_) {
    for (const data::Batch& batch : *training_) {
      if (!train_step(epoch, batch)) continue;
      keep_if_due();
      if (meter_->steps() == steps_ || ranks_.stops()) break;
    }
    const double rate = optimizer_->rate();
    if (const std::optional<Accumulation::Step> rest = accumulation_->flush()) {
      if (ema_) ema_->update();
      finish_step(epoch, rate, *rest);
      keep_if_due();
    }
  }
  const double waited = training_->stats().loop_wait_seconds;
  meter_->end(waited);
  stall_fraction_ = std::min(1.0, waited / std::max(meter_->seconds() - before, 1e-9));
  if (log_.is_on()) read_losses();
  recent_.clear();
  summary_.train_loss = mean_.value();
  if (!std::isfinite(*summary_.train_loss))
    throw StepError(meter_->steps(),
                    fmt::format("the mean loss of epoch {} is {}; --check-nan finds the step and the op that made it",
                                epoch, value_text(*summary_.train_loss)),
                    kNotFinite);
  test_epoch(epoch, meter_->seconds() - before);
}

Array Trainer::loss_of(const data::Batch& batch) {
  const std::unique_ptr<Autocast> scope = precision_.scope();
  const std::unique_ptr<distributed::SyncBatchNorm> norms = ranks_.synced_norms();
  return workload_.loss_of(*net_, batch);
}

bool Trainer::train_step(int epoch, const data::Batch& batch) {
  const std::int64_t number = meter_->steps() + 1;
  const double rate = optimizer_->rate();
  std::optional<Accumulation::Step> step;
  norms_->before_step();
  try {
    bool is_updated = true;
    if (adaptive_) {
      step = Accumulation::Step{loss_of(batch), batch.samples(), batch.samples()};
      is_updated = adaptive_step(step->loss, batch);
    } else {
      step = accumulation_->add(batch, [this](const data::Batch& piece) { return loss_of(piece); });
      is_updated = step.has_value();
    }
    if (ema_ && is_updated) ema_->update();
    if (guard_) guard_->look();
  } catch (const BuildError&) {
    throw;
  } catch (const distributed::DistributedError& error) {
    throw distributed::DistributedError(fmt::format("step {}: {}", number, error.what()));
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("step {}: {}", number, error.what()), error.call(), error.status(), error.device());
  } catch (const Error& error) {
    throw StepError(number, error);
  }
  if (step) finish_step(epoch, rate, *step);
  return step.has_value();
}

void Trainer::tell(const PressureAction& action) {
  progress_->say(fold_text() + "memory is short: " + action.text);
  log_.write({{"event", "pressure"},
              {"step", meter_->steps() + 1},
              {"action", action.text},
              {"used_bytes", action.figures.used},
              {"limit_bytes", action.figures.limit}});
}

void Trainer::finish_step(int epoch, double rate, const Accumulation::Step& step) {
  const auto samples = static_cast<double>(step.all_samples);
  if (step.mean)
    mean_.add_value(*step.mean, samples);
  else
    mean_.add(step.loss, samples);
  meter_->step(step.all_samples);
  recent_.push_back({meter_->steps(), epoch, rate, meter_->last_step_seconds() * 1e3, step.loss, step.mean});
  recent_.back().norm = norms_->after_step();
  if (adaptive_) recent_.back().more = adaptive_->to_json();
  if (recent_.size() <= kLossesKept) return;
  const bool is_due = progress_->is_due();
  if (is_due || log_.is_on()) read_oldest_loss();
  recent_.pop_front();
  // A line every few seconds may wait for the queue and show the mean; the bar smooths what it has read.
  if (is_due) draw(epoch, progress_->is_terminal() ? recent_loss_ : mean_.value());
}

void Trainer::read_losses() {
  for (; !recent_.empty(); recent_.pop_front()) read_oldest_loss();
}

void Trainer::keep_if_due() {
  if (!keeper_.is_due(meter_->steps())) return;
  engine_->wait();  // for steps, whose time it is
  meter_->pause();
  keep();
  meter_->resume();
}

void Trainer::keep() {
  read_losses();  // the log has all that the state has; throws for a loss that no state should be kept with
  if (!std::isfinite(mean_.value()))
    throw Error(fmt::format("step {}: the mean loss of the epoch is {}", meter_->steps(), value_text(mean_.value())));
  keeper_.save(meter_->steps());
  kept_steps_ = meter_->steps();
}

std::string Trainer::counts() const {
  return Json{{"steps", meter_->steps()},
              {"samples", meter_->samples()},
              {"seconds", meter_->seconds()},
              {"tested_steps", tested_steps_},
              {"results", results_of(summary_)}}
      .dump();
}

void Trainer::set_counts(const std::string& text) {
  const Json json = Json::parse(text);
  meter_->go_on_from(json["steps"].get<std::int64_t>(), json["samples"].get<std::int64_t>(),
                     json["seconds"].get<double>());
  tested_steps_ = json["tested_steps"].get<std::int64_t>();
  set_results(json["results"], summary_);
}

bool Trainer::adaptive_step(const Array& loss, const data::Batch& batch) {
  const bool is_last = batch.step() + 1 == training_->size() || meter_->steps() + 1 == steps_;
  const bool is_updated = adaptive_->add(loss, batch.samples(), meter_->steps(), is_last);
  if (const auto news = adaptive_->news()) {
    progress_->say(fold_text() + *news);
    Json line = {{"event", "batch"}, {"step", meter_->steps() + 1}};
    line.update(adaptive_->to_json());
    log_.write(line);
  }
  return is_updated;
}

void Trainer::read_oldest_loss() {
  const StepFacts& facts = recent_.front();
  const double loss = facts.value ? *facts.value : facts.loss.value();
  if (!std::isfinite(loss))
    throw StepError(facts.step, fmt::format("the loss is {}; --check-nan finds the op that made it", value_text(loss)),
                    kNotFinite);
  recent_loss_ = std::isnan(recent_loss_) ? loss : (1 - kNewLossShare) * recent_loss_ + kNewLossShare * loss;
  Json line = {{"event", "step"}, {"step", facts.step}, {"epoch", facts.epoch},
               {"loss", loss},    {"rate", facts.rate}, {"ms", facts.milliseconds}};
  if (facts.norm) {
    recent_norm_ = facts.norm.value();
    line["grad_norm"] = std::isfinite(recent_norm_) ? Json(recent_norm_) : Json();  // gradients that overflowed
  }
  line.update(facts.more);
  log_.write(line);
}

void Trainer::test_epoch(int epoch, double seconds) {
  const std::unique_ptr<Autocast> scope = precision_.scope();
  std::optional<optim::EmaScope> averages;
  if (ema_) averages.emplace(*ema_);
  test_->seek(epoch - 1);  // the same whether the run was interrupted or not
  std::optional<Evaluation> result = evaluate(workload_, *net_, *test_, test_->size(), nullptr, shared_.get(), &ranks_);
  averages.reset();
  if (result) {
    recipe_->tested(*optimizer_, result->loss);
    tested_steps_ = meter_->steps();
  } else if (keeper_.saves()) {
    if (training_->place().step == 0) training_->seek(epoch - 1, training_->size());  // the test is still to be made
    keep();
  }
  Json line = {{"event", "epoch"},
               {"epoch", epoch},
               {"step", meter_->steps()},
               {"train_loss", *summary_.train_loss},
               {"seconds", seconds},
               {"stall_fraction", stall_fraction_},
               {"slots", training_->stats().slots},
               {"peak_bytes", engine_->memory().peak_bytes}};
  precision_.add_to(line, *optimizer_);
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
  if (result && keeper_.is_due_after_epochs()) keep();
}

void Trainer::draw(int epoch, double loss) {
  const std::string size = adaptive_ ? fmt::format("  batch {}", adaptive_->batch()) : std::string();
  progress_->draw({.title = fmt::format("{}epoch {}/{}{}", fold_text(), epoch, epochs_, size),
                   .done = meter_->steps(),
                   .total = steps_,
                   .samples = meter_->samples(),
                   .seconds = meter_->seconds(),
                   .loss = loss,
                   .grad_norm = recent_norm_});
}

}  // namespace samebytes::cli
