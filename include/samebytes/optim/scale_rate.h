// Scales a learning rate to a different batch size (P. Goyal et al., "Accurate, large minibatch SGD", 2017, section
// 2.1: k times the batch, k times the rate; A. Krizhevsky, "One weird trick", 2014, section 5: sqrt(k) times, for
// adaptive optimizers). Neither rule holds for all sizes or from the first step: the factor has a ceiling, and a larger
// rate has a warm-up that starts at the base rate.
#pragma once

#include <cstdint>

#include "samebytes/optim/schedules.h"

namespace samebytes::optim {

enum class ScaleRule : std::uint8_t { none, linear, square_root };

struct ScaleRateOptions {
  ScaleRule rule = ScaleRule::linear;
  std::int64_t batch = 0;          // samples per step of the run; required
  std::int64_t base_batch = 0;     // ... for which the base rate was found; required
  double most_factor = 32.0;       // Goyal et al.: the rule fails somewhere above 8192 samples, 32 times their 256
  double most_rate = 0.0;          // 0: no ceiling
  std::int64_t warmup = 0;         // minimum number of steps
  std::int64_t epoch_steps = 0;    // 0: unknown, then the warm-up is `warmup`
  std::int64_t warmup_epochs = 5;  // minimum if the rate grows; Goyal et al., section 2.2
  std::int64_t total_steps = 0;    // the warm-up is at most a quarter of these; 0: unknown
};

struct ScaledRate {
  double rate;          // base rate times factor
  double factor;        // after clamping; below 1 for smaller batches
  bool is_clamped;      // whether a ceiling applied
  std::int64_t warmup;  // steps
  double start_factor;  // of the warm-up: 1 / factor; 0 if the rate does not grow
  // Prepends this warm-up to `after`, which must use `rate`.
  RateSchedule schedule(RateSchedule after) const { return warm_up(std::move(after), warmup, start_factor); }
};

// Throws ArgumentError for batches below 1 and ceilings that are not above 0.
ScaledRate scale_rate(double base_rate, const ScaleRateOptions& options);

}  // namespace samebytes::optim
