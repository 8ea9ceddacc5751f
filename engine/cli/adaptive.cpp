#include "cli/adaptive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::int64_t adaptive_micro_batch(const Options& options, std::int64_t first_batch) {
  if (first_batch % kFirstMicroBatches != 0)
    throw UsageError(
        fmt::format("--adaptive-batch measures noise between the halves of a batch: expected an even --batch, got {}",
                    first_batch));
  if (options.release_gradients)
    throw UsageError("--adaptive-batch adds gradients up, which --release-gradients has thrown away by then");
  if (options.step.accumulate > 1 || options.step.micro_batch)
    throw UsageError(
        "--adaptive-batch chooses how many micro-batches make an update; leave --accumulate and "
        "--micro-batch out");
  return first_batch / kFirstMicroBatches;
}

train::AdaptiveBatching adaptive_batching(const Options& options, const Recipe& recipe, std::int64_t first_batch,
                                          std::int64_t training_samples) {
  const optim::RateSchedule rate = recipe.rate_schedule("--adaptive-batch");
  return {.sizes = sizes_of(options, first_batch, training_samples), .rate = rate};
}

std::string to_text(const train::BatchReport& report) {
  return fmt::format("update {}: batch {}, noise scale {}, rate times {:.3g} after {} updates", report.updates,
                     report.batch,
                     std::isfinite(report.noise_scale) ? count_text(report.noise_scale) : "beyond measure",
                     report.rate_factor, report.warmup);
}

}  // namespace samebytes::cli
