#include "samebytes/optim/schedules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "optim/require.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {
namespace {

void require_step(const char* schedule, std::int64_t step) {
  require(step >= 0, schedule, "steps count from 0", static_cast<double>(step));
}

void require_rate(const char* schedule, double rate) {
  require(rate >= 0.0 && rate < HUGE_VAL, schedule, "rate must be at least 0", rate);
}

void require_gamma(const char* schedule, double gamma) {
  require(gamma > 0.0 && gamma < HUGE_VAL, schedule, "gamma must be above 0", gamma);
}

double annealed(Anneal how, double start, double end, double share) {
  if (how == Anneal::linear) return (end - start) * share + start;
  return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * share) + 1.0);
}

// Where a cycle's quantity is at a step: it stands at points[i] when phase i begins, at points[i + 1] when it ends.
double on_cycle(const OneCycle& cycle, std::int64_t step, const std::array<double, 4>& points) {
  constexpr const char* kName = "OneCycle";
  require_step(kName, step);
  require(cycle.total_steps > 0, kName, "total_steps must be above 0", static_cast<double>(cycle.total_steps));
  require(cycle.pct_start >= 0.0 && cycle.pct_start <= 1.0, kName, "pct_start must be in [0, 1]", cycle.pct_start);
  require(cycle.div_factor > 0.0, kName, "div_factor must be above 0", cycle.div_factor);
  require(cycle.final_div_factor > 0.0, kName, "final_div_factor must be above 0", cycle.final_div_factor);
  require_rate(kName, cycle.max_rate);
  const double up = cycle.pct_start * static_cast<double>(cycle.total_steps);
  const double last = static_cast<double>(cycle.total_steps - 1), at = std::min(static_cast<double>(step), last);
  std::vector<double> ends{up - 1.0};
  if (cycle.three_phase) ends.push_back(2.0 * up - 2.0);
  ends.push_back(last);
  double begin = 0.0;
  std::size_t phase = 0;
  while (phase + 1 < ends.size() && at > ends[phase]) begin = ends[phase++];
  const double length = ends[phase] - begin;
  return annealed(cycle.anneal, points[phase], points[phase + 1], length > 0.0 ? (at - begin) / length : 1.0);
}

}  // namespace

double OneCycle::operator()(std::int64_t step) const {
  const double first = max_rate / div_factor, last = first / final_div_factor;
  return on_cycle(*this, step,
                  three_phase ? std::array{first, max_rate, first, last} : std::array{first, max_rate, last, last});
}

double OneCycle::momentum(std::int64_t step) const {
  return on_cycle(*this, step, {max_momentum, base_momentum, max_momentum, max_momentum});
}

double StepDecay::operator()(std::int64_t step) const {
  require_step("StepDecay", step);
  require_rate("StepDecay", rate);
  require_gamma("StepDecay", gamma);
  require(every > 0, "StepDecay", "every must be above 0", static_cast<double>(every));
  return rate * std::pow(gamma, static_cast<double>(step / every));
}

double MultiStep::operator()(std::int64_t step) const {
  require_step("MultiStep", step);
  require_rate("MultiStep", rate);
  require_gamma("MultiStep", gamma);
  const auto reached = std::count_if(milestones.begin(), milestones.end(), [&](std::int64_t m) { return m <= step; });
  return rate * std::pow(gamma, static_cast<double>(reached));
}

double Exponential::operator()(std::int64_t step) const {
  require_step("Exponential", step);
  require_rate("Exponential", rate);
  require_gamma("Exponential", gamma);
  return rate * std::pow(gamma, static_cast<double>(step));
}

double Polynomial::operator()(std::int64_t step) const {
  require_step("Polynomial", step);
  require_rate("Polynomial", rate);
  require(steps > 0, "Polynomial", "steps must be above 0", static_cast<double>(steps));
  require(power > 0.0, "Polynomial", "power must be above 0", power);
  return rate * std::pow(1.0 - static_cast<double>(std::min(step, steps)) / static_cast<double>(steps), power);
}

double Linear::operator()(std::int64_t step) const {
  require_step("Linear", step);
  require_rate("Linear", rate);
  require(steps > 0, "Linear", "steps must be above 0", static_cast<double>(steps));
  require(start_factor >= 0.0 && start_factor <= 1.0, "Linear", "start_factor must be in [0, 1]", start_factor);
  require(end_factor >= 0.0 && end_factor <= 1.0, "Linear", "end_factor must be in [0, 1]", end_factor);
  const double share = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return rate * (start_factor + (end_factor - start_factor) * share);
}

double CosineRestarts::operator()(std::int64_t step) const {
  require_step("CosineRestarts", step);
  require_rate("CosineRestarts", rate);
  require(period > 0, "CosineRestarts", "period must be above 0", static_cast<double>(period));
  require(growth >= 1, "CosineRestarts", "growth must be at least 1", static_cast<double>(growth));
  std::int64_t length = period, at = step;
  if (growth == 1) at %= period;
  for (; at >= length; length *= growth) at -= length;
  return annealed(Anneal::cosine, rate, final_rate, static_cast<double>(at) / static_cast<double>(length));
}

RateSchedule warm_up(RateSchedule after, std::int64_t steps, double start_factor) {
  require(static_cast<bool>(after), "warm_up", "needs a schedule", 0.0);
  require(steps >= 0, "warm_up", "steps must be at least 0", static_cast<double>(steps));
  require(start_factor >= 0.0 && start_factor <= 1.0, "warm_up", "start_factor must be in [0, 1]", start_factor);
  return [after = std::move(after), steps, start_factor](std::int64_t step) {
    require_step("warm_up", step);
    if (step >= steps) return after(step - steps);
    const auto n = static_cast<double>(steps);
    if (start_factor == 0.0) return after(0) * static_cast<double>(step + 1) / n;
    return after(0) * (start_factor + (1.0 - start_factor) * static_cast<double>(step) / n);
  };
}

RateSchedule sequential(std::vector<RateSchedule> parts, std::vector<std::int64_t> milestones) {
  require(!parts.empty() && milestones.size() + 1 == parts.size(), "sequential",
          "needs one milestone between two parts", static_cast<double>(milestones.size()));
  for (std::size_t i = 0; i < milestones.size(); ++i)
    require(milestones[i] > (i == 0 ? 0 : milestones[i - 1]), "sequential", "milestones must rise from above 0",
            static_cast<double>(milestones[i]));
  for (const RateSchedule& part : parts) require(static_cast<bool>(part), "sequential", "needs schedules", 0.0);
  return [parts = std::move(parts), milestones = std::move(milestones)](std::int64_t step) {
    require_step("sequential", step);
    const auto next = std::upper_bound(milestones.begin(), milestones.end(), step);
    const std::int64_t begin = next == milestones.begin() ? 0 : *(next - 1);
    return parts[static_cast<std::size_t>(next - milestones.begin())](step - begin);
  };
}

RateSchedule chained(std::vector<RateSchedule> factors) {
  require(!factors.empty(), "chained", "needs at least one schedule", 0.0);
  for (const RateSchedule& factor : factors) require(static_cast<bool>(factor), "chained", "needs schedules", 0.0);
  return [factors = std::move(factors)](std::int64_t step) {
    double product = 1.0;
    for (const RateSchedule& factor : factors) product *= factor(step);
    return product;
  };
}

void set_one_cycle(Optimizer& optimizer, const OneCycle& cycle) {
  cycle(0);  // throws for what is out of range
  if (optimizer.has_momentum()) {
    optimizer.set_momentum_schedule([cycle](std::int64_t step) { return cycle.momentum(step); });
  }
  optimizer.set_schedule(cycle);
}

}  // namespace samebytes::optim
