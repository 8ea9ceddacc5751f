// AdaptiveSteps: what train does with --adaptive-batch: each batch of the loader is a micro-batch, half as large as the
// first size, and an update takes as many of them as the gradient noise scale asks for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/options.h"
#include "cli/recipe.h"
#include "cli/session.h"
#include "samebytes/optim.h"
#include "samebytes/run_state.h"

namespace samebytes::cli {

class AdaptiveSteps {
 public:
  // Samples of a micro-batch for --batch, the first size. Throws UsageError for an odd one and what excludes it.
  static std::int64_t micro_batch(const Options& options, std::int64_t first_batch);

  // Uses all of them. Throws UsageError for a largest size below the first, or above the set.
  AdaptiveSteps(const Options& options, const Recipe& recipe, Precision& precision, optim::Optimizer& optimizer,
                std::int64_t first_batch, std::int64_t training_samples);

  // Micro-batch `step` (from 0) of the run: adds its gradient, and takes a step where they are enough or where it is
  // the last one of the epoch. Returns whether it did.
  bool add(const Array& loss, std::int64_t samples, std::int64_t step, bool is_last_of_epoch);
  // "step 40: batch 64, noise scale 410, rate x1.41", once after each change.
  std::optional<std::string> news();

  // All that the next steps depend on beside the optimizer, in the middle of an update too.
  void add_to(RunState& state);

  std::int64_t batch() const { return size_.batch(); }
  // {"batch", "noise_scale"}: the latter null where it is not known or beyond measure.
  nlohmann::ordered_json to_json() const;
  void fill(Summary& summary) const;

 private:
  Precision& precision_;
  optim::Optimizer& optimizer_;
  optim::RateSchedule schedule_;
  optim::Accumulator sums_;
  optim::NoiseScaleMeter meter_;
  optim::AdaptiveBatch size_;
  bool has_news_ = false;
};

}  // namespace samebytes::cli
