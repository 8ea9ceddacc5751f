#include "cli/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/workloads.h"

namespace samebytes::cli {
namespace {

constexpr double kWarmUpShare = 0.05;     // of the steps: the rate rises from nothing
constexpr double kStepGamma = 0.1;        // of --schedule step and plateau
constexpr double kExponentialEnd = 0.01;  // share of the rate that an exponential decay leaves at the end
constexpr double kPolynomialPower = 2.0;
constexpr std::int64_t kStepParts = 3;        // --schedule step falls after each third
constexpr std::int64_t kPlateauPatience = 2;  // tests that may pass without a better one
constexpr double kLeastCycledMomentum = 0.85, kMostCycledMomentum = 0.95;

using OptimizerPtr = std::unique_ptr<optim::Optimizer>;
using Parameters = std::span<const Array>;

struct CommonOptions {  // what holds for every optimizer
  double rate;
  std::optional<double> weight_decay, momentum;
  double clip_norm;
  bool release_gradients;
  Dtype moments;
  const Defaults& defaults;
};

struct Entry {
  const char* name;
  bool has_workloads_rate;  // the workload's rate is one of AdamW, and of what behaves like it
  double rate;              // else
  bool has_momentum;        // --momentum
  bool has_release;         // --release-gradients
  bool has_moments;         // --moments
  bool has_weights;         // --weights
  OptimizerPtr (*make)(Parameters parameters, const CommonOptions& given);
};

template <class Options>
Options common(const CommonOptions& given) {
  Options options;
  options.rate = given.rate;
  options.clip_norm = given.clip_norm;
  if (given.weight_decay) options.weight_decay = *given.weight_decay;
  return options;
}

template <class Options>
Options with_momentum(const CommonOptions& given) {
  Options options = common<Options>(given);
  if (given.momentum) options.momentum = *given.momentum;
  return options;
}

template <class Options>
Options with_betas(const CommonOptions& given) {
  Options options = common<Options>(given);
  if (given.momentum) options.beta1 = *given.momentum;
  return options;
}

// Optimizers that the workload's second moment and weight decay are meant for.
template <class Options>
Options like_adamw(const CommonOptions& given) {
  Options options = with_betas<Options>(given);
  options.beta2 = given.defaults.beta2;
  options.weight_decay = given.weight_decay.value_or(given.defaults.weight_decay);
  return options;
}

const Entry kOptimizers[] = {
    {"sgd", false, optim::SgdOptions{}.rate, true, true, true, true,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       optim::SgdOptions options = with_momentum<optim::SgdOptions>(w);
       options.release_gradients = w.release_gradients;
       options.moments = w.moments;
       return std::make_unique<optim::Sgd>(p, options);
     }},
    {"adam", true, 0.0, true, true, true, true,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       optim::AdamOptions options = with_betas<optim::AdamOptions>(w);
       options.beta2 = w.defaults.beta2;
       options.release_gradients = w.release_gradients;
       options.moments = w.moments;
       return std::make_unique<optim::Adam>(p, options);
     }},
    {"adamw", true, 0.0, true, true, true, true,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       optim::AdamWOptions options = like_adamw<optim::AdamWOptions>(w);
       options.release_gradients = w.release_gradients;
       options.moments = w.moments;
       return std::make_unique<optim::AdamW>(p, options);
     }},
    {"rmsprop", false, optim::RmsPropOptions{}.rate, true, false, true, true,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       optim::RmsPropOptions options = with_momentum<optim::RmsPropOptions>(w);
       options.moments = w.moments;
       return std::make_unique<optim::RmsProp>(p, options);
     }},
    {"adagrad", false, optim::AdagradOptions{}.rate, false, false, false, true,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       return std::make_unique<optim::Adagrad>(p, common<optim::AdagradOptions>(w));
     }},
    {"lars", false, optim::LarsOptions{}.rate, true, false, false, false,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       optim::LarsOptions options = with_momentum<optim::LarsOptions>(w);
       options.exclude_vectors = true;
       return std::make_unique<optim::Lars>(p, options);
     }},
    {"lamb", true, 0.0, true, false, false, false,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       optim::LambOptions options = like_adamw<optim::LambOptions>(w);
       options.exclude_vectors = true;
       return std::make_unique<optim::Lamb>(p, options);
     }},
    {"lion", false, optim::LionOptions{}.rate, true, false, true, true,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       optim::LionOptions options = with_betas<optim::LionOptions>(w);
       options.moments = w.moments;
       return std::make_unique<optim::Lion>(p, options);
     }},
    {"adafactor", false, optim::AdafactorOptions{}.rate, false, false, false, false,
     [](Parameters p, const CommonOptions& w) -> OptimizerPtr {
       return std::make_unique<optim::Adafactor>(p, common<optim::AdafactorOptions>(w));
     }},
};

const Entry& entry_of(const std::string& name) {
  return *std::find_if(std::begin(kOptimizers), std::end(kOptimizers), [&](const Entry& e) { return e.name == name; });
}

// Schedules that begin low of their own, or stay where they are, have no warm-up that nobody asked for.
bool warms_up(const std::string& schedule) {
  return schedule != "constant" && schedule != "plateau" && schedule != "onecycle";
}

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Entry& entry : kOptimizers) result.emplace_back(entry.name);
    return result;
  }();
  return names;
}

optim::ScaleRule scale_rule_of(const Options& options) {
  const std::string rule = options.scale_rate.value_or(options.optimizer == "sgd" ? "linear" : "sqrt");
  return rule == "linear" ? optim::ScaleRule::linear : optim::ScaleRule::square_root;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = {"constant", "linear",      "cosine",     "restarts", "onecycle",
                                                 "step",     "exponential", "polynomial", "plateau"};
  return names;
}

Dtype moments_dtype(const Options& options) { return options.moments == "bf16" ? bf16 : f32; }

Recipe::Recipe(const Options& options, const Workload& workload, std::int64_t batch, std::int64_t steps,
               std::int64_t epoch_steps)
    : options_(options),
      defaults_(workload.defaults),
      optimizer_(options.optimizer),
      schedule_(options.schedule.value_or("cosine")),
      steps_(steps) {
  const Entry& entry = entry_of(optimizer_);
  if (options.momentum && !entry.has_momentum) throw UsageError(fmt::format("--momentum: {} has none", optimizer_));
  if (options.release_gradients && !entry.has_release)
    throw UsageError(fmt::format(
        "--release-gradients: {} does not update parameters one by one; sgd, adam and adamw do", optimizer_));
  if (moments_dtype(options) != f32 && !entry.has_moments)
    throw UsageError(
        fmt::format("--moments: {} keeps them in f32; sgd, adam, adamw, rmsprop and lion have the choice", optimizer_));
  if (options.weights != "f32" && !entry.has_weights && !has_adapters(options))
    throw UsageError(fmt::format(
        "--weights: {} keeps them in f32; sgd, adam, adamw, rmsprop, adagrad and lion have the choice", optimizer_));
  if (options.base_batch && !options.scale_rate) throw UsageError("--base-batch needs --scale-rate RULE");
  if (options.warmup && schedule_ == "onecycle")
    throw UsageError("--schedule onecycle begins with a warm-up of its own; leave --warmup out");
  std::int64_t warmup = options.warmup.value_or(
      warms_up(schedule_) ? std::llround(kWarmUpShare * static_cast<double>(steps)) : std::int64_t{0});
  warmup = std::min(warmup, std::max<std::int64_t>(steps - 1, 0));
  default_rate_ = entry.has_workloads_rate ? defaults_.rate : entry.rate;
  const double rate = options.rate.value_or(default_rate_);
  const std::string rule = options.scale_rate.value_or("none");
  scaled_ = optim::scale_rate(rate, {.rule = rule == "linear" ? optim::ScaleRule::linear
                                             : rule == "sqrt" ? optim::ScaleRule::square_root
                                                              : optim::ScaleRule::none,
                                     .batch = batch,
                                     .base_batch = options.base_batch.value_or(defaults_.batch),
                                     .warmup = warmup,
                                     .epoch_steps = options.warmup || schedule_ == "onecycle" ? 0 : epoch_steps,
                                     .total_steps = steps});
}

optim::OneCycle Recipe::one_cycle() const {
  return {.max_rate = scaled_.rate,
          .total_steps = steps_,
          .base_momentum = kLeastCycledMomentum,
          .max_momentum = kMostCycledMomentum};
}

// The schedule behind the warm-up, over `steps` steps.
optim::RateSchedule Recipe::decay(std::int64_t steps) const {
  const double rate = scaled_.rate;
  if (schedule_ == "linear") return optim::Schedule{.decay = optim::Decay::linear, .rate = rate, .steps = steps};
  if (schedule_ == "cosine") return optim::Schedule{.decay = optim::Decay::cosine, .rate = rate, .steps = steps};
  if (schedule_ == "restarts")
    return optim::CosineRestarts{.rate = rate,
                                 .period = options_.every.value_or(std::max<std::int64_t>(1, steps / kStepParts))};
  if (schedule_ == "step")
    return optim::StepDecay{.rate = rate,
                            .every = options_.every.value_or(std::max<std::int64_t>(1, steps / kStepParts)),
                            .gamma = options_.gamma.value_or(kStepGamma)};
  if (schedule_ == "exponential")
    return optim::Exponential{
        .rate = rate, .gamma = options_.gamma.value_or(std::pow(kExponentialEnd, 1.0 / static_cast<double>(steps)))};
  if (schedule_ == "polynomial") return optim::Polynomial{.rate = rate, .steps = steps, .power = kPolynomialPower};
  return [rate](std::int64_t) { return rate; };
}

optim::RateSchedule Recipe::rate_schedule(const char* for_option) const {
  if (schedule_ == "onecycle" || schedule_ == "plateau")
    throw UsageError(fmt::format("{} sets the rate itself; --schedule {} does not go with it", for_option, schedule_));
  return scaled_.schedule(decay(std::max<std::int64_t>(1, steps_ - scaled_.warmup)));
}

OptimizerPtr Recipe::make_optimizer(std::span<const Array> parameters) const {
  const CommonOptions given{scaled_.rate,
                            options_.weight_decay,
                            options_.momentum,
                            options_.clip_norm.value_or(defaults_.clip_norm),
                            options_.release_gradients,
                            moments_dtype(options_),
                            defaults_};
  OptimizerPtr optimizer = entry_of(optimizer_).make(parameters, given);
  if (schedule_ == "onecycle")
    set_one_cycle(*optimizer, one_cycle());
  else if (schedule_ != "plateau" || scaled_.warmup > 0)
    optimizer->set_schedule(scaled_.schedule(decay(std::max<std::int64_t>(1, steps_ - scaled_.warmup))));
  return optimizer;
}

std::optional<optim::EmaOptions> Recipe::ema_options() const {
  return options_.ema ? std::optional(optim::EmaOptions{.decay = *options_.ema, .warmup = true}) : std::nullopt;
}

std::optional<optim::PlateauOptions> Recipe::plateau_options() const {
  if (schedule_ != "plateau") return std::nullopt;
  return optim::PlateauOptions{.rate = scaled_.rate,
                               .factor = options_.gamma.value_or(kStepGamma),
                               .patience = options_.every.value_or(kPlateauPatience)};
}

std::string Recipe::to_text() const {
  std::string text = fmt::format("{}, {} schedule, rate {:.4g}", optimizer_, schedule_, scaled_.rate);
  if (options_.scale_rate)
    text += fmt::format(" ({:.3g} times that for a batch of {}{})", scaled_.factor,
                        options_.base_batch.value_or(defaults_.batch), scaled_.is_clamped ? ", the most" : "");
  if (scaled_.warmup > 0) text += fmt::format(", warm-up of {} steps", scaled_.warmup);
  if (moments_dtype(options_) != f32) text += fmt::format(", moments in {}", options_.moments);
  if (options_.weights != "f32") text += fmt::format(", weights in {}", options_.weights);
  if (options_.ema) text += fmt::format(", averaged weights {:g}", *options_.ema);
  return text;
}

}  // namespace samebytes::cli
