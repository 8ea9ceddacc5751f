#include "samebytes/optim/scale_rate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "optim/require.h"

namespace samebytes::optim {
namespace {

constexpr std::int64_t kWarmUpPart = 4;  // the warm-up is at most one part in so many of a run

}  // namespace

ScaledRate scale_rate(double base_rate, const ScaleRateOptions& options) {
  require(base_rate >= 0.0 && base_rate < HUGE_VAL, "scale_rate", "the rate must be at least 0", base_rate);
  require(options.batch >= 1, "scale_rate", "batch must be at least 1", static_cast<double>(options.batch));
  require(options.base_batch >= 1, "scale_rate", "base_batch must be at least 1",
          static_cast<double>(options.base_batch));
  require(options.most_factor > 0.0, "scale_rate", "most_factor must be above 0", options.most_factor);
  require(options.most_rate >= 0.0, "scale_rate", "most_rate must be at least 0", options.most_rate);
  require(options.warmup >= 0, "scale_rate", "warmup must be at least 0", static_cast<double>(options.warmup));
  require(options.warmup_epochs >= 0, "scale_rate", "warmup_epochs must be at least 0",
          static_cast<double>(options.warmup_epochs));
  const double k = static_cast<double>(options.batch) / static_cast<double>(options.base_batch);
  const double wanted = options.rule == ScaleRule::none ? 1.0 : options.rule == ScaleRule::linear ? k : std::sqrt(k);
  double factor = std::min(wanted, options.most_factor);
  if (options.most_rate > 0.0 && base_rate > 0.0) factor = std::min(factor, options.most_rate / base_rate);
  ScaledRate result{base_rate * factor, factor, factor < wanted, options.warmup, 0.0};
  if (factor <= 1.0) return result;
  std::int64_t epochs = options.warmup_epochs * options.epoch_steps;
  if (options.total_steps > 0) epochs = std::min(epochs, options.total_steps / kWarmUpPart);
  result.warmup = std::max(options.warmup, epochs);
  result.start_factor = 1.0 / factor;
  return result;
}

}  // namespace samebytes::optim
