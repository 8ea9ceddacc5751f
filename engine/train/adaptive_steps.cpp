#include "train/adaptive_steps.h"

#include <utility>

#include "samebytes/error.h"
#include "samebytes/optim/scale_rate.h"

namespace samebytes::train {

AdaptiveSteps::AdaptiveSteps(const AdaptiveBatching& options, Precision& precision, optim::Optimizer& optimizer)
    : precision_(precision),
      optimizer_(optimizer),
      schedule_(options.rate),
      sums_(optimizer),
      meter_(sums_),
      size_(options.sizes) {
  if (!schedule_) throw ArgumentError("adaptive batch: expected a rate as a function of the micro-batch, got none");
  optimizer_.set_rate(schedule_(0));
}

bool AdaptiveSteps::add(const Array& loss, std::int64_t samples, std::int64_t step, bool is_last_of_epoch) {
  sums_.add(precision_.scaled(loss), static_cast<double>(samples));
  if (sums_.samples() < static_cast<double>(size_.batch()) && !is_last_of_epoch) return false;
  update(step);
  return true;
}

void AdaptiveSteps::update(std::int64_t step) {
  optimizer_.set_rate(schedule_(step) * size_.rate_factor());
  meter_.measure(precision_.scaler());
  precision_.step(sums_);
  has_news_ = size_.stepped(meter_);
}

void AdaptiveSteps::add_to(RunState& state) {
  state.add("micro-batches", sums_);
  state.add("noise scale", meter_);
  state.add("adaptive batch", size_);
}

std::optional<BatchReport> AdaptiveSteps::news(std::int64_t step) {
  return std::exchange(has_news_, false) ? std::optional(report(step)) : std::nullopt;
}

BatchReport AdaptiveSteps::report(std::int64_t step) const {
  const optim::AdaptiveBatchOptions& options = size_.options();
  const optim::ScaledRate scaled = optim::scale_rate(
      1.0,
      {.rule = options.rule, .batch = size_.batch(), .base_batch = options.batch, .most_factor = options.most_factor});
  return {step, size_.steps(), size_.batch(), size_.noise_scale(), scaled.factor, options.warmup};
}

}  // namespace samebytes::train
