// A Session's parts, and its loop over epochs.
#include "samebytes/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "samebytes/error.h"
#include "samebytes/nn/module.h"
#include "samebytes/optim/adam.h"
#include "train/relief.h"
#include "train/session_impl.h"

namespace samebytes::train {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ArgumentError("session: " + what); }

bool is_endless(const data::Loader& loader) { return loader.size() == data::kEndless; }

// Of the pass that begins next, or of the one that was left early.
std::int64_t epoch_to_come(const data::Loader& loader) {
  const data::LoaderPlace place = loader.place();
  return place.step > 0 && place.step == loader.size() ? place.epoch + 1 : place.epoch;
}

}  // namespace

const char* name_of(Stopped stopped) {
  return stopped == Stopped::finished ? "finished" : stopped == Stopped::asked ? "asked" : "early";
}

Session::Impl::Impl(Engine& engine_, nn::Module& net_, Task task_, data::Loader& training_, SessionOptions options_)
    : engine(engine_),
      net(net_),
      task(std::move(task_)),
      training(training_),
      options(std::move(options_)),
      precision(options.precision),
      meter(engine),
      first_epoch(epoch_to_come(training)) {
  check();
  if (options.optimizer == nullptr) {
    precision.prepare(net);
    owned = options.make_optimizer ? options.make_optimizer(net.parameters())
                                   : std::make_unique<optim::AdamW>(net.parameters());
    if (!owned) refuse("expected an optimizer from make_optimizer, got none");
  }
  optimizer = options.optimizer != nullptr ? options.optimizer : owned.get();
  if (options.schedule) optimizer->set_schedule(options.schedule);
  options.accumulation.rehearses |= engine.options().dry_run;
  accumulation.emplace(options.accumulation, precision, *optimizer, options.shared);
  if (options.ema) ema = std::make_unique<optim::Ema>(*optimizer, *options.ema);
  if (options.adaptive) adaptive.emplace(*options.adaptive, precision, *optimizer);
  if (options.plateau) plateau.emplace(*options.plateau);
  if (options.pressure && !engine.options().dry_run)
    guard.emplace(engine, pressure_options(*options.pressure,
                                           {engine, net, *optimizer, *accumulation, training, options.validation,
                                            largest_batch, !options.adaptive},
                                           [this](const PressureAction& action) { tell(action); }));
  next_progress =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(options.callbacks.progress_seconds));
}

void Session::Impl::check() const {
  if (!task.loss && !task.whole_loss) refuse("expected a task with a loss, got none");
  if (options.optimizer != nullptr && options.make_optimizer) refuse("expected optimizer or make_optimizer, got both");
  if (options.grad_norm_every < 0)
    refuse(fmt::format("expected grad_norm_every of 0 (none) or more updates, got {}", options.grad_norm_every));
  if (options.adaptive) {
    if (options.accumulation.batches > 1 || options.accumulation.micro_batch > 0)
      refuse("adaptive chooses how many batches make an update; expected no accumulation beside it");
    if (options.schedule || options.plateau)
      refuse("adaptive sets the rate; expected no schedule or plateau beside it");
    if (options.shared != nullptr)
      refuse("adaptive measures the gradients of one device; expected no shared steps beside it");
  }
  if (options.plateau && options.validation == nullptr)
    refuse("plateau looks at a validation; expected a validation set");
  if (!options.early_stopping) return;
  const EarlyStopping& early = *options.early_stopping;
  if (options.validation == nullptr) refuse("early_stopping looks at a validation; expected a validation set");
  if (early.patience < 1) refuse(fmt::format("early_stopping: expected patience of 1 or more, got {}", early.patience));
  if (!(early.min_delta >= 0))
    refuse(fmt::format("early_stopping: expected min_delta of 0 or more, got {}", early.min_delta));
  std::string known = "loss";
  for (const Metric& metric : task.metrics) known += ", " + metric.name;
  if (task.is_binary) known += ", balanced_accuracy, area_under_curve";
  if ((", " + known + ",").find(", " + early.monitor + ",") == std::string::npos)
    refuse(fmt::format("early_stopping: expected monitor of {}, got {}", known, early.monitor));
}

std::int64_t Session::Impl::steps_per_epoch() const {
  if (is_endless(training)) return 0;
  const std::int64_t batches = adaptive ? 1 : options.accumulation.batches;
  return (training.size() + batches - 1) / batches;
}

void Session::Impl::start() {
  if (std::exchange(has_started, true)) return;
  if (options.shared != nullptr) options.shared->begin(engine);
  if (options.frames_log && !resumed_from) write_start();
}

bool Session::Impl::is_before_goal() const {
  if (target.steps) return tested_steps < *target.steps;
  return !target.epochs || training.place().epoch - first_epoch < *target.epochs;
}

Report Session::Impl::run(const Target& goal) {
  target = goal;
  Stopped why = Stopped::finished;
  try {
    if (!has_started && !has_resumed) resume();
    start();
    go_on_in_epoch();
    while (is_before_goal()) {
      if (is_stopped_early())
        why = Stopped::early;
      else if (agree_to_stop())
        why = Stopped::asked;
      if (why != Stopped::finished) break;
      train_epoch();
    }
    if (saves() && meter.steps() != kept_steps) keep();
  } catch (const std::exception& error) {
    is_in_pass = stop_requested = false;
    if (options.frames_log) write(LogLine::parse(error_line(error)));
    throw;
  }
  stop_requested = false;
  Report result = report();
  result.stopped_because = why;
  if (options.frames_log) write_summary(result);
  return result;
}

// A loader that was left in the middle of an epoch begins the next one by itself.
void Session::Impl::go_on_in_epoch() {
  const data::LoaderPlace place = training.place();
  if (place.step == 0 || training.dataset().is_sequential()) return;
  const bool is_over = place.step == training.size() && tested_steps == meter.steps();
  if (is_over)
    training.seek(place.epoch + 1);
  else
    training.seek(place.epoch, place.step);
}

// It may be what is left of an epoch, or its validation alone.
void Session::Impl::train_epoch() {
  const data::LoaderPlace place = training.place();
  epoch = number_of(place.epoch);
  begin_pass(place.step == 0);
  if (!target.steps || meter.steps() < *target.steps)
    for (const data::Batch& batch : training) {
      if (!step(batch)) continue;
      if (meter.steps() == target.steps || stops()) break;
    }
  end_epoch();
}

EpochReport Session::Impl::end_epoch() {
  flush();
  end_pass();
  const data::LoaderStats stats = training.stats();
  EpochReport report{.epoch = epoch, .step = meter.steps(), .seconds = meter.seconds() - seconds_before};
  seconds_before = meter.seconds();
  if (reads_losses()) read_losses();
  pending.clear();
  if (mean.weight() <= 0) refuse("end_epoch: expected a step before it, got none");
  report.train_loss = mean.value();
  train_loss = report.train_loss;
  if (!std::isfinite(report.train_loss))
    end_not_finite(meter.steps(),
                   fmt::format("the mean loss of epoch {} is {}; {} finds the step and the op that made it", epoch,
                               text_of_loss(report.train_loss), options.nan_hint));
  report.validation = validate();
  const bool is_whole = report.validation || options.validation == nullptr;
  if (report.validation) look_at(*report.validation);
  if (is_whole) {
    tested_steps = meter.steps();
  } else if (saves()) {
    if (training.place().step == 0)
      training.seek(first_epoch + epoch - 1, training.size());  // the validation is still to be made
    keep();
  }
  LogLine line = {{"event", "epoch"},
                  {"epoch", epoch},
                  {"step", report.step},
                  {"train_loss", report.train_loss},
                  {"seconds", report.seconds},
                  {"stall_fraction", std::min(1.0, stats.loop_wait_seconds / std::max(report.seconds, 1e-9))},
                  {"slots", stats.slots},
                  {"peak_bytes", engine.memory().peak_bytes}};
  if (const optim::GradScaler* scaler = precision.scaler()) {
    line["loss_scale"] = scaler->scale();
    line["skipped_steps"] = optimizer->skipped_steps();
  }
  if (report.validation) add_results(*report.validation, line);
  write(line);
  if (options.callbacks.on_epoch) options.callbacks.on_epoch(report);
  if (is_whole && options.checkpoints && options.checkpoints->is_due_after_epochs()) keep();
  return report;
}

std::optional<Evaluation> Session::Impl::validate() {
  if (options.validation == nullptr) return {};
  wait_for("testing");
  if (is_in_pass) {  // its time is that of no step
    engine.wait();
    meter.pause();
  }
  data::Loader& batches = *options.validation;
  const std::unique_ptr<Autocast> scope = precision.scope();
  std::optional<Evaluation> result;
  {
    std::optional<optim::EmaScope> averages;
    if (ema && ema->update_count() > 0) averages.emplace(*ema);
    // The same whether the run was interrupted or not.
    if (!batches.dataset().is_sequential()) batches.seek(std::max(epoch, 1) - 1);
    result = evaluate(task, net, batches, {.shared = options.shared, .should_stop = [this] { return is_asked(); }});
  }
  wait_for("");
  if (is_in_pass) meter.resume();
  if (result) validation = result;
  return result;
}

void Session::Impl::look_at(const Evaluation& result) {
  if (plateau && optimizer->step_count() >= options.plateau_start && plateau->step(result.loss))
    optimizer->set_rate(plateau->rate());
  if (!options.early_stopping) return;
  const EarlyStopping& early = *options.early_stopping;
  const double sign = early.maximize ? -1 : 1;
  const double value = sign * result.find(early.monitor).value_or(NAN);
  if (!std::isnan(value) && (!patience.best || value < *patience.best - early.min_delta)) {
    patience = {value, 0};
  } else {
    ++patience.bad;
  }
}

Session::Session(Engine& engine, nn::Module& net, Task task, data::Loader& training, SessionOptions options) {
  const EngineScope scope(engine);
  impl_ = std::make_unique<Impl>(engine, net, std::move(task), training, std::move(options));
}
Session::~Session() = default;

Report Session::fit(std::int64_t epochs) {
  if (epochs < 0) throw ArgumentError(fmt::format("fit: expected 0 epochs or more, got {}", epochs));
  if (is_endless(impl_->training))
    throw ArgumentError("fit: expected a training set with an end, got a stream; fit_steps() says how far it goes");
  const EngineScope scope(impl_->engine);
  return impl_->run({.epochs = epochs});
}

Report Session::fit_steps(std::int64_t steps) {
  if (steps < 0) throw ArgumentError(fmt::format("fit_steps: expected 0 steps or more, got {}", steps));
  const EngineScope scope(impl_->engine);
  return impl_->run({.steps = steps});
}

std::optional<Accumulation::Step> Session::step(const data::Batch& batch) {
  const EngineScope scope(impl_->engine);
  return impl_->step(batch);
}

EpochReport Session::end_epoch() {
  const EngineScope scope(impl_->engine);
  return impl_->end_epoch();
}

std::optional<Evaluation> Session::validate() {
  const EngineScope scope(impl_->engine);
  return impl_->validate();
}

void Session::save() {
  const EngineScope scope(impl_->engine);
  if (!impl_->saves()) throw ArgumentError("save: expected a session with checkpoints that are written, got none");
  if (!impl_->accumulation->is_between_updates())
    throw ArgumentError("save: expected a call between two updates, got one while an accumulation waits for batches");
  impl_->pause_for([this] { impl_->keep(); });
}

std::optional<Resumed> Session::resume() {
  const EngineScope scope(impl_->engine);
  if (impl_->has_started) throw ArgumentError("resume: expected a call before the first step, got one after it");
  return impl_->resume();
}

RunState& Session::state() {
  const EngineScope scope(impl_->engine);
  return impl_->run_state();
}

void Session::request_stop() { impl_->stop_requested = true; }
bool Session::is_stopped_early() const { return impl_->is_stopped_early(); }
Report Session::report() const {
  const EngineScope scope(impl_->engine);
  return impl_->report();
}
std::int64_t Session::steps() const { return impl_->meter.steps(); }
double Session::train_loss() const {
  const EngineScope scope(impl_->engine);
  return impl_->mean.value();
}
std::int64_t Session::steps_per_epoch() const { return impl_->steps_per_epoch(); }
optim::Optimizer& Session::optimizer() { return *impl_->optimizer; }
Precision& Session::precision() { return impl_->precision; }
Accumulation& Session::accumulation() { return *impl_->accumulation; }
optim::Ema* Session::ema() { return impl_->ema.get(); }

}  // namespace samebytes::train
