// Schedules: the learning rate as a function of the step, for Optimizer::set_schedule. Each is a value that is called
// with the number of the step (from 0), so a saved run needs only its step count. Formulas are PyTorch's
// (torch.optim.lr_scheduler); for a PyTorch scheduler that is stepped once per epoch, count steps in epochs. Schedules
// can get a warm-up, follow one another, or multiply:
//   adam.set_schedule(optim::warm_up(optim::Polynomial{.rate = 1e-3, .steps = 900, .power = 2}, 100));
// All throw ArgumentError for a negative step and for options out of range.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace samebytes::optim {

using RateSchedule = std::function<double(std::int64_t step)>;

enum class Anneal : std::uint8_t { cosine, linear };

// L. Smith and N. Topin, "Super-convergence", 2019: from max_rate / div_factor up to max_rate in pct_start of the
// steps, then down to max_rate / div_factor / final_div_factor at the last step and after it. With three_phase it first
// falls back to the initial rate in as many steps as it rose, and to the end in the remaining ones. Momentum (beta1)
// moves inversely. set_one_cycle(adam, cycle) sets both.
struct OneCycle {
  double max_rate = 1e-2;
  std::int64_t total_steps = 0;  // needed
  double pct_start = 0.3;
  Anneal anneal = Anneal::cosine;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
  bool three_phase = false;
  double base_momentum = 0.85;  // at max_rate
  double max_momentum = 0.95;

  double operator()(std::int64_t step) const;
  double momentum(std::int64_t step) const;
};

// rate gamma^floor(step / every) (StepLR).
struct StepDecay {
  double rate = 1e-3;
  std::int64_t every = 1;
  double gamma = 0.1;
  double operator()(std::int64_t step) const;
};

// rate gamma^(number of milestones reached) (MultiStepLR).
struct MultiStep {
  double rate = 1e-3;
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;
  double operator()(std::int64_t step) const;
};

// rate gamma^step (ExponentialLR).
struct Exponential {
  double rate = 1e-3;
  double gamma = 0.999;
  double operator()(std::int64_t step) const;
};

// rate (1 - step / steps)^power, 0 from step `steps` on (PolynomialLR).
struct Polynomial {
  double rate = 1e-3;
  std::int64_t steps = 5;
  double power = 1.0;
  double operator()(std::int64_t step) const;
};

// rate times a factor that goes linearly from start_factor to end_factor in `steps` steps (LinearLR).
struct Linear {
  double rate = 1e-3;
  double start_factor = 1.0 / 3.0;
  double end_factor = 1.0;
  std::int64_t steps = 5;
  double operator()(std::int64_t step) const;
};

// Half a cosine from rate to final_rate in `period` steps, then a restart from rate, each period `growth` times longer
// than the previous one (I. Loshchilov and F. Hutter, "SGDR", 2017, equation 5; CosineAnnealingWarmRestarts). Without
// restarts it is Schedule's Decay::cosine.
struct CosineRestarts {
  double rate = 1e-3;
  std::int64_t period = 0;  // needed
  std::int64_t growth = 1;
  double final_rate = 0.0;
  double operator()(std::int64_t step) const;
};

// Rises linearly from start_factor * after(0) to after(0) in `steps` steps, then is after(step - steps): P. Goyal et
// al., "Accurate, large minibatch SGD", 2017, section 2.2. With start_factor 0, step k has the share (k + 1) / steps,
// so the first rate is not 0.
RateSchedule warm_up(RateSchedule after, std::int64_t steps, double start_factor = 0.0);
// parts[0] until milestones[0], then parts[1], starting at its step 0, and so on (SequentialLR).
RateSchedule sequential(std::vector<RateSchedule> parts, std::vector<std::int64_t> milestones);
// The product of all (ChainedScheduler): one has the rate; the others, with rate 1, are factors.
RateSchedule chained(std::vector<RateSchedule> factors);

class Optimizer;
// Makes the rate, and the momentum or beta1 if the optimizer has one, follow the cycle.
void set_one_cycle(Optimizer& optimizer, const OneCycle& cycle);

}  // namespace samebytes::optim
