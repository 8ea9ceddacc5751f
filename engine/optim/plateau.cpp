#include "samebytes/optim/plateau.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "optim/require.h"

namespace samebytes::optim {
Plateau::Plateau(const PlateauOptions& options)
    : options_(options), rate_(options.rate), best_(options.mode == PlateauMode::min ? HUGE_VAL : -HUGE_VAL) {
  require(options.rate >= 0.0 && options.rate < HUGE_VAL, "Plateau", "rate must be at least 0", options.rate);
  require(options.factor > 0.0 && options.factor < 1.0, "Plateau", "factor must be above 0 and below 1",
          options.factor);
  require(options.patience >= 0, "Plateau", "patience must be at least 0", static_cast<double>(options.patience));
  require(options.threshold >= 0.0, "Plateau", "threshold must be at least 0", options.threshold);
  require(options.cooldown >= 0, "Plateau", "cooldown must be at least 0", static_cast<double>(options.cooldown));
  require(options.min_rate >= 0.0, "Plateau", "min_rate must be at least 0", options.min_rate);
  require(options.eps >= 0.0, "Plateau", "eps must be at least 0", options.eps);
}

bool Plateau::is_better(double value) const {
  const bool down = options_.mode == PlateauMode::min;
  if (std::isinf(best_)) return down ? value < best_ : value > best_;
  const double margin = options_.threshold;
  const double bound = options_.threshold_mode == PlateauThreshold::relative
                           ? best_ * (down ? 1.0 - margin : 1.0 + margin)
                           : best_ + (down ? -margin : margin);
  return down ? value < bound : value > bound;
}

bool Plateau::step(double value) {
  if (is_better(value)) {
    best_ = value;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= options_.patience) return false;
  cooldown_left_ = options_.cooldown;
  bad_steps_ = 0;
  const double next = std::max(rate_ * options_.factor, options_.min_rate);
  if (!(rate_ - next > options_.eps)) return false;
  rate_ = next;
  return true;
}

StateDict Plateau::state_dict() const {
  return {{},
          {{"rate", rate_},
           {"best", best_},
           {"bad_steps", static_cast<double>(bad_steps_)},
           {"cooldown_left", static_cast<double>(cooldown_left_)}}};
}

void Plateau::load_state_dict(const StateDict& state) {
  const double rate = number_of("Plateau", state, "rate"), best = number_of("Plateau", state, "best");
  const double bad = number_of("Plateau", state, "bad_steps"), left = number_of("Plateau", state, "cooldown_left");
  require(rate >= 0.0 && rate < HUGE_VAL, "Plateau", "rate must be at least 0", rate);
  require(bad >= 0.0 && bad < 0x1p53, "Plateau", "bad_steps must be at least 0", bad);
  require(left >= 0.0 && left < 0x1p53, "Plateau", "cooldown_left must be at least 0", left);
  rate_ = rate;
  best_ = best;
  bad_steps_ = static_cast<std::int64_t>(bad);
  cooldown_left_ = static_cast<std::int64_t>(left);
}

}  // namespace samebytes::optim
