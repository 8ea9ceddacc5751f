// Schedules: the learning rate as a function of the step, for Optimizer::set_schedule. Each is a value, called with the
// number of the step (the first is 0), so all that a saved run needs is its step count. Formulas are PyTorch's
// (torch.optim.lr_scheduler); a PyTorch scheduler that is stepped once an epoch is one whose steps are counted in
// epochs. Any of them takes a warm-up, and they follow one another or multiply:
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
// steps, then down to max_rate / div_factor / final_div_factor at the last one and after it; with three_phase down to
// where it began in as many steps as it went up, and to the end in the others. Momentum (beta1) goes the other way.
// Optimizers take it whole: set_one_cycle(adam, cycle).
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

// rate times a factor that goes straight from start_factor to end_factor in `steps` steps (LinearLR).
struct Linear {
  double rate = 1e-3;
  double start_factor = 1.0 / 3.0;
  double end_factor = 1.0;
  std::int64_t steps = 5;
  double operator()(std::int64_t step) const;
};

// Half a cosine from rate to final_rate in `period` steps, then again from rate, each period `growth` times longer than
// the one before (I. Loshchilov and F. Hutter, "SGDR", 2017, equation 5; CosineAnnealingWarmRestarts). Without restarts
// it is Schedule's Decay::cosine.
struct CosineRestarts {
  double rate = 1e-3;
  std::int64_t period = 0;  // needed
  std::int64_t growth = 1;
  double final_rate = 0.0;
  double operator()(std::int64_t step) const;
};

// In a straight line up to after(0) in `steps` steps, from start_factor after(0) on, then after(step - steps): P. Goyal
// et al., "Accurate, large minibatch SGD", 2017, section 2.2. With start_factor 0 step k has (k + 1) / steps of it, so
// that the first step does not stand still.
RateSchedule warm_up(RateSchedule after, std::int64_t steps, double start_factor = 0.0);
// parts[0] up to milestones[0], then parts[1], which begins at its own step 0, and so on (SequentialLR).
RateSchedule sequential(std::vector<RateSchedule> parts, std::vector<std::int64_t> milestones);
// The product of all (ChainedScheduler): one has the rate, the others, made with rate 1, are factors.
RateSchedule chained(std::vector<RateSchedule> factors);

class Optimizer;
// The rate, and the momentum or beta1 where the optimizer has one, follow the cycle.
void set_one_cycle(Optimizer& optimizer, const OneCycle& cycle);

}  // namespace samebytes::optim
