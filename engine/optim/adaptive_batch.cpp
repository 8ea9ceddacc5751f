#include "samebytes/optim/adaptive_batch.h"

#include <cmath>
#include <limits>
#include <string>

#include "optim/require.h"

namespace samebytes::optim {
AdaptiveBatch::AdaptiveBatch(const AdaptiveBatchOptions& options)
    : options_(options),
      batch_(options.batch),
      noise_scale_(std::numeric_limits<double>::quiet_NaN()),
      warmed_(options.warmup) {
  require(options.batch >= 1, "AdaptiveBatch", "batch must be at least 1", static_cast<double>(options.batch));
  require(options.max_batch >= options.batch, "AdaptiveBatch", "max_batch must be at least batch",
          static_cast<double>(options.max_batch));
  require(options.every >= 1, "AdaptiveBatch", "every must be at least 1", static_cast<double>(options.every));
  require(options.patience >= 1, "AdaptiveBatch", "patience must be at least 1", static_cast<double>(options.patience));
  require(options.grow_above > 0.0 && options.grow_above < HUGE_VAL, "AdaptiveBatch", "grow_above must be above 0",
          options.grow_above);
  require(options.shrink_below >= 0.0 && 2.0 * options.shrink_below <= options.grow_above, "AdaptiveBatch",
          "shrink_below must be at least 0 and at most half of grow_above", options.shrink_below);
  require(options.most_factor > 0.0, "AdaptiveBatch", "most_factor must be above 0", options.most_factor);
  require(options.warmup >= 0, "AdaptiveBatch", "warmup must be at least 0", static_cast<double>(options.warmup));
}

double AdaptiveBatch::factor_of(std::int64_t batch) const {
  return scale_rate(
             1.0,
             {.rule = options_.rule, .batch = batch, .base_batch = options_.batch, .most_factor = options_.most_factor})
      .factor;
}

double AdaptiveBatch::rate_factor() const {
  const double target = factor_of(batch_);
  if (warmed_ >= options_.warmup) return target;
  // The first step at the new batch has one part of the way behind it, as in warm_up().
  const double part = static_cast<double>(warmed_ + 1) / static_cast<double>(options_.warmup);
  return old_factor_ + (target - old_factor_) * part;
}

void AdaptiveBatch::change(std::int64_t batch) {
  old_factor_ = rate_factor();
  batch_ = batch;
  warmed_ = 0;
  above_ = below_ = 0;
}

void AdaptiveBatch::stepped() {
  ++steps_;
  if (warmed_ < options_.warmup) ++warmed_;
}

bool AdaptiveBatch::stepped(NoiseScaleMeter& meter) {
  stepped();
  return steps_ % options_.every == 0 && measured(meter.read().noise_scale());
}

bool AdaptiveBatch::measured(double noise_scale) {
  if (std::isnan(noise_scale)) return false;
  noise_scale_ = noise_scale;
  const auto batch = static_cast<double>(batch_);
  above_ = noise_scale > options_.grow_above * batch ? above_ + 1 : 0;
  below_ = noise_scale < options_.shrink_below * batch ? below_ + 1 : 0;
  if (above_ >= options_.patience && batch_ <= options_.max_batch / 2) {
    change(2 * batch_);
    return true;
  }
  if (below_ >= options_.patience && batch_ > options_.batch) {
    change(batch_ / 2);
    return true;
  }
  return false;
}

StateDict AdaptiveBatch::state_dict() const {
  return {{},
          {{"batch", static_cast<double>(batch_)},
           {"steps", static_cast<double>(steps_)},
           {"above", static_cast<double>(above_)},
           {"below", static_cast<double>(below_)},
           {"noise_scale", noise_scale_},
           {"old_factor", old_factor_},
           {"warmed", static_cast<double>(warmed_)}}};
}

void AdaptiveBatch::load_state_dict(const StateDict& state) {
  const auto whole = [&](const char* name, std::int64_t low) {
    const double value = number_of("AdaptiveBatch", state, name);
    if (!(value >= static_cast<double>(low) && value < 0x1p53) || value != std::floor(value))
      throw ArgumentError("AdaptiveBatch: " + std::string(name) + " must be a whole number from " +
                          std::to_string(low) + " on, the state has " + std::to_string(value));
    return static_cast<std::int64_t>(value);
  };
  const std::int64_t batch = whole("batch", options_.batch);
  std::int64_t legal = options_.batch;
  while (legal < batch) legal *= 2;
  require(batch == legal && batch <= options_.max_batch, "AdaptiveBatch",
          "batch must be that of the options times a power of two, at most max_batch", static_cast<double>(batch));
  const std::int64_t steps = whole("steps", 0), above = whole("above", 0), below = whole("below", 0);
  const std::int64_t warmed = whole("warmed", 0);
  const double noise = number_of("AdaptiveBatch", state, "noise_scale");
  const double factor = number_of("AdaptiveBatch", state, "old_factor");
  require(factor > 0.0 && factor < HUGE_VAL, "AdaptiveBatch", "old_factor must be above 0", factor);
  batch_ = batch;
  steps_ = steps;
  above_ = above;
  below_ = below;
  warmed_ = warmed;
  noise_scale_ = noise;
  old_factor_ = factor;
}

}  // namespace samebytes::optim
