#include "samebytes/train/run_meter.h"

#include <algorithm>

#include "samebytes/engine.h"

namespace samebytes::train {
namespace {

// A run of small launches on the host is one command.
std::uint64_t enqueued(const Engine& engine) {
  const PlanReport plans = engine.plans();
  return plans.launches - plans.launches_on_host + plans.host_runs;
}

}  // namespace

double StepClock::tick() {
  const double seconds = add_rest();
  times_.mark(active_);
  return seconds;
}

double StepClock::add_rest() {
  const auto now = Clock::now();
  const auto passed = now - last_;
  last_ = now;
  active_ += passed;
  return std::chrono::duration<double>(passed).count();
}

void RunMeter::begin() {
  const TransferReport moved = engine_->transfers();
  copied_before_ = moved.bytes_copied;
  gathered_before_ = moved.bytes_gathered;
  launches_before_ = enqueued(*engine_);
  touched_before_ = engine_->plans().bytes;
  clock_.resume();
}

void RunMeter::step(std::int64_t samples) {
  if (is_first_) engine_->wait();
  last_step_seconds_ = clock_.tick();
  samples_ += samples;
  if (is_first_) {
    is_first_ = false;
    first_step_seconds_ = last_step_seconds_;
    first_step_samples_ = samples;
    launches_before_ = enqueued(*engine_);
    touched_before_ = engine_->plans().bytes;
  } else {
    ++launch_steps_;
  }
}

void RunMeter::end(double stalled_seconds) {
  engine_->wait();
  clock_.add_rest();
  stall_seconds_ += stalled_seconds;
  const TransferReport moved = engine_->transfers();
  copied_ += moved.bytes_copied - copied_before_;
  gathered_ += moved.bytes_gathered - gathered_before_;
  launches_ += enqueued(*engine_) - launches_before_;
  touched_ += engine_->plans().bytes - touched_before_;
}

void RunMeter::go_on_from(std::int64_t steps, std::int64_t samples, double seconds) {
  steps_before_ = steps;
  samples_ = samples;
  seconds_before_ = seconds;
}

void RunMeter::restart() {
  const double first = first_step_seconds_;
  *this = RunMeter(*engine_);
  is_first_ = false;
  first_step_seconds_ = first;
}

double RunMeter::samples_per_second() const { return figures_of_steps().steady_samples_per_second(); }

double RunMeter::seconds_per_step() const {
  const RunFigures now = figures_of_steps();
  const std::int64_t steps = now.steps - (now.first_step_samples > 0 ? 1 : 0);
  const double seconds = now.seconds - (now.first_step_samples > 0 ? now.first_step_seconds : 0);
  return steps > 0 ? seconds / static_cast<double>(steps) : 0;
}

double RunFigures::steady_samples_per_second() const {
  if (first_step_samples == 0) return samples_per_second();
  return throughput(static_cast<double>(samples - first_step_samples), seconds - first_step_seconds);
}

// What counts steps, samples and seconds: cheap enough for each step.
RunFigures RunMeter::figures_of_steps() const {
  return {.steps = steps(),
          .samples = samples_,
          .seconds = seconds(),
          .first_step_seconds = first_step_seconds_,
          .first_step_samples = first_step_samples_};
}

RunFigures RunMeter::figures() const {
  const auto per_step = [](std::uint64_t count, std::int64_t steps) {
    return steps > 0 ? static_cast<double>(count) / static_cast<double>(steps) : 0.0;
  };
  return {.steps = steps(),
          .samples = samples_,
          .seconds = seconds(),
          .step_ms_p50 = clock_.milliseconds(50),
          .step_ms_p95 = clock_.milliseconds(95),
          .first_step_seconds = first_step_seconds_,
          .bytes_copied_per_step = per_step(copied_, clock_.steps()),
          .bytes_gathered_per_step = per_step(gathered_, clock_.steps()),
          .launches_per_step = per_step(launches_, launch_steps_),
          .bytes_per_step = launch_steps_ > 0 ? touched_ / static_cast<double>(launch_steps_) : 0,
          .stall_fraction = clock_.seconds() > 0 ? std::min(1.0, stall_seconds_ / clock_.seconds()) : 0,
          .peak_bytes = engine_->memory().peak_bytes,
          .first_step_samples = first_step_samples_};
}

}  // namespace samebytes::train
