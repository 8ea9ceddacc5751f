// Schedule: the learning rate as a function of the step - constant, linear or cosine, each with a linear warm-up. A
// value type.
//   adam.set_schedule(optim::Schedule{.decay = optim::Decay::cosine, .rate = 1e-3, .warmup = 100, .steps = 3000});
#pragma once

#include <cstdint>

namespace samebytes::optim {

enum class Decay : std::uint8_t { constant, linear, cosine };

struct Schedule {
  Decay decay = Decay::constant;
  double rate = 1e-3;       // after the warm-up
  std::int64_t warmup = 0;  // steps from rate / warmup up to rate
  std::int64_t steps = 0;   // total, including the warm-up; used by linear and cosine
  double final_rate = 0.0;  // at step `steps` and after it; used by linear and cosine

  // The rate of a step; the first step is 0. `linear` falls linearly from rate to final_rate, `cosine` along half a
  // period (I. Loshchilov and F. Hutter, "SGDR", 2017, equation 5 without restarts). Throws ArgumentError for a
  // negative step and for a decay that is not longer than its warm-up.
  double operator()(std::int64_t step) const;
};

}  // namespace samebytes::optim
