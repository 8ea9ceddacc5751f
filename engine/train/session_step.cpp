// Steps of a Session: the loss, the update, and what is said of it a few steps later.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "samebytes/distributed.h"
#include "samebytes/error.h"
#include "train/session_impl.h"

namespace samebytes::train {
namespace {

constexpr std::size_t kLossesKept = 4;  // one more than the engine queues, so that reading the oldest waits for nothing

LogLine fields_of(const BatchReport& report) {
  return {{"batch", report.batch}, {"noise_scale", finite_or_null(report.noise_scale)}};
}

}  // namespace

Array Session::Impl::loss_of(const data::Batch& batch) const {
  const std::unique_ptr<Autocast> scope = precision.scope();
  return task.loss_of(net, batch);
}

void Session::Impl::begin_pass(bool is_new_epoch) {
  if (is_new_epoch && mean.weight() > 0) mean.reset();
  if (std::exchange(is_in_pass, true)) return;
  seconds_before = meter.seconds();
  training.reset_stats();
  meter.begin();
}

void Session::Impl::end_pass() {
  if (std::exchange(is_in_pass, false)) meter.end(training.stats().loop_wait_seconds);
}

std::optional<Accumulation::Step> Session::Impl::step(const data::Batch& batch) {
  start();
  begin_pass(batch.step() == 0);
  epoch = number_of(batch.epoch());
  largest_batch = std::max(largest_batch, batch.samples());
  const double rate = optimizer->rate();
  std::optional<Accumulation::Step> made = update(batch);
  if (!made) return {};
  finish_step(rate, *made);
  keep_if_due();
  return made;
}

// The update is told apart from the micro-batches of an adaptive batch, each of which is a step.
std::optional<Accumulation::Step> Session::Impl::update(const data::Batch& batch) {
  const std::int64_t number = meter.steps() + 1;
  if (options.grad_norm_every > 0)
    optimizer->watch_gradient_norm((optimizer->step_count() + 1) % options.grad_norm_every == 0);
  try {
    std::optional<Accumulation::Step> made;
    bool is_updated = true;
    if (adaptive) {
      made = Accumulation::Step{loss_of(batch), batch.samples(), batch.samples()};
      const bool is_last = batch.step() + 1 == training.size() || number == target.steps;
      is_updated = adaptive->add(made->loss, batch.samples(), meter.steps(), is_last);
      tell_batch();
    } else {
      made = accumulation->add(batch, [this](const data::Batch& piece) { return loss_of(piece); });
      is_updated = made.has_value();
    }
    if (ema && is_updated) ema->update();
    if (guard) guard->look();
    return made;
  } catch (const BuildError&) {
    throw;
  } catch (const distributed::DistributedError& error) {
    throw distributed::DistributedError(fmt::format("step {}: {}", number, error.what()));
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("step {}: {}", number, error.what()), error.call(), error.status(), error.device());
  } catch (const Error& error) {
    throw StepError(number, error);
  }
}

// What waits for more batches.
void Session::Impl::flush() {
  const double rate = optimizer->rate();
  const std::optional<Accumulation::Step> rest = accumulation->flush();
  if (!rest) return;
  if (ema) ema->update();
  finish_step(rate, *rest);
  keep_if_due();
}

void Session::Impl::finish_step(double rate, const Accumulation::Step& made) {
  const auto samples = static_cast<double>(made.all_samples);
  if (made.mean)
    mean.add_value(*made.mean, samples);
  else
    mean.add(made.loss, samples);
  meter.step(made.all_samples);
  log_recoveries();
  Pending next{{meter.steps(), epoch, 0, rate, meter.last_step_seconds() * 1e3, {}},
               made.loss,
               made.mean,
               {},
               LogLine::object()};
  if (std::exchange(updates_seen, optimizer->step_count()) != optimizer->step_count())
    next.norm = optimizer->gradient_norm();
  if (adaptive) next.more = fields_of(adaptive->report(meter.steps()));
  pending.push_back(std::move(next));
  if (pending.size() <= kLossesKept) return;
  const bool is_due = options.callbacks.on_progress && std::chrono::steady_clock::now() >= next_progress;
  if (is_due || reads_losses()) read_oldest_loss();
  pending.pop_front();
  if (is_due) draw();
}

void Session::Impl::read_losses() {
  for (; !pending.empty(); pending.pop_front()) read_oldest_loss();
}

void Session::Impl::end_not_finite(std::int64_t step, const std::string& text) {
  engine.wait();  // a launch that failed may be the cause: its error says more
  throw StepError(step, text, kNotFinite);
}

void Session::Impl::read_oldest_loss() {
  Pending& oldest = pending.front();
  StepReport& report = oldest.report;
  report.loss = oldest.value ? *oldest.value : oldest.loss.value();
  if (!std::isfinite(report.loss))
    end_not_finite(report.step, fmt::format("the loss is {}; {} finds the op that made it", text_of_loss(report.loss),
                                            options.nan_hint));
  LogLine line = {{"event", "step"},     {"step", report.step}, {"epoch", report.epoch},
                  {"loss", report.loss}, {"rate", report.rate}, {"ms", report.milliseconds}};
  if (oldest.norm) {
    report.grad_norm = recent_norm = oldest.norm.value();
    line["grad_norm"] = finite_or_null(recent_norm);  // gradients that overflowed
  }
  line.update(oldest.more);
  write(line);
  if (options.callbacks.on_step) options.callbacks.on_step(report);
}

void Session::Impl::draw() {
  ProgressReport report{.epoch = epoch,
                        .step = meter.steps(),
                        .steps = target.steps.value_or(target.epochs.value_or(0) * steps_per_epoch()),
                        .samples = meter.samples(),
                        .seconds = meter.seconds(),
                        .samples_per_second = meter.samples_per_second(),
                        .loss = mean.weight() > 0 ? mean.value() : NAN,
                        .grad_norm = recent_norm};
  if (const double each = meter.seconds_per_step(); each > 0 && report.steps > 0)
    report.seconds_left = each * static_cast<double>(std::max<std::int64_t>(0, report.steps - report.step));
  if (adaptive) report.batch = adaptive->report(meter.steps()).batch;
  options.callbacks.on_progress(report);
  next_progress =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(options.callbacks.progress_seconds));
}

void Session::Impl::tell(const PressureAction& action) {
  if (options.callbacks.on_message) options.callbacks.on_message("memory is short: " + action.text);
  write({{"event", "pressure"},
         {"step", meter.steps() + 1},
         {"action", action.text},
         {"used_bytes", action.figures.used},
         {"limit_bytes", action.figures.limit}});
}

void Session::Impl::log_recoveries() {
  if (!has_log()) return;
  const std::vector<Recovery> all = engine.recoveries();
  for (; recoveries_seen < all.size(); ++recoveries_seen) {
    const Recovery& one = all[recoveries_seen];
    write({{"event", "recovered"},
           {"step", meter.steps()},
           {"call", one.call},
           {"status", one.status},
           {"device", one.device}});
  }
}

void Session::Impl::tell_batch() {
  const std::optional<BatchReport> news = adaptive->news(meter.steps() + 1);
  if (!news) return;
  if (options.callbacks.on_batch) options.callbacks.on_batch(*news);
  LogLine line = {{"event", "batch"}, {"step", news->step}};
  line.update(fields_of(*news));
  write(line);
}

}  // namespace samebytes::train
