#include "samebytes/optim/batch_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "samebytes/budget.h"
#include "samebytes/error.h"

namespace samebytes::optim {
namespace {

constexpr std::int64_t kLargestMini = 512;
constexpr std::int64_t kLeastForBatchNorm = 16;
constexpr std::int64_t kLeastStepsOfAnEpoch = 10;  // fewer updates in a pass over the data learn little from it
constexpr double kWorthGrowing = 1.1;              // times the samples per second
constexpr double kAsGood = 1.1;                    // times the least time to the target
constexpr double kMemoryShare = 0.85;

struct Range {
  std::int64_t low, high;
  const char* name;
  const char* unit;
};

Range range_of(BatchTask task) {
  switch (task) {
    case BatchTask::detection: return {8, 16, "detection", "images"};
    case BatchTask::language: return {16, 64, "language", "sequences"};
    case BatchTask::classification: break;
  }
  return {32, 256, "classification", "samples"};
}

bool fits_batch_norm(std::int64_t batch, const BatchFacts& facts) {
  return !facts.has_batch_norm || batch >= kLeastForBatchNorm;
}

bool fits_memory(const MeasuredBatch& one, const BatchFacts& facts) {
  return facts.memory_limit == 0 ||
         static_cast<double>(one.peak_bytes) <= kMemoryShare * static_cast<double>(facts.memory_limit);
}

const MeasuredBatch& choose(std::span<const MeasuredBatch> all, const BatchFacts& facts, std::string& reason) {
  std::vector<const MeasuredBatch*> sound;
  for (const MeasuredBatch& one : all)
    if (fits_batch_norm(one.batch, facts) && fits_memory(one, facts)) sound.push_back(&one);
  if (sound.empty())
    for (const MeasuredBatch& one : all) sound.push_back(&one);

  const auto least_memory = [](const MeasuredBatch* a, const MeasuredBatch* b) {
    return a->peak_bytes != b->peak_bytes ? a->peak_bytes < b->peak_bytes : a->batch < b->batch;
  };
  double least = HUGE_VAL;
  for (const MeasuredBatch* one : sound)
    if (one->seconds_to_target) least = std::min(least, *one->seconds_to_target);
  if (least < HUGE_VAL) {
    std::vector<const MeasuredBatch*> good;
    for (const MeasuredBatch* one : sound)
      if (one->seconds_to_target && *one->seconds_to_target <= kAsGood * least) good.push_back(one);
    const MeasuredBatch& best = **std::min_element(good.begin(), good.end(), least_memory);
    reason = fmt::format("it reached the target in {}", duration_text(*best.seconds_to_target));
    if (good.size() > 1)
      reason +=
          fmt::format(", within a tenth of the least ({}), and needs least memory of those", duration_text(least));
    return best;
  }
  const bool is_known = facts.noise_scale > 0 && std::isfinite(facts.noise_scale);
  const auto most = is_known ? facts.noise_scale : static_cast<double>(range_of(facts.task).high);
  std::vector<const MeasuredBatch*> small;
  for (const MeasuredBatch* one : sound)
    if (static_cast<double>(one->batch) <= most) small.push_back(one);
  if (small.empty())
    small.push_back(
        *std::min_element(sound.begin(), sound.end(), [](auto* a, auto* b) { return a->batch < b->batch; }));
  const MeasuredBatch& best = **std::max_element(
      small.begin(), small.end(), [](auto* a, auto* b) { return a->samples_per_second < b->samples_per_second; });
  reason = fmt::format("no size reached the target; of those up to {}, {:.0f}, it is the fastest with {} samples/s",
                       is_known ? "the noise scale" : "the largest that is usual", most,
                       count_text(best.samples_per_second));
  return best;
}

BatchAdvice about_batch_norm(const MeasuredBatch& best, const BatchFacts& facts) {
  const bool holds = fits_batch_norm(best.batch, facts);
  std::string text = fmt::format("batch norm wants {} samples or more for its statistics; ", kLeastForBatchNorm);
  if (!facts.has_batch_norm)
    text += "this model has none, so small batches are sound";
  else
    text += fmt::format("this model has it, and {} are {}", best.batch,
                        holds ? "enough" : "too few: group norm, or a larger batch");
  return {"batch norm", text, holds};
}

BatchAdvice about_task(const MeasuredBatch& best, const BatchFacts& facts) {
  const Range range = range_of(facts.task);
  const bool holds = best.batch >= range.low && best.batch <= range.high;
  return {
      "usual sizes",
      fmt::format("{} usually takes {} to {} {}; {} is {}", range.name, range.low, range.high, range.unit, best.batch,
                  holds                    ? "among them"
                  : best.batch < range.low ? "fewer: the gradient is noisier than usual, which regularises"
                                           : "more: watch the test loss, large batches may generalise worse"),
      holds};
}

// Begin small, and grow as long as the device gives more samples a second for it.
BatchAdvice about_growth(std::span<const MeasuredBatch> all, const MeasuredBatch& best) {
  std::vector<MeasuredBatch> sorted(all.begin(), all.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
  std::size_t last = 0;
  while (last + 1 < sorted.size() &&
         sorted[last + 1].samples_per_second >= kWorthGrowing * sorted[last].samples_per_second)
    ++last;
  std::string text = "begin small and grow while that makes samples faster; ";
  if (sorted.size() < 2)
    text += "one size was measured";
  else if (last == 0)
    text +=
        fmt::format("from {} to {} samples/s rise by less than a tenth ({} to {})", sorted[0].batch, sorted[1].batch,
                    count_text(sorted[0].samples_per_second), count_text(sorted[1].samples_per_second));
  else
    text += fmt::format("samples/s rise up to {} ({}, {:.1f} times those of {}){}", sorted[last].batch,
                        count_text(sorted[last].samples_per_second),
                        sorted[last].samples_per_second / sorted[0].samples_per_second, sorted[0].batch,
                        last + 1 < sorted.size() ? ", not beyond" : ", and may rise beyond");
  return {"grow from small", text, best.batch <= sorted[last].batch || best.seconds_to_target.has_value()};
}

BatchAdvice about_rate(const MeasuredBatch& best, const BatchFacts& facts) {
  const ScaledRate scaled =
      scale_rate(facts.base_rate, {.rule = facts.rule, .batch = best.batch, .base_batch = facts.base_batch});
  const char* rule = facts.rule == ScaleRule::linear ? "linear rule (k times the batch, k times the rate)"
                     : facts.rule == ScaleRule::square_root
                         ? "square-root rule (k times the batch, sqrt(k) times the rate)"
                         : "the rate stays";
  std::string text = fmt::format("{}: {:.3g} for {} samples, from {:.3g} for {}", rule, scaled.rate, best.batch,
                                 facts.base_rate, facts.base_batch);
  if (scaled.is_clamped)
    text += fmt::format("; the rule ends at {:.3g} times the rate, and the ceiling held", scaled.factor);
  else if (scaled.factor > 1)
    text += fmt::format("; a rate that grew {:.3g} times needs a warm-up from the old one", scaled.factor);
  return {"learning rate", text, !scaled.is_clamped};
}

BatchAdvice about_noise(const MeasuredBatch& best, const BatchFacts& facts) {
  const char* rule = "below the gradient noise scale twice the batch takes about half the steps, far above it as many";
  if (!std::isfinite(facts.noise_scale))
    return {"critical batch",
            fmt::format("{}; it is larger than could be measured, so larger batches than {} pay in steps", rule,
                        best.batch),
            true};
  const bool holds = static_cast<double>(best.batch) <= 2 * facts.noise_scale;
  return {"critical batch",
          fmt::format("{}; it is about {} samples, and {} is {}", rule, count_text(std::round(facts.noise_scale)),
                      best.batch,
                      static_cast<double>(best.batch) < 0.5 * facts.noise_scale ? "well below it: larger ones pay"
                      : holds                                                   ? "near it"
                              : "beyond it: samples are spent for few steps less"),
          holds};
}

BatchAdvice about_set(const MeasuredBatch& best, const BatchFacts& facts) {
  const std::int64_t steps = (facts.training_samples + best.batch - 1) / best.batch;
  return {"size of the set",
          fmt::format("a batch is a small part of the training set; {} of {} samples are {} steps a pass{}", best.batch,
                      count_text(static_cast<double>(facts.training_samples)), count_text(static_cast<double>(steps)),
                      steps < kLeastStepsOfAnEpoch ? ", which is few" : ""),
          steps >= kLeastStepsOfAnEpoch};
}

BatchAdvice about_memory(const MeasuredBatch& best, const BatchFacts& facts) {
  const bool holds = fits_memory(best, facts);
  return {
      "memory",
      fmt::format("a step should leave {:.0f} % of the memory free; {} samples need {} of {}", 100 * (1 - kMemoryShare),
                  best.batch, bytes_text(best.peak_bytes), bytes_text(facts.memory_limit)),
      holds};
}

}  // namespace

BatchClass class_of_batch(std::int64_t batch, std::int64_t training_samples) {
  if (batch <= 1) return BatchClass::single;
  if (training_samples > 0 && batch >= training_samples) return BatchClass::full;
  return batch <= kLargestMini ? BatchClass::mini : BatchClass::large;
}

const char* name_of(BatchClass kind) {
  switch (kind) {
    case BatchClass::single: return "single";
    case BatchClass::large: return "large";
    case BatchClass::full: return "full";
    case BatchClass::mini: break;
  }
  return "mini";
}

BatchRecommendation recommend_batch(std::span<const MeasuredBatch> measured, const BatchFacts& facts) {
  if (measured.empty()) throw ArgumentError("recommend_batch: needs at least one measured batch");
  for (const MeasuredBatch& one : measured)
    if (one.batch < 1)
      throw ArgumentError("recommend_batch: a batch has at least 1 sample, got " + std::to_string(one.batch));
  BatchRecommendation result;
  const MeasuredBatch& best = choose(measured, facts, result.reason);
  result.batch = best.batch;
  result.advice = {about_batch_norm(best, facts), about_task(best, facts), about_growth(measured, best)};
  if (facts.base_batch > 0) result.advice.push_back(about_rate(best, facts));
  if (facts.noise_scale > 0) result.advice.push_back(about_noise(best, facts));
  if (facts.training_samples > 0) result.advice.push_back(about_set(best, facts));
  if (facts.memory_limit > 0 && best.peak_bytes > 0) result.advice.push_back(about_memory(best, facts));
  return result;
}

}  // namespace samebytes::optim
