// AdaptiveSteps: each batch of the loader is a micro-batch, and an update takes as many of them as the gradient noise
// scale asks for.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/train/session.h"

namespace samebytes::train {

class AdaptiveSteps {
 public:
  // Uses both. Throws ArgumentError without a rate, and as AdaptiveBatch does.
  AdaptiveSteps(const AdaptiveBatching& options, Precision& precision, optim::Optimizer& optimizer);

  // Micro-batch `step` (from 0) of the run: adds its gradient, and makes the update where they are enough or where it
  // is the last one of the epoch. Returns whether it did.
  bool add(const Array& loss, std::int64_t samples, std::int64_t step, bool is_last_of_epoch);
  // Once after each change.
  std::optional<BatchReport> news(std::int64_t step);
  BatchReport report(std::int64_t step) const;

  // All that the next steps depend on beside the optimizer, in the middle of an update too.
  void add_to(RunState& state);

 private:
  void update(std::int64_t step);

  Precision& precision_;
  optim::Optimizer& optimizer_;
  optim::RateSchedule schedule_;
  optim::Accumulator sums_;
  optim::NoiseScaleMeter meter_;
  optim::AdaptiveBatch size_;
  bool has_news_ = false;
};

}  // namespace samebytes::train
