#include "samebytes/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "samebytes/error.h"

namespace samebytes::optim {

double Schedule::operator()(std::int64_t step) const {
  if (step < 0) throw ArgumentError("schedule: expected steps count from 0, got " + std::to_string(step));
  if (decay != Decay::constant && steps <= warmup)
    throw ArgumentError("schedule: a decay needs more steps than its warm-up of " + std::to_string(warmup) + ", got " +
                        std::to_string(steps));
  if (step < warmup) return rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (decay == Decay::constant) return rate;
  const double progress = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(steps - warmup));
  const double left = decay == Decay::linear ? 1.0 - progress : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return final_rate + (rate - final_rate) * left;
}

}  // namespace samebytes::optim
