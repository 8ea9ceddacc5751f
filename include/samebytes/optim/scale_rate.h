// Rates for other batches than the one they were found with (P. Goyal et al., "Accurate, large minibatch SGD", 2017,
// section 2.1: k times the batch, k times the rate; A. Krizhevsky, "One weird trick", 2014, section 5: sqrt(k) times,
// which adaptive optimizers want). Neither holds without end, nor from the first step on: the factor has a ceiling, and
// a larger rate comes with a warm-up that begins at the rate that was known.
#pragma once

#include <cstdint>

#include "samebytes/optim/schedules.h"

namespace samebytes::optim {

enum class ScaleRule : std::uint8_t { none, linear, square_root };

struct ScaleRateOptions {
  ScaleRule rule = ScaleRule::linear;
  std::int64_t batch = 0;       // samples per step of the run; needed
  std::int64_t base_batch = 0;  // ... that the rate was found with; needed
  double most_factor =
      32.0;                // Goyal et al. see it end between 8192 and 65536 samples, 32 times their 256 being the first
  double most_rate = 0.0;  // 0: no such ceiling
  std::int64_t warmup = 0;         // steps asked for anyway
  std::int64_t epoch_steps = 0;    // of the run; 0: unknown, and the warm-up is what was asked for
  std::int64_t warmup_epochs = 5;  // at least, where the rate grows; Goyal et al., section 2.2
  std::int64_t total_steps = 0;    // the warm-up takes at most a quarter of them; 0: unknown
};

struct ScaledRate {
  double rate;          // base rate times factor
  double factor;        // after the ceilings; below 1 for smaller batches
  bool is_clamped;      // a ceiling held
  std::int64_t warmup;  // steps
  double start_factor;  // where it begins, 1 / factor; 0 where the rate does not grow
  // after, made with `rate`, behind this warm-up.
  RateSchedule schedule(RateSchedule after) const { return warm_up(std::move(after), warmup, start_factor); }
};

// Throws ArgumentError for batches below 1 and ceilings that are not above 0.
ScaledRate scale_rate(double base_rate, const ScaleRateOptions& options);

}  // namespace samebytes::optim
