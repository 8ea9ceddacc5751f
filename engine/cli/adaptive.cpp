#include "cli/adaptive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/text.h"
#include "cli/usage_error.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kFirstMicroBatches = 2;  // of the first size: two sizes are what a noise scale is measured with
constexpr std::int64_t kMostGrowth = 32;
constexpr std::int64_t kLeastStepsOfAnEpoch = 8;

optim::AdaptiveBatchOptions sizes_of(const Options& options, std::int64_t first, std::int64_t samples) {
  const std::int64_t usual = std::max(first, std::min(kMostGrowth * first, samples / kLeastStepsOfAnEpoch));
  const std::int64_t most = options.adaptive.max_batch.value_or(usual);
  if (most < first) throw UsageError(fmt::format("--max-batch {} is below the first batch, {}", most, first));
  if (most > samples)
    throw UsageError(
        fmt::format("--max-batch {} is larger than the training set, which has {} samples", most, samples));
  return {.batch = first, .max_batch = most, .rule = scale_rule_of(options)};
}

}  // namespace

std::int64_t AdaptiveSteps::micro_batch(const Options& options, std::int64_t first_batch) {
  if (first_batch % kFirstMicroBatches != 0)
    throw UsageError(fmt::format(
        "--adaptive-batch measures noise between the halves of a batch: an even --batch, {} came", first_batch));
  if (options.release_gradients)
    throw UsageError("--adaptive-batch adds gradients up, which --release-gradients has thrown away by then");
  if (options.step.accumulate > 1 || options.step.micro_batch)
    throw UsageError(
        "--adaptive-batch chooses how many micro-batches make an update; leave --accumulate and "
        "--micro-batch out");
  return first_batch / kFirstMicroBatches;
}

AdaptiveSteps::AdaptiveSteps(const Options& options, const Recipe& recipe, Precision& precision,
                             optim::Optimizer& optimizer, std::int64_t first_batch, std::int64_t training_samples)
    : precision_(precision),
      optimizer_(optimizer),
      schedule_(recipe.rate_schedule("--adaptive-batch")),
      sums_(optimizer),
      meter_(sums_),
      size_(sizes_of(options, first_batch, training_samples)) {
  optimizer_.set_rate(schedule_(0));
}

bool AdaptiveSteps::add(const Array& loss, std::int64_t samples, std::int64_t step, bool is_last_of_epoch) {
  optim::GradScaler* scaler = precision_.scaler();
  sums_.add(scaler ? scaler->scale(loss) : loss, static_cast<double>(samples));
  if (sums_.samples() < static_cast<double>(size_.batch()) && !is_last_of_epoch) return false;
  optimizer_.set_rate(schedule_(step) * size_.rate_factor());
  meter_.measure(scaler);
  if (scaler) {
    sums_.step(*scaler);
    scaler->update();
  } else {
    sums_.step();
  }
  has_news_ = size_.stepped(meter_);
  return true;
}

void AdaptiveSteps::add_to(RunState& state) {
  state.add("micro-batches", sums_);
  state.add("noise scale", meter_);
  state.add("adaptive batch", size_);
}

std::optional<std::string> AdaptiveSteps::news() {
  if (!std::exchange(has_news_, false)) return {};
  const optim::AdaptiveBatchOptions& options = size_.options();
  const optim::ScaledRate scaled = optim::scale_rate(
      1.0, {.rule = options.rule, .batch = batch(), .base_batch = options.batch, .most_factor = options.most_factor});
  const double noise = size_.noise_scale();
  return fmt::format("update {}: batch {}, noise scale {}, rate times {:.3g} after {} updates", size_.steps(), batch(),
                     std::isfinite(noise) ? count_text(noise) : "beyond measure", scaled.factor, options.warmup);
}

nlohmann::ordered_json AdaptiveSteps::to_json() const {
  const double noise = size_.noise_scale();
  return {{"batch", batch()}, {"noise_scale", std::isfinite(noise) ? nlohmann::ordered_json(noise) : nullptr}};
}

void AdaptiveSteps::fill(Summary& summary) const {
  summary.last_batch = batch();
  summary.updates = size_.steps();
  summary.noise_scale = size_.noise_scale();
}

}  // namespace samebytes::cli
